"""Studies of our own: how many impressions rankers need, which parameters are best, who converges."""

KIND = "study"  # what the manifest of its results says
