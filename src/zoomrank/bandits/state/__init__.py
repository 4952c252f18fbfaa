"""What the states of several bandits are made of: a view of the tree, arms, the visited part."""
