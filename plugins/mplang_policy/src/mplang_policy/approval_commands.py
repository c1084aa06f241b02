"""CLI commands ``mplang review``, ``approve``, ``approvals`` and ``revoke``."""

from __future__ import annotations

import datetime
import json
import os
import re
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from mplang_analysis import network_named
from mplang_analysis.ext import quoted

from mplang_core.ext import ConfigError, printable
from mplang_policy.approval import Approval
from mplang_policy.approvals import Approvals
from mplang_policy.approving import (
    as_option,
    changes,
    made_of,
    place_of,
    review_of,
    state_of,
    versions_told,
    write,
)
from mplang_policy.control_client import control_of
from mplang_policy.envelope import new_key, open_envelope, read_key, sign
from mplang_policy.ledger import Ledger
from mplang_policy.owner import Owner, from_here
from mplang_policy.owner_view import approval_row
from mplang_policy.renewing import renew_all
from mplang_policy.standing import Standing

PASSWORD = "MPLANG_KEY_PASSWORD"
"""Environment variable with the password of a private key."""

ALL = "--all"  # what --renew is given in place of a file
EXPIRES = "30d"
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}

Packed = Annotated[str, typer.Argument(help="An artifact, prog.mpl.")]
Config = Annotated[str, typer.Option("--config", "-c", help="Your worker's YAML file.")]
Who = Annotated[str | None, typer.Option(help="Who would run it; the only one if left out.")]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", help="What a public input may be: year=2015..2025, k=3,5, x=any."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def review(
    program: Packed,
    config: Config = "worker.yaml",
    party: Annotated[str | None, typer.Option("--as", help="Your party; that of the file.")] = None,
    coordinator: Who = None,
    given: Inputs = None,
    link: Annotated[
        str,
        typer.Option(help="The network between the parties: lan, wan, or RTT,RATE in ms, Mbit/s."),
    ] = "lan",
    html: Annotated[str | None, typer.Option(help="Write it as a page to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a program discloses, reads, runs and costs, and what your rules say to it."""
    owner = Owner.read(config)
    if party not in (None, owner.party):
        raise ConfigError(f"{config} is the file of {owner.party}, not of {party}", code="C006")
    found = review_of(
        owner, program, owner.coordinator(coordinator), given or [], network_named(link)
    )
    if html is not None:
        write(Path(html), found.to_html().encode())
        typer.echo(f"wrote {html}")
    elif as_json:
        typer.echo(found.to_json())
    else:
        _show(found)


def approve(
    program: Annotated[
        str | None, typer.Argument(help="An artifact, prog.mpl; none with --renew --all.")
    ] = None,
    *,
    key: Annotated[str, typer.Option(help=f"Your private key; its password is ${PASSWORD}.")],
    config: Config = "worker.yaml",
    coordinator: Annotated[list[str] | None, typer.Option(help="Who may run it.")] = None,
    uses: Annotated[
        int | None, typer.Option(min=1, help="How often; once, or what --renew has left.")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(help="For how long: 12h, 30d, 4w; 30d, or as long as what --renew renews."),
    ] = None,
    given: Inputs = None,
    sign_too: Annotated[
        str | None, typer.Option("--sign", help="Another's approval, to sign it as well.")
    ] = None,
    renew: Annotated[
        str | None,
        typer.Option(help="An approval that counts no more, as versions changed; --renew --all."),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="The file; in the approvals of your worker.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not show it, and do not ask.")] = False,
) -> None:
    """Sign that a program may run here."""
    if sign_too is not None and renew is not None:
        raise ConfigError("--sign and --renew do not go together", code="C006")
    owner, signing = Owner.read(config), read_key(key, os.environ.get(PASSWORD))
    if renew == ALL and program is None:
        for line in renew_all(owner, signing):
            typer.echo(printable(line))
        return
    if program is None:
        raise ConfigError(
            f"name the artifact, prog.mpl; without one there is --renew {ALL}", code="C006"
        )
    before = sign_too or renew
    old = None if before is None else open_envelope(_read(before), {}).approval
    who = coordinator or (list(old.coordinators) if old else [owner.coordinator(None)])
    said = given or [
        f"{each.name}={as_option(each)}" for each in (old.inputs if old else {}).values()
    ]
    reviewed = [review_of(owner, program, owner.coordinator(each), said) for each in who]
    until = old.expires if old is not None and renew and expires is None else _until(expires)
    left = uses or (_left(owner, old) if old is not None and renew else 1)
    made = made_of(owner, program, reviewed, left, until, old)
    changed = [] if old is None else changes(old, made)
    if sign_too is not None and changed:
        raise ConfigError(
            f"{sign_too} is of something else: other {', '.join(changed)}", code="C011"
        )
    if renew is not None and old is not None:
        if set(changed) - {"versions"}:
            raise ConfigError(f"more has changed than versions: {', '.join(changed)}", code="C011")
        typer.echo(printable(f"only versions have changed: {versions_told(old, made)}"))
    if sign_too is not None and old is not None:
        made = old
    if not yes:
        _show(reviewed[0])
        typer.confirm(f"Sign that {' and '.join(who)} may run it {made.uses} times?", abort=True)
    path = Path(out) if out is not None else place_of(owner, made)
    write(path, sign(made, signing, None if sign_too is None else _read(sign_too)))
    told = f"approval {made.id}, {made.uses} uses, until {_time(made.expires)}"
    typer.echo(f"wrote {from_here(path)}: {told}")


def _left(owner: Owner, old: Approval) -> int:
    """Return how often an approval may be used yet; what nobody may use any more is not renewed."""
    with closing(Ledger(owner.gate.log, read_only=True)) as ledger:
        left = old.uses - ledger.uses().get(old.id, 0)
    if left < 1:
        raise ConfigError(
            f"the {old.uses} uses of {old.id} are used up; --uses says how many more", code="C011"
        )
    return left


def approvals(
    programs: Annotated[
        list[str] | None, typer.Argument(help="Artifacts: whether they would run by them.")
    ] = None,
    config: Config = "worker.yaml",
    control: Annotated[
        str | None, typer.Option("--socket", help="Ask the worker, at its control socket.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="A worker elsewhere, as bank=https://bank.example:9000.")
    ] = None,
    tls: Annotated[str | None, typer.Option(help="Your certificate, for --at.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the approvals of your worker, and whether they count, as your gate would say.

    What depends on the program is known of those whose artifacts are given.
    """
    client = control_of(config, control, at, tls) if control or at else None
    if client is not None:
        for each in client.request("GET", "approvals"):
            typer.echo(json.dumps(each) if as_json else printable(_line(each)))
        return
    owner = Owner.read(config)
    kept = Approvals(owner.gate)
    with closing(Ledger(owner.gate.log, read_only=True)) as ledger:
        standing = Standing.of(ledger)
    for signed in kept.read():
        state, why = state_of(owner, kept, standing, signed, programs or ())
        row = approval_row(signed, standing, state, why)
        typer.echo(json.dumps(row) if as_json else printable(_line(row)))


def _line(row: dict[str, Any]) -> str:
    who, signers = ", ".join(row["for"]), ", ".join(row["signed by"]) or "nobody that counts"
    return (
        f"{row['approval']} {quoted(row['program'])} {row['digest'][:12]} for {who}: "
        f"{row['state']}{': ' * bool(row['why'])}{row['why']}; "
        f"used {row['used']} of {row['uses']} times, until {row['expires']}, signed by {signers}"
    )


def revoke(
    approval: Annotated[str, typer.Argument(help="Its name, as mplang approvals lists it.")],
    config: Config = "worker.yaml",
    control: Annotated[
        str | None, typer.Option("--socket", help="The worker's control socket, not its log.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="A worker elsewhere, as bank=https://bank.example:9000.")
    ] = None,
    tls: Annotated[str | None, typer.Option(help="Your certificate, for --at.")] = None,
) -> None:
    """Revoke an approval, at once and for good.

    The worker does it where its control socket is at hand; else it is written into its log.
    """
    if not re.fullmatch(r"[0-9a-f]{16}", approval):
        raise ConfigError(
            f"an approval is called by 16 hexadecimal digits, not {approval!r}", code="C006"
        )
    client = control_of(config, control, at, tls)
    if client is not None:
        client.request("DELETE", "approvals", approval)
    else:
        with Ledger(Owner.read(config).gate.log).writing() as writing:
            writing.revoke(approval)
            writing.add("revoked", {"approval": approval})
    typer.echo(f"approval {approval} does not count any more")


def approver_key(
    path: Annotated[str, typer.Argument(help="The file of the private key, such as alice.key.")],
) -> None:
    """Make a key to sign approvals with; the public one lies beside it, for the worker's file."""
    password = os.environ.get(PASSWORD)
    new_key(Path(path), password)
    typer.echo(f"wrote {path}, and {Path(path).with_suffix('.pub')} for gate.approvers")
    if not password:
        typer.echo(
            f"{path} is not encrypted: whoever reads it approves in your name; with a password in "
            f"${PASSWORD} it would be",
            err=True,
        )


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", code="C005") from None


def _until(expires: str | None) -> datetime.datetime:
    text = expires or EXPIRES
    found = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text)
    if found is None:
        raise ConfigError(f"--expires {text}: expected a time such as 12h, 30d or 4w", code="C006")
    span = datetime.timedelta(**{_UNITS[found[2]]: int(found[1])})
    return (datetime.datetime.now(datetime.UTC) + span).replace(microsecond=0)


def _time(when: datetime.datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"


def _show(data: Any) -> None:
    from rich.console import Console

    Console().print(data)
