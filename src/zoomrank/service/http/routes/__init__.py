"""Routes of the service by subject: declarations only, no logic."""
