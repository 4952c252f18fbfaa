"""`zoomrank year`: a shop that lives through a year in minutes, and whether its learners are as good as undisturbed ones."""
