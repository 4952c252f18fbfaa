"""Parts of bandit states: a view of the tree, arms, zoom trees, pairs, visits, paths."""
