"""The command ``mplang``: program artifacts, what is installed, new plugins."""
