"""What the states of several bandits are made of: views of the tree, arms, zoom trees, pairs, visited parts, paths."""
