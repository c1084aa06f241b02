"""CLI commands ``mplang policy``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from mplang_analysis import Submission, admit
from mplang_analysis.ext import quoted

import mplang_core as mp
from mplang_core.ext import ConfigError, printable
from mplang_policy.cases import read_cases
from mplang_policy.control_client import control_of
from mplang_policy.decision import Decision, decide_program
from mplang_policy.offline import asked_of, paths_of
from mplang_policy.owner import Owner, from_here
from mplang_policy.request import describe
from mplang_policy.starter import starter
from mplang_policy.vocabulary import schema_text

FILE = "rules.cedar"

policy = typer.Typer(
    name="policy",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Write, try and check the rules of an owner.",
)

Config = Annotated[str, typer.Option("--config", "-c", help="Your worker's YAML file.")]
Coordinator = Annotated[
    str | None, typer.Option(help="Who would run it; the only one if left out.")
]


def owners_advice(decision: Decision, party: str) -> list[str]:
    """Return what the owner could change, so that a program is permitted; each once, escaped."""
    advice = (each for refusal in decision.refusals(party) for each in refusal.advice)
    return list(dict.fromkeys(str(each) for each in advice if each.by == party))


@policy.command()
def check(
    program: Annotated[str, typer.Argument(help="An artifact, prog.mpl.")],
    config: Config = "worker.yaml",
    party: Annotated[str | None, typer.Option("--as", help="Your party; that of the file.")] = None,
    coordinator: Coordinator = None,
) -> None:
    """Report whether your rules and admission checks permit a program, and what they refuse."""
    owner = Owner.read(config)
    if party not in (None, owner.party):
        raise ConfigError(f"{config} is the file of {owner.party}, not of {party}", code="C006")
    packed = mp.artifact.load(program)
    mode = str(owner.fields.get("mode", "production"))
    names, who = packed.cluster.parties, owner.coordinator(coordinator)
    asked = asked_of(packed.program, names, owner.party, who, mode)
    decision = decide_program(owner.rules(), asked)
    if not decision.allowed:
        typer.echo(printable(decision.text(owner.party, paths_of(packed.program, decision))))
        for change in owners_advice(decision, owner.party):
            typer.echo(change)
        raise typer.Exit(1)
    admit(owner.checks(), Submission(packed.program, who, names.index(owner.party), names))
    typer.echo(printable(f"{owner.party} permits {quoted(packed.name)} for {who}:"))
    for request in decision.requests:
        typer.echo(printable(f"  {describe(request)}"))


@policy.command()
def init(config: Config = "worker.yaml") -> None:
    """Write rules to begin with: aggregates over at least 20 persons, nothing at row level."""
    owner = Owner.read(config)
    path = Path(owner.gate.policy)
    if path.suffix != ".cedar":
        path.mkdir(parents=True, exist_ok=True)
        path /= FILE
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(starter(owner))
    except OSError as error:
        raise ConfigError(
            f"cannot write {path}: {os.strerror(error.errno or 0)}", code="C005"
        ) from None
    owner.rules()
    typer.echo(f"wrote {from_here(path)}")


@policy.command()
def show(
    config: Config = "worker.yaml",
    control: Annotated[
        str | None, typer.Option("--socket", help="The control socket of the worker.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="A worker elsewhere, as bank=https://bank.example:9000.")
    ] = None,
    tls: Annotated[str | None, typer.Option(help="Your certificate, for --at.")] = None,
) -> None:
    """Print the rules that count at a worker that runs, as it has read them."""
    client = control_of(config, control, at, tls)
    if client is None:
        raise ConfigError(
            f"no worker of {config} answers at a control socket; --socket names one", code="C014"
        )
    for row in client.request("GET", "rules"):
        typer.echo(printable(f"// {row['file']} of rules {row['rules']}"))
        typer.echo(printable(str(row["text"]), keep="\n"))


@policy.command("test")
def try_cases(
    cases: Annotated[str, typer.Argument(help="A YAML file with a list of cases.")],
    config: Config = "worker.yaml",
) -> None:
    """Try your rules on cases of yours: what they are to permit, and what to refuse."""
    owner = Owner.read(config)
    rules, wrong = owner.rules(), 0
    found = read_cases(cases)
    for case in found:
        decision, text = case.decide(owner, rules, Path(cases).parent)
        got = "permit" if decision.allowed else "refuse"
        fits = got == case.expect and case.by in text
        wrong += not fits
        typer.echo(printable(f"{'ok  ' if fits else 'FAIL'} {case.name}"))
        if not fits:
            told = f" by {case.by!r}" if case.by else ""
            typer.echo(printable(f"     expected {case.expect}{told}, got {got}: {text}"))
    typer.echo(f"{len(found) - wrong} of {len(found)} as expected")
    if wrong:
        raise typer.Exit(1)


@policy.command()
def schema() -> None:
    """Print what rules can speak of, as a Cedar schema."""
    typer.echo(schema_text(), nl=False)
