"""Implementation of ``mplang review`` and ``mplang approve``."""

from __future__ import annotations

import datetime
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mplang_analysis import Link, disclosure
from mplang_analysis.ext import quoted

import mplang_core as mp
from mplang_core import Program
from mplang_core.ext import ConfigError
from mplang_policy.approval import CURRENT, AllowedInput, Approval, rows_of
from mplang_policy.approvals import SUFFIX, Approvals, Wanted
from mplang_policy.decision import decide_program
from mplang_policy.envelope import Signed
from mplang_policy.offline import asked_of, labels_of
from mplang_policy.owner import Owner
from mplang_policy.owner_view import COUNTS, refusal_of_worker, state_of as standing_state
from mplang_policy.review import Review
from mplang_policy.standing import Standing

OF_A_SIGNATURE = {"id", "uses", "made", "expires"}
"""Fields in which two approvals of the same may differ."""


def review_of(
    owner: Owner, program: str, coordinator: str, given: Sequence[str], link: Link | None = None
) -> Review:
    """Return the review of an artifact.

    Args:
        owner: whose worker it would run at.
        program: the file of the artifact.
        coordinator: who would run it.
        given: what its public inputs may be, as ``year=2015..2025``.
        link: the network between the parties, if what protocols take is to be counted.

    Raises:
        MPLangError: it is not an artifact, its owner takes no part, or an input is none.
    """
    packed = mp.artifact.load(program)
    names, titles = packed.cluster.parties, list(packed.signature.names)
    stored, mode = owner.stored(coordinator, names), str(owner.fields.get("mode", "production"))
    asked = asked_of(packed.program, names, owner.party, coordinator, mode, stored)
    labels = labels_of(packed.program)
    return Review.of(
        program=packed.program,
        asked=asked,
        decision=decide_program(owner.rules(), asked),
        discloses=disclosure(packed.program, labels=labels, names=names, stored=stored),
        inputs=allowed_inputs(packed.program, titles, given),
        devices=[str(each) for each in packed.cluster.devices],
        names=titles,
        link=link,
    )


def allowed_inputs(
    program: Program, names: Sequence[str], given: Sequence[str]
) -> dict[int, AllowedInput]:
    """Return what public inputs may be, by position.

    Args:
        program: the program.
        names: names of its inputs.
        given: what was said, as ``year=2015..2025``, or by its position, ``0=2015..2025``.

    Raises:
        ConfigError: there is no such input, or that is no range.
    """
    found = {}
    for text in given:
        name, _, value = text.partition("=")
        position = _position(name, names)
        if position is None:
            raise ConfigError(
                f"--input {text}: it takes {_listed(names) or 'no inputs'}", code="C006"
            )
        name = names[position]
        kind = str(program.graph.inputs[position].type)
        found[position] = AllowedInput(name=name, type=kind, **_values(text, value))
    return found


def _position(name: str, names: Sequence[str]) -> int | None:
    """Return the position of an input by its name, or by its number if no name is one."""
    if name in names:
        return list(names).index(name)
    is_number = name.isascii() and name.isdigit() and int(name) < len(names)
    return int(name) if is_number else None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name, None) for name in names)


def _values(text: str, value: str) -> dict[str, Any]:
    try:
        if value == "any":
            return {"anything": True}
        low, dots, high = value.partition("..")
        if dots:
            return {"low": float(low), "high": float(high)}
        return {"values": tuple(float(each) for each in value.split(","))}
    except ValueError:
        raise ConfigError(
            f"--input {text}: expected x=LOW..HIGH, x=3,5 or x=any", code="C006"
        ) from None


def as_option(allowed: AllowedInput) -> str:
    """Return what an input may be, as the command takes it.

    Example:
        >>> as_option(AllowedInput(name="k", type="i64[]", values=(3, 5)))
        '3,5'
    """
    if allowed.anything:
        return "any"
    if allowed.values:
        return ",".join(str(each) for each in allowed.values)
    return f"{allowed.low}..{allowed.high}"


def made_of(
    owner: Owner,
    program: str,
    reviewed: Sequence[Review],
    uses: int,
    expires: datetime.datetime,
    old: Approval | None = None,
) -> Approval:
    """Return the approval of what was reviewed.

    Args:
        owner: whose it is.
        program: the file of the artifact.
        reviewed: its review for each coordinator.
        uses: how often it may run.
        expires: until when.
        old: what it renews, or signs too, whose version it has.

    Raises:
        ConfigError: nothing was said of a public input.
    """
    found = reviewed[0]
    silent = [quoted(found.names[i], None) for i in found.public_inputs if i not in found.inputs]
    if silent:
        raise ConfigError(
            f"say what {' and '.join(silent)} may be, by --input {silent[0]}=LOW..HIGH: each run "
            "may give another value",
            code="C011",
        )
    requirements = mp.artifact.load(program).requirements
    version = old.version if old is not None else CURRENT
    return Approval(
        version=version,
        id=secrets.token_hex(8),
        party=owner.party,
        program=found.program.digest,
        name=found.program.name,
        shown=found.asked.shown if version == 1 else found.asked.texts,
        rows=tuple(row for each in reviewed for row in rows_of(each.decision.requests)),
        parties=tuple(found.asked.names),
        coordinators=tuple(each.asked.coordinator for each in reviewed),
        data_sets=tuple(sorted({name.partition(".")[0] for name in found.asked.reads})),
        inputs=dict(found.inputs),
        versions={each.distribution: each.here or "" for each in requirements},
        uses=uses,
        made=datetime.datetime.now(datetime.UTC),
        expires=expires,
    )


def state_of(
    owner: Owner, kept: Approvals, standing: Standing, signed: Signed, programs: Sequence[str]
) -> tuple[str, str]:
    """Return what an approval is in a word or two, and why it does not count, as the gate would.

    Args:
        owner: whose it is.
        kept: the approvals of the worker.
        standing: what log, packages and time say.
        signed: the approval.
        programs: files of artifacts, which may have its program.

    Raises:
        MPLangError: a program cannot be read.
    """
    approval = signed.approval
    state, why = standing_state(kept, standing, signed)
    if state != COUNTS:
        return state, why
    why = refusal_of_worker(approval, owner.party, owner.names, owner.rules)
    for program in programs if not why else ():
        if mp.artifact.load(program).program.digest == approval.program:
            why = why or _other_answer(owner, approval, program)
    return ("refused", why) if why else (COUNTS, "")


def _other_answer(owner: Owner, approval: Approval, program: str) -> str:
    """Return why the gate would refuse a program though it is approved; empty if it would not."""
    for who in approval.coordinators:
        if who not in owner.coordinators:
            continue
        reviewed = review_of(owner, program, who, ())
        asked, requests = reviewed.asked, reviewed.decision.requests
        why = Wanted(asked, (), owner.party, requests).other_program(approval)
        if not why and not decide_program(owner.rules(), asked, approved=True).allowed:
            why = f"the rules never permit it to {who}"
        if why:
            return why
    return ""


def changes(old: Approval, new: Approval) -> list[str]:
    """Return the names of the fields in which two approvals differ."""
    names = [name for name in Approval.model_fields if name not in OF_A_SIGNATURE]
    return [name for name in names if getattr(old, name) != getattr(new, name)]


def versions_told(old: Approval, new: Approval) -> str:
    """Return which versions differ, in words."""
    told = [
        f"{name} {old.versions.get(name, '-')} to {new.versions.get(name, '-')}"
        for name in sorted({*old.versions, *new.versions})
        if old.versions.get(name) != new.versions.get(name)
    ]
    return ", ".join(told) or "none"


def place_of(owner: Owner, made: Approval) -> Path:
    """Return the file of an approval in the folder of its worker.

    Raises:
        ConfigError: the worker has none.
    """
    if owner.gate.approvals is None:
        raise ConfigError("your worker has no folder gate.approvals; give --out", code="C011")
    name = re.sub(r"[^A-Za-z0-9_-]", "_", made.name)[:40]
    return Path(owner.gate.approvals) / f"{name}-{made.id}{SUFFIX}"


def write(path: Path, data: bytes) -> None:
    """Write a file whole, in a folder that is made if it is not there.

    Raises:
        ConfigError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        os.replace(part, path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}", code="C005") from None
