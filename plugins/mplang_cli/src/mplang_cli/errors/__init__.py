"""Pages of the errors of mplang, one Markdown file per code; see :mod:`mplang_cli.explain`."""
