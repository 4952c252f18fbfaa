"""Studies beyond the paper: how many impressions rankers need, which parameters are best, and convergence."""

KIND = "study"  # in the manifest of its results
