"""The command ``mplang``."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

import mplang_core
from mplang_core import authoring, introspect
from mplang_core.doctor import examine
from mplang_core.errors import MPLangError

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Ask what is installed, and why something is not.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


Family = Annotated[
    str | None,
    typer.Argument(help="For example jax.", autocompletion=lambda: introspect.list_frontends()),
]
Op = Annotated[
    str,
    typer.Argument(
        help="For example jax.compile.",
        autocompletion=lambda: [row["name"] for row in introspect.list_ops()],
    ),
]


def _show(data: Any, as_json: bool, title: str = "") -> None:
    if as_json:
        typer.echo(json.dumps(data, indent=2, default=str))
        return
    from rich.console import Console

    console = Console()
    if title:
        console.print(title, style="bold")
    console.print(data)


@app.command()
def plugins(as_json: AsJson = False) -> None:
    """List the plugins: where they come from, and whether they work."""
    _show(introspect.list_plugins(), as_json)


@app.command()
def ops(family: Family = None, as_json: AsJson = False) -> None:
    """List the feops, of all families or of one."""
    found = introspect.list_ops(family)
    if family is not None and not found:
        mplang_core.registry.get(f"{family}.")  # raises, and says what to install
    _show(found, as_json)


@app.command()
def describe(op: Op, as_json: AsJson = False) -> None:
    """Show all that is known of one feop."""
    facts = introspect.describe(op)
    if as_json:
        _show(facts, True)
        return
    from rich.table import Table

    table = Table("field", "value", show_header=False)
    for name, value in facts.items():
        shown = value if isinstance(value, str) else json.dumps(value, default=str)
        table.add_row(name, shown)
    _show(table, False)


@app.command()
def devices(as_json: AsJson = False) -> None:
    """List the kinds of devices."""
    _show(introspect.list_devices(), as_json)


@app.command()
def backends(as_json: AsJson = False) -> None:
    """List the backends."""
    _show(introspect.list_backends(), as_json)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check versions and plugins; exits with 1 if something is wrong."""
    checks = examine()
    _show(checks, as_json)
    if any(check["status"] == "failed" for check in checks):
        raise typer.Exit(1)


@app.command()
def new_plugin(
    name: Annotated[str, typer.Argument(help="The family of its feops, for example weather.")],
    path: Annotated[str, typer.Option(help="The folder to put the package in.")] = ".",
    as_json: AsJson = False,
) -> None:
    """Write the package of a new plugin, with a feop, a kernel, a type and tests."""
    made = authoring.new_plugin(name, path)
    if as_json:
        facts = {"name": made.name, "distribution": made.distribution, "path": str(made.path)}
        _show({**facts, "files": made.files, "next": made.next}, True)
        return
    _show(made, False)


def main() -> None:
    """Run the command; our own errors are told in one line."""
    try:
        app()
    except MPLangError as error:
        typer.echo(f"mplang: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
