"""The paper's evaluation: its experiments, figures, claims and theory."""

KIND = "paper"  # what the manifest of its results says
