"""Reference of the command line: what each command takes, as its ``--help`` tells."""

from __future__ import annotations

from collections.abc import Mapping

import typer
from mplang_cli.cli import app
from typer.cli import get_docs_for_click


def pages() -> Mapping[str, str]:
    """Return the page of the commands, those of installed packages included."""
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="mplang")
    text = get_docs_for_click(obj=command, ctx=context, name="mplang", title="Commands")
    return {"commands.md": text}
