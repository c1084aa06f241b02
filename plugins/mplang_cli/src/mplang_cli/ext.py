"""Extension interface: what ``mplang new-plugin`` does, for tools that write packages."""

from mplang_cli.authoring import NewPlugin as NewPlugin, new_plugin as new_plugin
