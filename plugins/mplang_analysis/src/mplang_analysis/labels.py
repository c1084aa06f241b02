"""Labels: whose data flowed into a party's copy of a value, from program to program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from hashlib import blake2b
from operator import or_
from typing import Any, NamedTuple, NoReturn

from mplang_analysis.guarding import WHOLE
from mplang_analysis.lineage import Guard, Lineage, Origin
from mplang_core import Mask
from mplang_core.ext import WireError

MAX_ENTRIES = 4096  # sources, pieces or keys of one label
MAX_PARTIES = 1024
MAX_NAME = 200  # characters of the name of a source
LABEL_FIELDS = 5  # and two more that few labels have
MAX_MULTIPLIED = 2  # ops one after the other that may each give several times as many rows
GUARD_FIELDS = 5  # and one more of those that bound the part of one unit
MAX_GUARDS = 16  # that private data went through, one after the other
MAX_WORDS = 256  # uses, units or functions of a guard

DATA_SET = "data set "
"""Prefix of the name of a source that is a data set, or a column of one."""

SEVERAL = "several"
"""Name of a source that stands for all of a party's data, where there are too many to be named."""

ANY = "*"
"""Identity of a secret or a key of which nothing is known: it may be every other one."""

OUTSIDE = "?"
"""Identity of a key that was put or read: anybody may have what opens the ciphertexts under it."""

OPEN = "!"
"""Identity of a secret that anybody reads by one share: what is plain flowed into it as it is."""

NEW = "+"
"""Prefix of the identity of a secret or a key that the program itself makes."""

EVERY = -1
"""Instead of a party every one."""

_IDENTITY = re.compile(r"[*?!]|[0-9a-f]{32}")
_DIGEST = re.compile(r"|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Source:
    """Private datum, or several that are treated alike.

    Attributes:
        party: whose it is.
        known_to: the parties that know it from the beginning.
        name: what it is, such as ``"input 0"`` or the name of the op that reads it.
        guards: what it went through, so that the value tells no row of it.

    Example:
        >>> sorted([Source(1, Mask.of(1), "input 0"), Source(0, Mask.of(0), "put")])[0].name
        'put'
    """

    party: int
    known_to: Mask
    name: str
    guards: tuple[Guard, ...] = ()

    def __lt__(self, other: Source) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[int, int, str, tuple[Guard, ...]]:
        return self.party, self.known_to.bits, self.name, self.guards

    @property
    def origin(self) -> Origin:
        """Origin, whatever ops it went through."""
        return Origin(self.party, self.name)

    def settled(self) -> Source:
        """Return it without guards that are waited for: they are of the same program."""
        if not any(guard.waits for guard in self.guards):
            return self
        return replace(self, guards=tuple(each for each in self.guards if not each.waits))


class Changer(NamedTuple):
    """Parties that can change a value, unnoticed.

    Attributes:
        party: the party; ``EVERY`` for every party.
        protocol: the protocol, which does not notice; empty if it has no name.
    """

    party: int
    protocol: str


class Piece(NamedTuple):
    """A share of a secret.

    Attributes:
        secret: the identity of the secret.
        share: which one of its shares it is, by its index.
    """

    secret: str
    share: int


@dataclass(frozen=True, slots=True)
class Label:
    """Sources in the copy of a value that one party holds.

    Attributes:
        sources: the private data.
        pieces: the shares that it is or contains.
        derived: the shares that it was computed on, and is still a share of the same secrets by.
        keys: the identities of the keys, of a key, a public key or a ciphertext.
        program: the digest of the program that made it; empty for a value that was put.
        lineage: of a table within a program, which of its columns are those of data sets.
        changers: who can have changed it, unnoticed, where it was computed on shares.
        multiplied: by how many ops, one after the other, that may each give several times as many
            rows or bytes as they get; at most one more than ``MAX_MULTIPLIED``.

    Example:
        >>> label = own(0, "input 0") | own(1, "input 1")
        >>> print(label.parties, label.news_to(0), label.news_to(None))
        {0, 1} {1} {0, 1}
        >>> Label.decode(label.encode()) == label
        True
    """

    sources: frozenset[Source] = frozenset()
    pieces: frozenset[Piece] = frozenset()
    derived: frozenset[Piece] = frozenset()
    keys: frozenset[str] = frozenset()
    program: str = ""
    lineage: Lineage | None = None
    changers: frozenset[Changer] = frozenset()
    multiplied: int = 0

    def __or__(self, other: Label) -> Label:
        """Return the label of what is made of both."""
        if other is self or (other is PUBLIC and not self.program):
            return self
        if (self is PUBLIC and not other.program) or other == self:
            return other
        program = self.program if self.program == other.program else ""
        return Label(  # of no lineage: it may be something else than a table of those rows
            self.sources | other.sources,
            self.pieces | other.pieces,
            self.derived | other.derived,
            self.keys | other.keys,
            program,
            changers=self.changers | other.changers,
            multiplied=max(self.multiplied, other.multiplied),
        )

    @property
    def parties(self) -> Mask:
        """The parties whose data it is."""
        return Mask.from_ranks(source.party for source in self.sources)

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets and columns that it is made of, such as ``0/patients.age``."""
        return data_sets(self.sources)

    def news_to(self, rank: int | None) -> Mask:
        """Return the parties whose data is news to a party; to the host, ``None``, all is."""
        return Mask.from_ranks(s.party for s in self.sources if rank not in s.known_to)

    def data(self) -> Label:
        """Return the label of something that depends on it, and is neither share nor key."""
        return replace(self.plain(), keys=frozenset()) if self.keys else self.plain()

    def plain(self) -> Label:
        """Return the label of something that is made of it, and is not a share."""
        if not (self.pieces or self.derived or self.program or self.lineage):
            return self
        return Label(
            self.sources, keys=self.keys, changers=self.changers, multiplied=self.multiplied
        )

    def multiply(self) -> Label:
        """Return the label of what may have several times as many rows or bytes."""
        return replace(self, multiplied=min(self.multiplied, MAX_MULTIPLIED) + 1)

    def guarded(self, guards: Mapping[Origin, Guard]) -> Label:
        """Return the label of what tells no row of some private data.

        Args:
            guards: what that went through.
        """
        return Label(
            frozenset(
                replace(source, guards=(*source.guards, guards[source.origin]))
                if source.origin in guards
                else source
                for source in self.sources
            ),
            keys=self.keys,
            changers=self.changers,
            multiplied=self.multiplied,
        )

    def settled(self) -> Label:
        """Return it without guards that are waited for, which count for nothing."""
        if not any(guard.waits for source in self.sources for guard in source.guards):
            return self
        return replace(self, sources=frozenset(each.settled() for each in self.sources))

    def unlike(self) -> Label:
        """Return the label of something else that is made of it, and has no lineage."""
        return self if self.lineage is None else replace(self, lineage=None)

    def opened(self, share: int) -> Label:
        """Return the label of a share that anybody reads who gets it."""
        return replace(self, derived=self.derived | {Piece(OPEN, share)})

    def computed(self) -> Label:
        """Return the label of a share that is computed on this one."""
        return replace(self, pieces=frozenset(), derived=self.pieces | self.derived)

    def made_by(self, program: str) -> Label:
        """Return it as the label of a result, of at most ``MAX_ENTRIES`` entries of each kind.

        The identities of what the program made become those of earlier runs, so labels do not
        grow with the number of runs. The label discloses no less by either.

        Args:
            program: the digest of the program.
        """
        sources = self.settled().sources
        keys = frozenset(key.removeprefix(NEW) for key in self.keys)
        if len(sources) > MAX_ENTRIES:
            sources = frozenset(Source(s.party, Mask.of(s.party), SEVERAL) for s in sources)
        if len(keys) > MAX_ENTRIES:
            keys = frozenset([ANY])
        changers = self.changers
        if len(changers) > MAX_ENTRIES:
            changers = frozenset([Changer(EVERY, "")])
        shares = _settled(self.pieces), _settled(self.derived)
        multiplied = self.multiplied
        return Label(sources, *shares, keys, program, changers=changers, multiplied=multiplied)

    def encode(self) -> list[Any]:
        """Return it as lists, integers and texts, the same for equal labels."""
        return [
            [
                [s.party, list(s.known_to), s.name, [_listed(each) for each in s.guards]]
                for s in sorted(self.settled().sources)
            ],
            [list(piece) for piece in sorted(self.pieces)],
            [list(piece) for piece in sorted(self.derived)],
            sorted(self.keys),
            self.program,
            *self._seldom(),
        ]

    def _seldom(self) -> list[Any]:
        """Return the fields that few labels have, and older versions do not know."""
        changers = [list(each) for each in sorted(self.changers)]
        return [changers, self.multiplied] if self.multiplied else [changers] if changers else []

    @classmethod
    def decode(cls, data: Any) -> Label:
        """Return the label that a peer encoded.

        Args:
            data: untrusted, what :meth:`encode` returned at the peer.

        Raises:
            WireError: the data is malformed, or has more than ``MAX_ENTRIES`` entries of a kind.
        """
        items = _items(data, "a label", LABEL_FIELDS + 2)
        sources, pieces, derived, keys, program = _items(
            items[:LABEL_FIELDS], "a label", LABEL_FIELDS, exact=True
        )
        changers = items[LABEL_FIELDS] if len(items) > LABEL_FIELDS else ()
        multiplied = items[LABEL_FIELDS + 1] if len(items) > LABEL_FIELDS + 1 else 0
        return cls(
            _unique(_source(each) for each in _items(sources, "sources")),
            _unique(_piece(each) for each in _items(pieces, "pieces")),
            _unique(_piece(each) for each in _items(derived, "pieces")),
            _unique(_text(each, _IDENTITY, "a key") for each in _items(keys, "keys")),
            _text(program, _DIGEST, "a digest"),
            changers=_unique(_changer(each) for each in _items(changers, "changers")),
            multiplied=_number(multiplied, "how often it was multiplied", MAX_MULTIPLIED + 2),
        )


PUBLIC = Label()
"""The label of what all parties know: literals, public inputs of a run."""


def own(party: int, name: str) -> Label:
    """Return the label of private data of one party.

    Args:
        party: its rank.
        name: what it is; cut after ``MAX_NAME`` characters.

    Example:
        >>> print(own(2, "put").parties)
        {2}
    """
    return Label(frozenset([Source(party, Mask.of(party), name[:MAX_NAME])]))


@cache
def own_key(party: int) -> str:
    """Return the identity of a key of a party that it may send in place of another one's.

    Example:
        >>> own_key(1) == own_key(1) != own_key(2)
        True
    """
    return blake2b(f"a key of party {party}".encode(), digest_size=16).hexdigest()


def data_sets(sources: Iterable[Source]) -> tuple[str, ...]:
    """Return the data sets and columns among private data, such as ``0/patients.age``."""
    names = (
        f"{source.party}/{source.name.removeprefix(DATA_SET)}"
        for source in sorted(sources)
        if source.name.startswith(DATA_SET)
    )
    return tuple(dict.fromkeys(names))


def union(labels: Iterable[Label]) -> Label:
    """Return the label of what is made of several values.

    It has a lineage, and was made for a guard, only if all of them are equal: it may be any of
    them, or something that is made of both.

    Example:
        >>> union([]) == PUBLIC
        True
    """
    given = list(labels)
    found = reduce(or_, given, PUBLIC)
    return found if all(each == found for each in given) else found.unlike().settled()


def _settled(pieces: frozenset[Piece]) -> frozenset[Piece]:
    """Return shares by the identities of earlier runs, at most ``MAX_ENTRIES``."""
    if len(pieces) > MAX_ENTRIES:
        return frozenset(Piece(OPEN if s == OPEN else ANY, share) for s, share in pieces)
    return frozenset(Piece(secret.removeprefix(NEW), share) for secret, share in pieces)


def _listed(guard: Guard) -> list[Any]:
    bounds = guard[GUARD_FIELDS : GUARD_FIELDS + 3]  # it waits for no other one
    while bounds and bounds[-1] == (WHOLE, 0, 0)[len(bounds) - 1]:  # what a peer takes for granted
        bounds = bounds[:-1]
    fields = (*guard[:GUARD_FIELDS], *bounds)
    return [list(each) if isinstance(each, tuple) else each for each in fields]


# -- decoding


def _refuse(what: str, expected: str, got: Any) -> NoReturn:
    raise WireError(
        f"a label from a peer is malformed: {what}: expected {expected}, got {got}", code="L005"
    )


def _items(data: Any, what: str, count: int = MAX_ENTRIES, exact: bool = False) -> Sequence[Any]:
    if not isinstance(data, list | tuple):
        _refuse(what, "a list", type(data).__name__)
    if len(data) > count or (exact and len(data) != count):
        _refuse(what, f"{'' if exact else 'at most '}{count} items", len(data))
    return data


def _number(data: Any, what: str, end: int) -> int:
    if type(data) is not int or not 0 <= data < end:
        _refuse(what, f"an integer from 0 to {end - 1}", _shown(data))
    return data


def _rank(data: Any) -> int:
    return _number(data, "a rank", MAX_PARTIES)


def _text(data: Any, pattern: re.Pattern[str], what: str) -> str:
    if not isinstance(data, str) or not pattern.fullmatch(data):
        _refuse(what, "hexadecimal digits", _shown(data))
    return data


def _source(data: Any) -> Source:
    party, known_to, name, guards = _items(data, "a source", 4, exact=True)
    ranks = [_rank(rank) for rank in _items(known_to, "its parties", MAX_PARTIES)]
    found = tuple(_guard(each) for each in _items(guards, "its guards", MAX_GUARDS))
    return Source(_rank(party), Mask.from_ranks(ranks), _name(name), found)


def _guard(data: Any) -> Guard:
    items = _items(data, "a guard", GUARD_FIELDS + 3)
    op, units, k, *words = _items(items[:GUARD_FIELDS], "a guard", GUARD_FIELDS, exact=True)
    uses, functions = (
        tuple(_name(each) for each in _items(each, "its words", MAX_WORDS)) for each in words
    )
    count = _number(k, "a number of units", 1 << 53)
    columns = tuple(_name(each) for each in _items(units, "its units", MAX_WORDS))
    share, *keys = items[GUARD_FIELDS:] or [WHOLE]
    tried, least = (_number(n, "keys", 1 << 53) for n in (*keys, 0, 0)[:2])
    bound = _number(share, "a share", WHOLE + 1)
    guard = Guard(_name(op), columns, count, uses, functions, bound, tried, least)
    if len(_listed(guard)) != len(items):
        _refuse("a guard", "no bound that is taken for granted", len(items))
    return guard


def _name(data: Any) -> str:
    if not isinstance(data, str) or len(data) > MAX_NAME:
        _refuse("a name", f"a text of at most {MAX_NAME} characters", _shown(data))
    return data


def _piece(data: Any) -> Piece:
    secret, index = _items(data, "a piece", 2, exact=True)
    return Piece(_text(secret, _IDENTITY, "a secret"), _number(index, "a share", 1 << 31))


def _changer(data: Any) -> Changer:
    party, protocol = _items(data, "a changer", 2, exact=True)
    every = type(party) is int and party == EVERY
    return Changer(EVERY if every else _rank(party), _name(protocol))


def _unique(entries: Iterable[Any]) -> frozenset[Any]:
    found = list(entries)
    unique = frozenset(found)
    if len(unique) != len(found):
        _refuse("its entries", "each one once", f"{len(found) - len(unique)} duplicates")
    return unique


def _shown(data: Any) -> str:
    if isinstance(data, str):
        return ascii(data[:60])
    return str(data) if type(data) is int and data.bit_length() < 100 else type(data).__name__
