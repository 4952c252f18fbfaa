"""Named rankers: our own, those of the paper, and others to compare with."""
