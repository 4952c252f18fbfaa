"""What the states of several bandits are made of: a view of the tree, arms, zoom trees, pairs, visits, paths."""
