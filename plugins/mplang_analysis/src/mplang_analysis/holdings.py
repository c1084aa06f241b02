"""Holdings: the shares, keys and ciphertexts that each party has, and what they open together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mplang_analysis.labels import (
    ANY,
    MAX_ENTRIES,
    NEW,
    OPEN,
    OUTSIDE,
    Label,
    Piece,
    own,
    own_key,
    union,
)
from mplang_analysis.source_names import EARLIER_RUN
from mplang_core import BaseType, Form, Mask

Sealed = tuple[BaseType, Label]
"""A ciphertext that a party has: its type and its label."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Data that one party had at some time, and may remember.

    Attributes:
        shares: the label of its shares, all together.
        received: the labels of the shares that others sent it.
        keys: the identities of its keys.
        sealed: its ciphertexts, those that it cannot decrypt, too.
    """

    shares: Label = field(default_factory=Label)
    received: frozenset[Label] = frozenset()
    keys: frozenset[str] = frozenset()
    sealed: frozenset[Sealed] = frozenset()


def is_protected(facts: Iterable[Mapping[int, Label]]) -> bool:
    """Return whether a label is of a share, a key or a ciphertext, so that others may open it."""
    given = (label for fact in facts for label in fact.values())
    return any(label.pieces or label.derived or label.keys - {OUTSIDE} for label in given)


def unknown_history(world: Mask) -> dict[int, Holding]:
    """Return what parties may have got in runs of which nothing is known: anything.

    Args:
        world: the parties.

    Example:
        >>> unknown_history(Mask.of(0))[0].keys == frozenset([ANY])
        True
    """
    anyone = union(own(party, EARLIER_RUN) for party in world)
    shares = Label(anyone.sources, frozenset(Piece(ANY, share) for share in (-1, *world)))
    return {rank: Holding(shares=shares, keys=frozenset([ANY])) for rank in world}


@dataclass(slots=True)
class _Party:
    """Values of one party; ``old`` and ``first_…`` are from before the program.

    ``under`` has the labels of its ciphertexts by the identities of their keys.
    """

    shares: set[Piece] = field(default_factory=set)
    derived: set[Piece] = field(default_factory=set)
    old: set[Piece] = field(default_factory=set)
    received: dict[Label, None] = field(default_factory=dict)
    first_received: list[Label] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    sealed: dict[Sealed, None] = field(default_factory=dict)
    under: dict[str, dict[Label, None]] = field(default_factory=lambda: defaultdict(dict))
    first_keys: set[str] = field(default_factory=set)
    first_sealed: dict[Sealed, None] = field(default_factory=dict)

    def add_shares(self, label: Label, *, old: bool = False) -> None:
        self.shares |= label.pieces
        self.derived |= label.derived
        if old:
            self.old |= label.pieces | label.derived

    def add_sealed(self, kind: BaseType, label: Label) -> None:
        self.sealed[kind, label] = None
        for key in label.keys:
            self.under[key][label] = None

    def decrypts(self, label: Label, keys: set[str]) -> bool:
        if not label.keys or not label.keys.isdisjoint((ANY, OUTSIDE)):
            return True  # nobody knows who can, so anybody may
        return ANY in keys or not keys.isdisjoint(label.keys)


class Holdings:
    """Holdings of all parties. Ask when the run is over: what comes later opens what came earlier.

    Args:
        before: per party what it had before.
    """

    def __init__(self, before: Mapping[int, Holding]) -> None:
        self._parties: dict[int, _Party] = defaultdict(_Party)
        self._indices: dict[int, tuple[_Index, _Index]] = {}
        for rank, held in before.items():
            party = self._parties[rank]
            party.add_shares(held.shares, old=True)
            party.first_received = list(held.received)
            party.received = dict.fromkeys(held.received)
            party.keys |= held.keys
            party.first_keys |= held.keys
            for kind, label in sorted(held.sealed, key=str):
                party.add_sealed(kind, label)
            party.first_sealed = dict(party.sealed)

    # -- while the program is followed

    def begin(self, rank: int, kind: BaseType, label: Label) -> None:
        """Record an input of the program."""
        self.add(rank, kind, label)
        party = self._parties[rank]
        match kind.form:
            case Form.KEY:
                party.first_keys |= label.keys
            case Form.SHARE:
                party.add_shares(label, old=True)
            case Form.CIPHERTEXT:
                party.first_sealed[kind, label] = None

    def add(self, rank: int, kind: BaseType, label: Label, *, received: bool = False) -> None:
        """Record a value that a party gets.

        Args:
            rank: the party.
            kind: the type of its copy.
            label: the label of its copy.
            received: whether others sent it.
        """
        party = self._parties[rank]
        match kind.form:
            case Form.KEY:
                party.keys |= label.keys
            case Form.SHARE:
                party.add_shares(label)
            case Form.CIPHERTEXT:
                party.add_sealed(kind, label)
        if received and contains(kind, Form.SHARE):
            party.received[Label(label.sources, label.pieces, label.derived)] = None

    def add_key(self, rank: int, key: str) -> None:
        """Record a key of a party, by its identity."""
        self._parties[rank].keys.add(key)

    @property
    def size(self) -> int:
        """The number of keys and ciphertexts that parties have, which only grows."""
        return sum(len(party.keys) + len(party.sealed) for party in self._parties.values())

    def in_place_of(self, rank: int, label: Label) -> Label:
        """Return the label of what a party may send as a ciphertext: others that have its keys.

        Only those count that the party cannot read: of what it reads, it learns nothing by that.
        Keys that others may have handed on as theirs do not: not all parties deviate at once.
        """
        party = self._parties[rank]
        unknown = not label.keys.isdisjoint((ANY, OUTSIDE))
        keys = set(party.under) if unknown else label.keys - set(map(own_key, self._parties))
        others = (each for key in sorted(keys) for each in party.under.get(key, ()))
        return union([label, *(each for each in others if not party.decrypts(each, party.keys))])

    def settle(self) -> None:
        """Add what is in ciphertexts that their holders can decrypt."""
        for party in self._parties.values():
            keys = -1
            while keys != len(party.keys):
                keys = len(party.keys)
                for kind, label in party.sealed:
                    if party.decrypts(label, party.keys):
                        if contains(kind, Form.SHARE):
                            party.add_shares(label, old=(kind, label) in party.first_sealed)
                        if contains(kind, Form.KEY):
                            party.keys |= label.keys

    # -- afterwards

    def read(self, rank: int, kind: BaseType, label: Label) -> Label | None:
        """Return the label of what a party reads by a value that it gets.

        Returns:
            The label, also of shares that it received before and opens by it; ``None`` if the
            party cannot read it.
        """
        party, form = self._parties[rank], kind.form
        if form in (Form.PLAIN, Form.KEY):
            return label
        if form is Form.CIPHERTEXT and party.decrypts(label, party.keys):
            if not contains(kind, Form.SHARE):
                return label
            form = Form.SHARE
        if form is not Form.SHARE or not self._opens(rank, label):
            return None
        pieces = label.pieces | label.derived
        met = (
            old.data()
            for old in party.first_received
            if any(_Index(old.pieces | old.derived).has_other(piece) for piece in pieces)
        )
        return union([label, *met])

    def unlocked(self, rank: int) -> Iterator[Sealed]:
        """Yield the ciphertexts of before that a party could not decrypt then, and reads now."""
        party = self._parties[rank]
        for kind, label in party.first_sealed:
            if not party.decrypts(label, party.first_keys) and self.read(rank, kind, label):
                yield kind, label

    def of(self, rank: int) -> Holding:
        """Return what a party had at some time."""
        party = self._parties[rank]
        shares, derived = frozenset(party.shares), frozenset(party.derived)
        settled = Label(pieces=shares, derived=derived, keys=frozenset(party.keys)).made_by("")
        received = {label.made_by("") for label in party.received}
        if len(received) > MAX_ENTRIES:
            received = {union(received).made_by("")}
        return Holding(
            Label(pieces=settled.pieces, derived=settled.derived),
            frozenset(received),
            settled.keys,
            _bounded(party.sealed),
        )

    def _opens(self, rank: int, label: Label) -> bool:
        """Return whether a party has another share of a secret of what it gets.

        That a share meets what was computed on its sibling in the same program is told where the
        computed one arrives, which all of the data flowed into.
        """
        if any(piece.secret == OPEN for piece in label.derived):
            return True
        if rank not in self._indices:
            party = self._parties[rank]
            self._indices[rank] = (
                _Index(party.shares | party.old),
                _Index(party.shares | party.derived),
            )
        siblings, everything = self._indices[rank]
        return any(map(siblings.has_other, label.pieces)) or any(
            map(everything.has_other, label.derived)
        )


class _Index:
    """Shares by their secrets."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._found: dict[str, set[int]] = defaultdict(set)
        self._old: set[int] = set()
        for secret, share in pieces:
            self._found[secret].add(share)
            if not secret.startswith(NEW):
                self._old.add(share)

    def has_other(self, piece: Piece) -> bool:
        """Return whether there is another share of what may be the same secret."""
        if piece.secret == ANY:
            return bool(self._old - {piece.share})
        unknown = set() if piece.secret.startswith(NEW) else self._found.get(ANY, set())
        return bool((self._found.get(piece.secret, set()) | unknown) - {piece.share})


def contains(kind: BaseType, form: Form) -> bool:
    """Return whether a value of a type is of a form, or a ciphertext of one that is.

    Example:
        >>> from mplang_core import TensorType
        >>> contains(TensorType("f32"), Form.SHARE)
        False
    """
    inner = (param for param in kind.params() if isinstance(param, BaseType))
    sealed = kind.form is Form.CIPHERTEXT and any(contains(each, form) for each in inner)
    return kind.form is form or sealed


def _bounded(sealed: Iterable[Sealed]) -> frozenset[Sealed]:
    """Return at most ``MAX_ENTRIES`` ciphertexts, or one of each type that stands for all."""
    found = {(kind, label.made_by("")) for kind, label in sealed}
    if len(found) > MAX_ENTRIES:
        kinds = {kind for kind, _ in found}
        found = {(k, union(la for kind, la in found if kind == k).made_by("")) for k in kinds}
    return frozenset(found)
