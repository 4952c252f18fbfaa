"""Every path of the service by subject, and nothing about how it is done."""
