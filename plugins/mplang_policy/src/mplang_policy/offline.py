"""A program before it runs, as the gate of a party would see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mplang_analysis import (
    PUBLIC,
    PUT,
    Followed,
    Label,
    Memory,
    ProgramRequest,
    Stored,
    data_reads,
    lines_digest,
    own,
    path_to,
    stored_forms,
    texts_digest,
)
from mplang_analysis.ext import quoted

from mplang_core import MPType, Program
from mplang_core.ext import ConfigError
from mplang_policy.decision import Decision


def asked_of(
    program: Program,
    names: Sequence[str],
    party: str,
    coordinator: str,
    mode: str,
    stored: Stored | None = None,
) -> ProgramRequest:
    """Return what a program would ask of the rules of a party in a session's first run.

    An input that all parties have counts as public, any other as put by the coordinator.

    Args:
        program: the whole program.
        names: names of the parties, by rank.
        party: the party whose rules are asked.
        coordinator: who would run it.
        mode: mode of the worker.
        stored: labels of what the parties have in storage, by name; unknown where it is left out.

    Raises:
        ConfigError: the party does not take part.
    """
    if party not in names:
        parties = ", ".join(map(quoted, names))
        raise ConfigError(
            f"{party} is not a party of {quoted(program.name)}: {parties}", code="C006"
        )
    followed, rank = followed_of(program, stored), list(names).index(party)
    stores = {
        name: {at: sorted(label.sources) for at, label in each.items()}
        for name, each in followed.stores.items()
    }
    return ProgramRequest(
        coordinator=coordinator,
        party=rank,
        names=names,
        program=program.digest,
        name=program.name,
        rows=followed.disclosure.rows,
        reads=data_reads(program).get(rank, ()),
        stores=stores,
        forms=stored_forms(program),
        mode=mode,
        shown=lines_digest(program),
        texts=texts_digest(program),
        spends=followed.spends,
        remarks=followed.remarks,
    )


def followed_of(program: Program, stored: Stored | None) -> Followed:
    """Return what the first run of a session does with labels."""
    return Memory().follow(program, labels_of(program), stored=stored)


def labels_of(program: Program) -> list[Mapping[int, Label]]:
    """Return per input the labels of its copies: public ones, and what coordinators put."""
    found: list[Mapping[int, Label]] = []
    for value in program.graph.inputs:
        assert isinstance(value.type, MPType)
        holders = value.type.pmask or program.mask
        public = holders == program.mask and len(holders) > 1
        found.append({rank: PUBLIC if public else own(rank, PUT) for rank in holders})
    return found


def paths_of(program: Program, decision: Decision) -> list[Sequence[str]]:
    """Return for each refusal that is told the lines by which its source comes there."""
    return [() if each is None else path_to(program, *each) for each in decision.sources()]
