"""Parts that all reports of the lab share: text and pages, figures, the description of the machine."""
