"""Sub-commands of `zoomrank`, one per module."""
