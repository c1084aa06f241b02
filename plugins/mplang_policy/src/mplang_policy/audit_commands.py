"""CLI commands ``mplang audit``: what left, who was refused, and whether the log is whole."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from mplang_analysis.ext import quoted

from mplang_core.ext import ConfigError, printable
from mplang_policy.audit_lines import one_line, time_since
from mplang_policy.budgets import Amount
from mplang_policy.expiry_check import ExpiryCheck
from mplang_policy.ledger import REDUCED, Entry, Ledger, canonical, digest_of
from mplang_policy.owner import Owner
from mplang_policy.peer_logs import PeerLogs
from mplang_policy.rotation import read_archive, rotate
from mplang_policy.sums import sums_that_differ
from mplang_policy.verification import MAX_WRONG, mistakes, read_head, time_of, to_line

audit = typer.Typer(
    name="audit",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Show, verify and export the log of a worker.",
)

Config = Annotated[str, typer.Option("--config", "-c", help="Your worker's YAML file.")]
Coordinator = Annotated[str | None, typer.Option(help="Only entries about this coordinator.")]


def _log(config: str) -> Ledger:
    return Ledger(Owner.read(config).gate.log, read_only=True)


@audit.command()
def show(
    config: Config = "worker.yaml",
    coordinator: Coordinator = None,
    kind: Annotated[str | None, typer.Option(help="run, refusal, attempt, fetch, …")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only entries since then: 2026-03-01, or 90m, 24h, 7d ago.")
    ] = None,
) -> None:
    """Show the entries of the log, one per line; mplang audit export has all that they say."""
    begin = 0.0 if since is None else time_since(since, time.time())
    for entry in _log(config).entries():
        body = entry.body
        if entry.time < begin:
            continue
        if kind in (None, entry.kind) and coordinator in (None, body.get("coordinator")):
            typer.echo(printable(f"{entry.number:>6} {time_of(entry)} {_line(entry, body)}"))


def _line(entry: Entry, body: dict[str, Any]) -> str:
    who = body.get("coordinator", "")

    def told(name: str) -> Any:
        return body.get(name, "?")

    if entry.text == REDUCED:
        return f"{entry.kind} (expired: its hash is {entry.hash[:12]})"
    match entry.kind:
        case "run":
            name = quoted(str(told("name")))
            return f"{who} runs {name}, {str(told('program'))[:12]}, as {told('run')}"
        case "refusal":
            what = body.get("name") or body.get("value")
            why = one_line(str(told("why")))
            return f"{who} is refused {quoted(what) if what else 'what it asks for'}: {why}"
        case "fetch":
            return f"{who} fetches {quoted(str(told('value')))}, {told('bytes')} bytes"
        case "put":
            return f"{who} puts {quoted(str(told('value')))}, {told('bytes')} bytes"
        case "end":
            sent = body.get("sent") or {}
            parts = [f"{size} bytes to {peer}" for peer, size in sent.items()]
            return f"{who}: {told('run')} is {told('state')}; sent {', '.join(parts) or 'nothing'}"
        case "attempt":
            return f"{who} asked for {quoted(str(told('name')))}, as {told('run')}: {told('why')}"
        case "expired":
            return f"{told('count')} {told('what')} expired, by {told('rule')}"
        case "rules":
            return f"rules version {told('version')}, {str(told('rows'))[:12]}"
        case "configuration":
            return f"configuration changed: {', '.join(map(str, told('changed')))}"
        case "approval":
            by = f", passed on by {who}" if who else ""
            signers = ", ".join(map(str, told("signers"))) or "nobody that counts"
            return f"approval {told('approval')} of {quoted(str(told('name')))}, by {signers}{by}"
    return f"{entry.kind} {canonical(entry.body)}"


@audit.command()
def verify(
    config: Config = "worker.yaml",
    head: Annotated[
        list[str] | None,
        typer.Option(help="PEER=NUMBER:HASH, what a peer remembers, of its mplang audit heads."),
    ] = None,
    archive: Annotated[
        list[str] | None, typer.Option(help="An archive of mplang audit rotate, the oldest first.")
    ] = None,
) -> None:
    """Search for entries that were changed, removed, moved or added; exits with 1 if there are."""
    log = _log(config)
    split = [each.partition("=") for each in head or []]
    heads = [(who, read_head(text)) for who, _, text in split]
    kept: dict[str, Any] = {}

    def entries() -> Iterator[Entry]:
        for path in archive or []:
            for entry, detail in read_archive(Path(path)):
                kept[entry.body.get("rows", "")] = detail
                yield entry
        yield from log.entries()

    def detail(digest: str) -> Any:
        told = kept.get(digest)
        return told if told is not None and digest_of(told) == digest else log.detail(digest)

    expiries = ExpiryCheck()
    found = itertools.chain(mistakes(entries(), detail, heads, expiries), sums_that_differ(log))
    wrong = list(itertools.islice(found, MAX_WRONG))
    for each in wrong:
        typer.echo(printable(each))
    if wrong:
        raise typer.Exit(1)
    last = log.head
    typer.echo(f"{last.number} entries, each as it was written; the last is {last.hash}")
    for rule, count in expiries.rules.items():
        typer.echo(printable(f"{count} of them expired, on record, by the rule {rule}"))
    if not heads:
        typer.echo(
            "whether entries are missing at the end, peers can say: verify --head PEER=NUMBER:HASH"
        )


@audit.command()
def budgets(config: Config = "worker.yaml") -> None:
    """Print what differentially private ops have used up of each data set, and what is left."""
    owner = Owner.read(config)
    spent = Ledger(owner.gate.log, read_only=True).spent()
    for name, budget in sorted(owner.gate.budgets.items()):
        total = Amount()
        for (data_set, who), amount in sorted(spent.items()):
            if data_set == name:
                total = total.plus(amount)
                cap = budget.cap(by_one=True)
                typer.echo(printable(f"{name}: {who} has used up {amount} of {cap}"))
        typer.echo(printable(f"{name}: used up {total} of {budget.cap(by_one=False)}"))


@audit.command("rotate")
def rotate_log(
    to: Annotated[str, typer.Option(help="The archive, a new file.")],
    config: Config = "worker.yaml",
    keep: Annotated[int, typer.Option(min=1, help="How many entries stay in the log.")] = 1000,
) -> None:
    """Move all but the last entries to an archive; the chain and what is used up go on."""
    moved = rotate(Ledger(Owner.read(config).gate.log), Path(to), keep)
    typer.echo(f"moved {moved} entries to {to}" if moved else "there are not more entries")


@audit.command("accept-clock")
def accept_clock(config: Config = "worker.yaml") -> None:
    """Go on by the clock as it is now, if a wrong one has dated the last entry ahead; on record."""
    ahead = Ledger(Owner.read(config).gate.log).accept_clock()
    if not ahead:
        raise ConfigError(
            "the clock is not before the last entry; there is nothing to accept", code="C013"
        )
    typer.echo(f"the last entry is {ahead:.0f} s ahead; the log goes on by the clock as it is now")


@audit.command()
def heads(config: Config = "worker.yaml") -> None:
    """Print the last entries of the peers' logs that this worker was told, as PEER=NUMBER:HASH."""
    for peer, head in sorted(_log(config).heads().items()):
        typer.echo(printable(f"{peer}={head.number}:{head.hash}"))


@audit.command()
def forget(
    peer: Annotated[str, typer.Argument(help="A party whose log was set back, by its owner.")],
    config: Config = "worker.yaml",
) -> None:
    """Forget what a peer's log was, once its owner has told you why it was set back."""
    with Ledger(Owner.read(config).gate.log).writing() as writing:
        if not writing.changed(lambda file: PeerLogs(file).forget(peer)):
            raise ConfigError(f"nothing is remembered of {peer}", code="C013")
        writing.add("forgotten", {"peer": peer})
    typer.echo(f"runs with {peer} begin again by the log that it has now")


@audit.command()
def export(config: Config = "worker.yaml") -> None:
    """Print the log as JSON, an entry per line, with all that its entries speak of."""
    log = _log(config)
    for entry in log.entries():
        rows = entry.body.get("rows")
        typer.echo(to_line(entry, None if rows is None else log.detail(rows)))
