"""CLI command of this package: ``mplang status``."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer
from mplang_analysis import Rows
from rich.console import Console

from mplang_core import ClusterSpec
from mplang_http.cli.status import cluster_status

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Tls = Annotated[
    str | None, typer.Option(help="Your certificate: certs/host, as mplang keygen makes it.")
]

_STEP = 0.5  # seconds between two looks


def status(
    cluster: Annotated[str, typer.Option(help="A YAML file, as mplang up writes it.")],
    tls: Tls = None,
    wait: Annotated[float, typer.Option(help="Seconds to wait until all are ready.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Show the status of a cluster's workers; exits with 1 if one cannot run programs."""
    spec, deadline = ClusterSpec.from_yaml(cluster), time.monotonic() + wait
    while not _ready(rows := cluster_status(spec, tls)) and time.monotonic() < deadline:
        time.sleep(_STEP)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        Console().print(rows)
    if not _ready(rows):
        raise typer.Exit(1)


def _ready(rows: Rows) -> bool:
    return all(row["state"] == "ready" and not row["why"] for row in rows)
