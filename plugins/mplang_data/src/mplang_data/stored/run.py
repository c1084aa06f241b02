"""Storage of a party, as programs use it, and what a run knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mplang_analysis import PUBLIC, Label, Source, StorageUse, Stored

from mplang_core import BaseType, Mask
from mplang_core.ext import MPLangError, WireError
from mplang_data.stored.agreement import agree
from mplang_data.stored.entry import Card, Entry, Held, StoreError


class Storage(Protocol):
    """Storage of one party for one coordinator. Its methods raise :class:`StoreError`."""

    @property
    def run(self) -> StoreRun | None:
        """The run that uses it now; ``None`` between runs."""

    def held(self, name: str) -> Sequence[Held]:
        """Return the versions of a stored value that are here; they stay until the run ends."""

    def begin(self, name: str, members: Sequence[int]) -> None:
        """Begin to store: no other session stores the name until it is settled or abandoned."""

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

    def abandon(self, name: str, version: str, *, told: bool) -> None:
        """Release the lock of a name; the version stays if another member may have committed it.

        Args:
            name: the name.
            version: the version.
            told: whether the other members were told that it is here.
        """

    def open(self, name: str, version: str) -> tuple[Entry, Sequence[int]]:
        """Return a version and descriptors of its files, decrypted; the caller closes them.

        What was encrypted is read from a pipe, one file after the other.
        """

    def remove(self, name: str, members: Sequence[int]) -> None:
        """Remove all versions of a stored value; do nothing if there are none."""


@dataclass(frozen=True)
class StoreRun:
    """Storage as a party knows it in one run of a program.

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
        self, name: str, version: str, members: Mask, kinds: Sequence[BaseType], nest: str
    ) -> Entry:
        """Return what is kept beside a value that the run stores."""
        labels = self.stores.get(name, {})
        return Entry(
            name=name,
            version=version,
            run=self.run,
            program=self.program,
            parties=tuple(self.parties),
            members=tuple(members),
            kinds=tuple(map(str, kinds)),
            nest=nest,
            labels=tuple(labels.get(rank, PUBLIC).encode() for rank in members),
        )


def encode_versions(held: Iterable[Held]) -> list[Any]:
    """Return what a party tells the others of the versions that it holds, as plain data."""
    return [[each.card.model_dump(mode="json"), each.current] for each in held]


def decode_versions(data: Any) -> list[Held]:
    """Return the versions that a party tells of.

    Raises:
        WireError: it is malformed.
    """
    try:
        return [Held(Card(**card), bool(current)) for card, current in data]
    except (MPLangError, TypeError, ValueError, RecursionError) as error:
        raise WireError(
            f"a party's description of its storage is malformed: {error}", code="L005"
        ) from None


def resolve_loads(
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
        NotStoredError: no member has stored one.
        StoreError: the members do not hold one version.
    """
    versions: dict[StorageUse, str] = {}
    labels: dict[str, dict[int, Label]] = {}
    for load in loads:
        name = load.name
        card = agree(
            name, tuple(load.parties), parties, {r: each.get(name, ()) for r, each in held.items()}
        )
        versions[load] = card.version
        # whoever stored it, too, tells whose data it is: one who leaves it out is contradicted
        told = [
            each.card
            for of_party in held.values()
            for each in of_party.get(name, ())
            if each.card.like() == card.like()
        ]
        found = labels.setdefault(name, {})
        for rank in load.parties:
            before = card.parties.index(parties[rank])
            for each in told:
                label = translate_label(each.label(before), card.parties, parties, name)
                found[rank] = found[rank] | label if rank in found else label
    return versions, labels


def translate_label(label: Label, before: Sequence[str], now: Sequence[str], name: str) -> Label:
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
        sources.add(Source(ranks[owner], known, source.name, source.guards))
    return replace(label, sources=frozenset(sources))
