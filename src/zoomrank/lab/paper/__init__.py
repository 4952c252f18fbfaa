"""The paper's evaluation: its experiments, figures, claims and theory."""
