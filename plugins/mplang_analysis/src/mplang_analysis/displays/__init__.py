"""Displays of the core's objects in notebooks: entry points of the group ``mplang.displays``."""
