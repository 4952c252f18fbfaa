"""Studies of our own: how many impressions rankers need, which parameters are best, who converges."""
