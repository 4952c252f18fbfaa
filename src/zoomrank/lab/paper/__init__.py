"""The paper's evaluation: its experiments, figures, claims and theory."""

KIND = "paper"  # in the manifest of its results
