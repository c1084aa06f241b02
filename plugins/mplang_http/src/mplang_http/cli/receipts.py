"""CLI command of this package: ``mplang receipts``."""

from __future__ import annotations

import datetime
import json
from typing import Annotated

import typer

from mplang_core.ext import ConfigError, printable
from mplang_http.coordinator.receipts import Receipts

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, with the signatures.")]
Party = Annotated[str | None, typer.Option(help="Only those of this party.")]
Forget = Annotated[
    str | None,
    typer.Option(help="Forget those of a party, once its owner has told why its log was set back."),
]


def receipts(party: Party = None, forget: Forget = None, as_json: AsJson = False) -> None:
    """List what the gates of workers have signed of your runs, as PARTY=NUMBER:HASH."""
    store = Receipts()
    if forget is not None:
        count = store.forget(forget)
        if not count:
            raise ConfigError(f"there are no receipts of {forget}", code="C006")
        typer.echo(printable(f"forgot {count} receipts of {forget}"))
        return
    for each in store.all():
        when = datetime.datetime.fromtimestamp(each.time, datetime.UTC).isoformat(
            timespec="milliseconds"
        )
        if party not in (None, each.party):
            continue
        if as_json:
            typer.echo(json.dumps({**each._asdict(), "time": when}))
        else:
            typer.echo(printable(f"{when} {each.head} {each.run} {each.address}"))
