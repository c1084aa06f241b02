"""Storage of a party, as programs use it, and what a run knows of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mplang_analysis import PUBLIC, Label, Source, StorageUse, Stored

from mplang_core import BaseType, Mask
from mplang_core.ext import WireError
from mplang_data.stored.agreement import agree
from mplang_data.stored.entry import Entry, Held, StoreError


class Storage(Protocol):
    """Storage of one party for one coordinator. Its methods raise :class:`StoreError`."""

    @property
    def run(self) -> StoreRun | None:
        """The run that uses it now; ``None`` between runs."""

    def held(self, name: str) -> Sequence[Held]:
        """Return the versions of a stored value that are here, whole."""

    def stage(self, entry: Entry, files: Sequence[int]) -> None:
        """Write a version whole, beside the one that is current.

        Args:
            entry: what is kept beside it.
            files: descriptors of sealed memory files with its values, in order.
        """

    def commit(self, name: str, version: str) -> None:
        """Make a version that is here the current one."""

    def settle(self, name: str, version: str) -> None:
        """Remove all versions but one, as all members have made it their current one."""

    def open(self, name: str, version: str) -> tuple[Entry, Sequence[int]]:
        """Return a version and descriptors of its files, decrypted; the caller closes them."""

    def remove(self, name: str) -> None:
        """Remove all versions of a stored value; do nothing if there are none."""


@dataclass(frozen=True)
class StoreRun:
    """What a party knows of storage in one run of a program.

    Attributes:
        run: the name of the run.
        program: the digest of the program.
        parties: names of the parties, by rank.
        loads: the versions that it loads, by the use.
        stores: the labels of what it stores.
    """

    run: str
    program: str
    parties: Sequence[str]
    loads: Mapping[StorageUse, str] = field(default_factory=dict)
    stores: Stored = field(default_factory=dict)

    def storing(self, labels: Stored) -> StoreRun:
        """Return it with the labels of what it stores."""
        return replace(self, stores=labels)

    def entry(
        self,
        name: str,
        version: str,
        previous: str | None,
        members: Mask,
        kinds: Sequence[BaseType],
        nest: str,
    ) -> Entry:
        """Return what is kept beside a value that the run stores."""
        labels = self.stores.get(name, {})
        return Entry(
            name=name,
            version=version,
            previous=previous,
            run=self.run,
            program=self.program,
            time=time.time(),
            parties=tuple(self.parties),
            members=tuple(members),
            kinds=tuple(map(str, kinds)),
            nest=nest,
            labels=tuple(labels.get(rank, PUBLIC).encode() for rank in members),
        )


def tell(held: Iterable[Held]) -> list[Any]:
    """Return what a party tells the others of the versions that it holds, as plain data."""
    return [[each.entry.model_dump(mode="json"), each.current] for each in held]


def read_told(data: Any) -> list[Held]:
    """Return the versions that a party tells of.

    Raises:
        WireError: it is malformed.
    """
    try:
        return [Held(Entry(**entry), bool(current)) for entry, current in data]
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(f"what a party tells of its storage is malformed: {error}") from None


def resolve(
    loads: Sequence[StorageUse],
    parties: Sequence[str],
    held: Mapping[int, Mapping[str, Sequence[Held]]],
) -> tuple[dict[StorageUse, str], dict[str, dict[int, Label]]]:
    """Return the versions that a run loads, and their labels, the same at all parties.

    Args:
        loads: what the program loads; each use has the action ``load``.
        parties: names of the parties, by rank.
        held: by rank and by name the versions that the parties hold.

    Raises:
        NotStoredError: a member holds none.
        StoreError: the members do not hold one version.
    """
    versions: dict[StorageUse, str] = {}
    labels: dict[str, dict[int, Label]] = {}
    for load in loads:
        mine = {rank: held.get(rank, {}).get(load.name, ()) for rank in load.parties}
        version = agree(load.name, tuple(load.parties), parties, mine)
        versions[load] = version
        entries = [e.entry for each in mine.values() for e in each if e.entry.version == version]
        found = labels.setdefault(load.name, {})
        for rank in load.parties:
            for entry in entries:  # a member that leaves something out is contradicted by another
                label = translated(entry.label(rank), entry.parties, parties, load.name)
                found[rank] = found[rank] | label if rank in found else label
    return versions, labels


def translated(label: Label, before: Sequence[str], now: Sequence[str], name: str) -> Label:
    """Return a label by the ranks of another session.

    Args:
        label: the label.
        before: names of the parties by rank, where it was made.
        now: names of the parties by rank, in this session.
        name: name of what is stored.

    Raises:
        StoreError: it has data of somebody who takes no part in this session.
    """
    if list(before) == list(now):
        return label
    ranks = {party: rank for rank, party in enumerate(now)}
    sources = set()
    for source in label.sources:
        owner = before[source.party] if source.party < len(before) else "somebody"
        if owner not in ranks:
            raise StoreError(
                f"{name!r} is made of data of {owner}, who takes no part in this session"
            )
        known = Mask.from_ranks(
            ranks[before[rank]]
            for rank in source.known_to
            if rank < len(before) and before[rank] in ranks
        )
        sources.add(Source(ranks[owner], known, source.name))
    return replace(label, sources=frozenset(sources))
