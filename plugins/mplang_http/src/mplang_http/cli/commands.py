"""CLI command of this package: ``mplang status``."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from mplang_core import ClusterSpec
from mplang_http.cli.status import cluster_status

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Tls = Annotated[
    str | None, typer.Option(help="Your certificate: certs/host, as mplang keygen makes it.")
]


def status(
    cluster: Annotated[str, typer.Option(help="A YAML file, as mplang up writes it.")],
    tls: Tls = None,
    as_json: AsJson = False,
) -> None:
    """Show the status of a cluster's workers; exits with 1 if one cannot run programs."""
    rows = cluster_status(ClusterSpec.from_yaml(cluster), tls)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        Console().print(rows)
    if any(row["state"] != "ready" or row["why"] for row in rows):
        raise typer.Exit(1)
