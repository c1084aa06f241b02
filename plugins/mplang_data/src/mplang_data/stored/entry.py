"""Entries of a storage: what is kept beside the value that a program left there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

from mplang_analysis import Label
from mplang_tables import check_table
from pydantic import Field, field_validator, model_validator

from mplang_core import BaseType, Form, TableType, TensorType
from mplang_core.ext import StrictModel, WireError, parse_base_type
from mplang_data.description import NAME, check_name

MAX_LEAVES = 64  # values of one nest
MAX_DEPTH = 16  # of a nest
MAX_KIND = 1 << 20  # characters of a type
NO_SINK = "this party stores no results; its owner names a folder as `sink` of the worker"
VERSION = r"^[0-9a-f]{64}$"

Version: TypeAlias = Annotated[str, Field(pattern=VERSION)]
Time: TypeAlias = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
Rank: TypeAlias = Annotated[int, Field(ge=0, lt=1024, strict=True)]
Parties: TypeAlias = Annotated[
    tuple[Annotated[str, Field(max_length=256)], ...], Field(max_length=1024)
]
Members: TypeAlias = Annotated[tuple[Rank, ...], Field(min_length=1, max_length=1024)]
_SUFFIXES = {TableType: "parquet", TensorType: "npy"}


class StoreError(Exception):
    """A value cannot be stored or loaded; the text may be told to the coordinator."""


class NotStoredError(StoreError):
    """No value is stored under that name."""


class Entry(StrictModel):
    """Metadata of a stored value; the same at all of its members, except ``previous``.

    Attributes:
        name: its name.
        version: SHA-256 of the run and the place in it that stored it; the same at all members.
        previous: the version that it replaces here.
        run: the name of the run.
        program: the digest of the program.
        time: when it was stored, in seconds since 1970 by this member's clock; ``None`` before
            that, and where it is not told, as it tells when an op of a run ended.
        parties: names of the session's parties, by rank.
        members: ranks of the parties that stored it together.
        kinds: the types of its values, in order.
        nest: how they are nested, as JSON; see :func:`skeleton`.
        labels: the label of each member's copy, as lists and texts, in the order of ``members``.
    """

    name: str = Field(pattern=f"^{NAME}$")
    version: Version
    previous: Version | None = None
    run: str = Field(max_length=2048)
    program: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    time: Time | None = None
    parties: Parties
    members: Members
    kinds: tuple[Annotated[str, Field(max_length=MAX_KIND)], ...] = Field(max_length=MAX_LEAVES)
    nest: str = Field(max_length=64 << 10)
    labels: tuple[Any, ...]

    @field_validator("kinds")
    @classmethod
    def _are_types(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        for text in kinds:
            try:
                parse_base_type(text)
            except (WireError, TypeError, ValueError, RecursionError) as error:
                raise ValueError(f"no type of a value: {error}") from None
        return kinds

    @model_validator(mode="after")
    def _check(self) -> Entry:
        _check_members(self.members, self.parties, self.labels)
        try:
            count = len(list(places(json.loads(self.nest))))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"no nest of values: {error}") from None
        if count != len(self.kinds):
            raise ValueError(f"a nest of {count} values with {len(self.kinds)} types")
        return self

    @property
    def types(self) -> tuple[BaseType, ...]:
        """The types of its values."""
        return tuple(map(parse_base_type, self.kinds))

    def files(self) -> list[str]:
        """Return the names of the files of its values, such as ``w.npy`` and ``value.parquet``."""
        found: list[str] = []
        where = places(json.loads(self.nest))
        for i, (place, kind) in enumerate(zip(where, self.types, strict=True)):
            name = "value" if not place else ".".join(place)
            if len(name) > 100 or name in {each.rpartition(".")[0] for each in found}:
                name = f"+{i}"  # which no key of a nest is
            suffix = "sealed" if is_sealed(kind) else _SUFFIXES.get(type(kind), "value")
            found.append(f"{name}.{suffix}")
        return found

    def card(self) -> Card:
        """Return what its members tell one another of it."""
        said = [self.run, self.program, self.kinds, self.nest]
        return Card(
            version=self.version,
            previous=self.previous,
            parties=self.parties,
            members=self.members,
            is_plain=not any(map(is_sealed, self.types)),
            content=hashlib.sha256(json.dumps(said).encode()).hexdigest(),
            labels=self.labels,
        )


class Card(StrictModel):
    """Description of a stored version for the other parties: everything except its time.

    Attributes:
        is_plain: whether none of its values is encrypted.
        content: SHA-256 of what the version is: run, program, types and nest.

    See :class:`Entry` for the other fields.
    """

    version: Version
    previous: Version | None
    parties: Parties
    members: Members
    is_plain: bool
    content: Version
    labels: tuple[Any, ...]

    @model_validator(mode="after")
    def _check(self) -> Card:
        _check_members(self.members, self.parties, self.labels)
        return self

    def label(self, rank: int) -> Label:
        """Return the label of a member's copy; ranks are those of its session."""
        return Label.decode(self.labels[self.members.index(rank)])

    def like(self) -> tuple[Any, ...]:
        """Return what is the same at all members."""
        return self.version, self.parties, self.members, self.is_plain, self.content


class Held(NamedTuple):
    """Version of a stored value that a party holds, whole.

    Attributes:
        card: what the party tells of it.
        current: whether it is the one that was stored last here; another may be left of a run
            that was interrupted.
    """

    card: Card
    current: bool


def read_entries(data: Any) -> dict[str, Entry]:
    """Return entries by name, as a party tells them; fields that are not known are left out.

    Args:
        data: untrusted; what is malformed raises a builtin exception, or ConfigError.
    """
    known = Entry.model_fields
    return {
        str(name): Entry(**{field: each[field] for field in known if field in each})
        for name, each in data.items()
    }


def _check_members(members: Sequence[int], parties: Sequence[str], labels: Sequence[Any]) -> None:
    if list(members) != sorted(set(members)):
        raise ValueError("members are ranks, each once and in order")
    if members[-1] >= len(parties) or len(labels) != len(members):
        raise ValueError("it has a label of each member, which is one of the parties")
    for each in labels:
        try:
            Label.decode(each)
        except WireError as error:
            raise ValueError(str(error)) from None


def is_sealed(kind: BaseType) -> bool:
    """Return whether values of a type are encrypted: all but what the party may read itself."""
    return kind.form is not Form.PLAIN


def check_storable(kinds: Sequence[BaseType]) -> None:
    """Check that values can be stored.

    Raises:
        TypeError: there are none or too many, or one is a handle.
    """
    if not 0 < len(kinds) <= MAX_LEAVES:
        raise TypeError(f"1 to {MAX_LEAVES} values are stored under a name, got {len(kinds)}")
    if len({is_sealed(kind) for kind in kinds}) > 1:
        raise TypeError("shares and keys are stored under a name, plain values under another one")
    for kind in kinds:
        if len(str(kind)) > MAX_KIND:
            raise TypeError(f"the name of its type has more than {MAX_KIND} characters")
        if kind.form is Form.HANDLE:
            raise TypeError(f"a {kind} is a handle, of something that does not outlive its session")
        if isinstance(kind, TableType):
            check_table(kind)


def skeleton(nest: Any, is_leaf: Any) -> tuple[str, list[Any]]:
    """Return how values are nested, as JSON, and the values in order.

    Raises:
        TypeError: it is not a nest of dicts with names, lists and tuples.

    Example:
        >>> skeleton({"w": 1.5, "b": (2.5,)}, lambda x: isinstance(x, float))
        ('{"dict":{"w":0,"b":{"tuple":[0]}}}', [1.5, 2.5])
    """
    leaves: list[Any] = []

    def walk(each: Any, depth: int = 0) -> Any:
        if is_leaf(each):
            leaves.append(each)
            return 0
        if depth == MAX_DEPTH:
            raise TypeError(f"it is nested more than {MAX_DEPTH} deep")
        match each:
            case dict():
                for key in each:
                    check_name(key)
                return {"dict": {key: walk(value, depth + 1) for key, value in each.items()}}
            case list():
                return {"list": [walk(value, depth + 1) for value in each]}
            case tuple() if type(each) is tuple:
                return {"tuple": [walk(value, depth + 1) for value in each]}
        raise TypeError(
            f"what is stored is a value, or a dict, list or tuple of values; got "
            f"{type(each).__name__}"
        )

    return json.dumps(walk(nest), separators=(",", ":")), leaves


def unflatten(nest: str, leaves: Sequence[Any]) -> Any:
    """Return the nest of values in order; the inverse of :func:`skeleton`.

    Example:
        >>> unflatten('{"dict":{"w":0,"b":{"tuple":[0]}}}', [1.5, 2.5])
        {'w': 1.5, 'b': (2.5,)}
    """
    given = iter(leaves)

    def build(each: Any) -> Any:
        if each == 0:
            return next(given)
        if "dict" in each:
            return {key: build(value) for key, value in each["dict"].items()}
        if "list" in each:
            return [build(value) for value in each["list"]]
        return tuple(build(value) for value in each["tuple"])

    return build(json.loads(nest))


def places(nest: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the place of each value of a nest, as keys and positions.

    Args:
        nest: what :func:`skeleton` returned, decoded; untrusted.
        at: the place of the nest itself.

    Raises:
        ValueError: it is malformed.
    """
    if type(nest) is int and nest == 0:
        yield at
        return
    if not isinstance(nest, dict) or len(nest) != 1:
        raise ValueError("neither a value nor a nest")
    ((kind, inner),) = nest.items()
    if kind == "dict" and isinstance(inner, dict):
        children = list(inner.items())
    elif kind in ("list", "tuple") and isinstance(inner, list):
        children = [(str(i), value) for i, value in enumerate(inner)]
    else:
        raise ValueError(f"no kind of a nest: {kind!r:.50}")
    for key, value in children:
        if kind == "dict":
            check_name(key)
        yield from places(value, (*at, key))
