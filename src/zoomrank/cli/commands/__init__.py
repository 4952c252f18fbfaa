"""The sub-commands of `zoomrank`, one a module."""
