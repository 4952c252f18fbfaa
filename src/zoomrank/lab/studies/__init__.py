"""Studies of our own: how many impressions learners need, which parameters are best, who converges."""
