"""`zoomrank year`: a shop lives through a year in minutes; are its learners as good as undisturbed ones?"""
