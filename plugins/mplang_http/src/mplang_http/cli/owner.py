"""CLI commands by which the owner and the operators of a worker look at it, and stop what runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from mplang_core.ext import printable
from mplang_http.cli.control import control_client

Config = Annotated[str, typer.Option("--config", "-c", help="Your worker's YAML file.")]
Socket = Annotated[
    str | None, typer.Option("--socket", help="Its control socket, in place of the file's.")
]
At = Annotated[
    str | None, typer.Option(help="A worker elsewhere, as bank=https://bank.example:9000.")
]
Tls = Annotated[str | None, typer.Option(help="Your certificate, for --at: certs/anna.")]
Who = Annotated[str | None, typer.Option(help="Whose it is, if several have one of that name.")]
Why = Annotated[str, typer.Option("--reason", help="Why, as the coordinator is told.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Coordinator = Annotated[str, typer.Argument(help="A coordinator, as mplang failures lists them.")]


def sessions(
    config: Config = "worker.yaml",
    control: Socket = None,
    at: At = None,
    tls: Tls = None,
    as_json: AsJson = False,
) -> None:
    """List the sessions that are open at your worker."""
    show(
        control_client(config, control, at, tls).request("GET", "sessions"),
        "no session is open",
        as_json=as_json,
    )


def close(
    session: Annotated[str, typer.Argument(help="Its name, as mplang sessions lists it.")],
    config: Config = "worker.yaml",
    control: Socket = None,
    at: At = None,
    tls: Tls = None,
    coordinator: Who = None,
    reason: Why = "",
) -> None:
    """End a session at your worker, with all that it runs and holds, at once."""
    client = control_client(config, control, at, tls)
    asked = {"coordinator": coordinator, "reason": reason or None}
    show(client.request("DELETE", "sessions", session, **asked), "nothing has ended")


def pause(
    coordinator: Coordinator,
    config: Config = "worker.yaml",
    control: Socket = None,
    at: At = None,
    tls: Tls = None,
    reason: Why = "",
) -> None:
    """Refuse all runs of a coordinator until you resume it, and end its sessions at once."""
    client = control_client(config, control, at, tls)
    show(
        client.request("PUT", "paused", coordinator=coordinator, reason=reason or None),
        "it has no session open",
    )


def resume(
    coordinator: Coordinator,
    config: Config = "worker.yaml",
    control: Socket = None,
    at: At = None,
    tls: Tls = None,
) -> None:
    """Resume a coordinator that was paused."""
    client = control_client(config, control, at, tls)
    show(client.request("DELETE", "paused", coordinator=coordinator), "nothing has changed")


failures = typer.Typer(
    name="failures",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="List the failed runs of each coordinator at your worker, and who is paused.",
)


@failures.callback()
def list_failures(
    context: typer.Context,
    config: Config = "worker.yaml",
    control: Socket = None,
    at: At = None,
    tls: Tls = None,
    as_json: AsJson = False,
) -> None:
    """List the failed runs of each coordinator at your worker, and who is paused."""
    if context.invoked_subcommand is None:
        client = control_client(config, control, at, tls)
        show(client.request("GET", "coordinators"), "there are no coordinators", as_json=as_json)


@failures.command()
def reset(
    coordinator: Coordinator,
    config: Config = "worker.yaml",
    control: Socket = None,
    at: At = None,
    tls: Tls = None,
) -> None:
    """Forget the failed runs of a coordinator, which is on record."""
    client = control_client(config, control, at, tls)
    show(client.request("DELETE", "failures", coordinator=coordinator), "nothing has changed")


def drain(
    config: Config = "worker.yaml", control: Socket = None, at: At = None, tls: Tls = None
) -> None:
    """Drain your worker: what runs ends, then the worker does, as after SIGTERM."""
    control_client(config, control, at, tls).request("POST", "drain")
    typer.echo("the worker takes nothing new, and ends when its runs have")


def show(rows: Sequence[Mapping[str, object]], none: str, *, as_json: bool = False) -> None:
    """Print rows as a table, in which nothing that a coordinator has named changes the terminal.

    Args:
        rows: the rows, with the same columns.
        none: what is printed if there are none.
        as_json: whether to print them as JSON.
    """
    if as_json:
        typer.echo(json.dumps(list(rows), indent=2))
        return
    if not rows:
        typer.echo(none)
        return
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(padded).rstrip())


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(printable(str(each)) for each in value)
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None else printable(str(value))
