"""CLI command ``mplang retention``: how long a worker keeps what, and what expires when."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer
from mplang_http import control_client

from mplang_core.ext import printable
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.retention_protocols import Expiring, RetentionSection
from mplang_worker.base.sections import GATE, SINK, section_of

KEPT = "retention.kept"


def retention(
    config: Annotated[
        str, typer.Option("--config", "-c", help="Your worker's YAML file.")
    ] = "worker.yaml",
    what_if: Annotated[
        bool, typer.Option("--what-if", help="List what will expire, and when; delete nothing.")
    ] = False,
) -> None:
    """List the rules by which a worker deletes what it keeps, or what they will delete."""
    worker = WorkerConfig.from_yaml(config)
    sections = list(_sections(worker))
    rules = [rule for each, fields in sections for rule in each.retention(fields).items()]
    if worker.retention.kept is not None:  # by sessions, which mplang sessions lists
        rules.insert(0, (KEPT, worker.retention.kept))
    if not rules:
        typer.echo(printable(f"nothing expires: {config} has no rule of retention"))
    elif not what_if:
        for name, keeps in rules:
            typer.echo(printable(f"{name}: {keeps}"))
    else:
        expiring = [Expiring(*e) for section, fields in sections for e in section.expiring(fields)]
        _list_expiring([*_expiring_sessions(worker, config), *expiring])


def _sections(config: WorkerConfig) -> Iterator[tuple[RetentionSection, Mapping[str, object]]]:
    for name in (SINK, GATE):
        fields = config.section(name)
        section: object = None if fields is None else section_of(name)
        if isinstance(section, RetentionSection):
            yield section, fields


def _expiring_sessions(worker: WorkerConfig, config: str) -> Iterator[Expiring]:
    """Yield the sessions that will expire, as the worker tells that runs, by its control socket."""
    keeps, now = worker.retention.seconds, time.time()
    if keeps is None:
        return
    client = None if worker.control is None else control_client(config, None)
    if client is None or not client.is_at_hand:
        typer.echo(f"{KEPT}: no worker answers at a control socket, so no session is listed")
        return
    for row in client.request("GET", "sessions"):
        what = f"session {row['session']} of {row['coordinator']}, with the values that it keeps"
        yield Expiring(KEPT, what, now + keeps - row["age"])


def _list_expiring(expiring: list[Expiring]) -> None:
    now = time.time()
    for each in sorted(expiring, key=lambda each: each.time):
        when = datetime.datetime.fromtimestamp(each.time, datetime.UTC)
        shown = "now             " if each.time <= now else f"{when:%Y-%m-%d %H:%M}"
        typer.echo(printable(f"{shown}  {each.rule}  {each.what}"))
    if not expiring:
        typer.echo("there is nothing that could expire")
