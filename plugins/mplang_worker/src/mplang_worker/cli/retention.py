"""CLI command ``mplang retention``: how long a worker keeps what, and what expires when."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from mplang_core.ext import printable
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.retention_protocols import Expiring, RetentionSection
from mplang_worker.base.sections import GATE, SINK, section_of


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
        rules.insert(0, ("retention.kept", worker.retention.kept))
    if not rules:
        typer.echo(printable(f"nothing expires: {config} has no rule of retention"))
    elif not what_if:
        for name, keeps in rules:
            typer.echo(printable(f"{name}: {keeps}"))
    else:
        _list_expiring(
            [Expiring(*each) for section, fields in sections for each in section.expiring(fields)]
        )


def _sections(config: WorkerConfig) -> Iterator[tuple[RetentionSection, Mapping[str, object]]]:
    for name in (SINK, GATE):
        fields = config.section(name)
        section: object = None if fields is None else section_of(name)
        if isinstance(section, RetentionSection):
            yield section, fields


def _list_expiring(expiring: list[Expiring]) -> None:
    now = time.time()
    for each in sorted(expiring, key=lambda each: each.time):
        when = datetime.datetime.fromtimestamp(each.time, datetime.UTC)
        shown = "now             " if each.time <= now else f"{when:%Y-%m-%d %H:%M}"
        typer.echo(printable(f"{shown}  {each.rule}  {each.what}"))
    if not expiring:
        typer.echo("there is nothing that could expire")
