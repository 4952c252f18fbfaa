"""What all reports of the lab share: text and pages, figures, the machine that made them."""
