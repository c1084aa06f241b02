"""Holdings: the shares, keys and ciphertexts that each party has, and what they open together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mplang_analysis.labels import ANY, MAX_ENTRIES, NEW, Label, Piece, union
from mplang_core import BaseType, Form

Sealed = tuple[BaseType, Label]
"""A ciphertext that a party has: its type and its label."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What one party had at some time, and may remember.

    Attributes:
        shares: the labels of its shares, one per share of a secret.
        keys: the identities of its keys.
        sealed: its ciphertexts, those that it cannot decrypt, too.
    """

    shares: frozenset[Label] = frozenset()
    keys: frozenset[str] = frozenset()
    sealed: frozenset[Sealed] = frozenset()


@dataclass(slots=True)
class _Shares:
    """Shares of one party: what flowed into them, by the secret and the index of the share."""

    found: dict[str, dict[int, Label]] = field(default_factory=dict)

    def add(self, piece: Piece, label: Label) -> None:
        indices = self.found.setdefault(piece.secret, {})
        indices[piece.share] = indices[piece.share] | label if piece.share in indices else label

    def others(self, piece: Piece) -> Iterator[Label]:
        """Yield the labels of the other shares of what may be the same secret."""
        for secret in self._related(piece.secret):
            for index, label in self.found[secret].items():
                if index != piece.share:
                    yield label

    def _related(self, secret: str) -> Iterable[str]:
        if secret == ANY:
            return [each for each in self.found if not each.startswith(NEW)]
        unknown = () if secret.startswith(NEW) else (ANY,)
        return [each for each in (secret, *unknown) if each in self.found]


@dataclass(slots=True)
class _Party:
    """What one party has; ``first_…`` and ``old`` are of before the program."""

    shares: _Shares = field(default_factory=_Shares)
    derived: _Shares = field(default_factory=_Shares)
    old: _Shares = field(default_factory=_Shares)
    keys: set[str] = field(default_factory=set)
    sealed: dict[Sealed, None] = field(default_factory=dict)
    first_keys: set[str] = field(default_factory=set)
    first_sealed: dict[Sealed, None] = field(default_factory=dict)

    def add_shares(self, label: Label, *, old: bool = False) -> None:
        data = label.data()
        for piece in label.pieces:
            (self.derived if piece.derived else self.shares).add(piece, data)
            if old:
                self.old.add(piece, data)

    def met(self, label: Label) -> list[Label]:
        """Return the labels of the shares that open one that the party gets.

        The meeting of a share with one that is computed on its sibling is told where the
        computed one arrives, which all of the data flowed into.
        """
        return [
            other
            for piece in label.pieces
            for held in (self.shares, self.derived if piece.derived else self.old)
            for other in held.others(piece)
        ]

    def decrypts(self, label: Label, keys: set[str]) -> bool:
        unknown = not label.keys or ANY in label.keys or ANY in keys
        return bool(keys) and (unknown or not keys.isdisjoint(label.keys))


class Holdings:
    """Holdings of all parties. Ask when the run is over: what comes later opens what came earlier.

    Args:
        before: per party what it had before.
    """

    def __init__(self, before: Mapping[int, Holding]) -> None:
        self._parties: dict[int, _Party] = defaultdict(_Party)
        for rank, held in before.items():
            party = self._parties[rank]
            party.keys |= held.keys
            party.first_keys |= held.keys
            for each in sorted(held.sealed, key=str):
                party.sealed[each] = party.first_sealed[each] = None
            for label in held.shares:
                party.add_shares(label, old=True)

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

    def add(self, rank: int, kind: BaseType, label: Label) -> None:
        """Record a value that a party gets.

        Args:
            rank: the party.
            kind: the type of its copy.
            label: the label of its copy.
        """
        match kind.form:
            case Form.KEY:
                self._parties[rank].keys |= label.keys
            case Form.SHARE:
                self._parties[rank].add_shares(label)
            case Form.CIPHERTEXT:
                self._parties[rank].sealed[kind, label] = None

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
            The label, also of shares that it opens together with the value; ``None`` if the
            party cannot read it.
        """
        party, form = self._parties[rank], kind.form
        if form in (Form.PLAIN, Form.KEY):
            return label
        if form is Form.CIPHERTEXT and party.decrypts(label, party.keys):
            if not contains(kind, Form.SHARE):
                return label
            form = Form.SHARE
        met = party.met(label) if form is Form.SHARE else []
        return union([label, *met]) if met else None

    def unlocked(self, rank: int) -> Iterator[Sealed]:
        """Yield the ciphertexts of before that a party could not decrypt then, and reads now."""
        party = self._parties[rank]
        for kind, label in party.first_sealed:
            if not party.decrypts(label, party.first_keys) and self.read(rank, kind, label):
                yield kind, label

    def of(self, rank: int) -> Holding:
        """Return what a party had at some time."""
        party = self._parties[rank]
        shares = {
            (secret, index, derived): label
            for derived, held in ((False, party.shares), (True, party.derived))
            for secret, indices in held.found.items()
            for index, label in indices.items()
        }
        labels = {
            Label(label.sources, frozenset([Piece(*piece)])).made_by("")
            for piece, label in shares.items()
        }
        if len(labels) > MAX_ENTRIES:
            labels = {union(labels).made_by("")}
        keys = Label(keys=frozenset(party.keys)).made_by("").keys
        return Holding(frozenset(labels), keys, _bounded(party.sealed))


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
