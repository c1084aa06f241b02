"""Entries of a storage: what is kept beside the value that a program left there."""

from __future__ import annotations

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
MAX_KIND = 64 << 10  # characters of a type
NO_SINK = "this party stores no results; its owner names a folder as `sink` of the worker"
VERSION = r"^[0-9a-f]{64}$"

Version: TypeAlias = Annotated[str, Field(pattern=VERSION)]
Rank: TypeAlias = Annotated[int, Field(ge=0, lt=1024, strict=True)]
_SUFFIXES = {TableType: "parquet", TensorType: "npy"}


class StoreError(Exception):
    """A value cannot be stored or loaded; the text may be told to the coordinator."""


class NotStoredError(StoreError):
    """Nothing is stored under that name."""


class Entry(StrictModel):
    """What is kept beside a stored value; the same at all of its members, but for ``previous``.

    Attributes:
        name: its name.
        version: SHA-256 of the run and the place in it that stored it; the same at all members.
        previous: the version that it replaces here.
        run: the name of the run.
        program: the digest of the program.
        time: when it was stored, in seconds since 1970 by this member's clock.
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
    time: float
    parties: tuple[Annotated[str, Field(max_length=256)], ...] = Field(max_length=1024)
    members: tuple[Rank, ...] = Field(min_length=1, max_length=1024)
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
        if list(self.members) != sorted(set(self.members)):
            raise ValueError("members are ranks, each once and in order")
        if self.members[-1] >= len(self.parties) or len(self.labels) != len(self.members):
            raise ValueError("it has a label of each member, which is one of the parties")
        for each in self.labels:
            try:
                Label.decode(each)
            except WireError as error:
                raise ValueError(str(error)) from None
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
                name = str(i)
            suffix = "sealed" if is_sealed(kind) else _SUFFIXES.get(type(kind), "value")
            found.append(f"{name}.{suffix}")
        return found

    def label(self, rank: int) -> Label:
        """Return the label of a member's copy; ranks are those of its session."""
        return Label.decode(self.labels[self.members.index(rank)])

    def told(self) -> dict[str, Any]:
        """Return what a coordinator is told of it."""
        fields = {"version", "run", "program", "time", "parties", "members", "kinds", "nest"}
        found: dict[str, Any] = self.model_dump(mode="json", include=fields)
        return found


class Held(NamedTuple):
    """Version of a stored value that a party holds, whole.

    Attributes:
        entry: what is kept beside it.
        current: whether it is the one that was stored last here; another may be left of a run
            that was interrupted.
    """

    entry: Entry
    current: bool


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
    for kind in kinds:
        if kind.form is Form.HANDLE:
            raise TypeError(f"a {kind} is a handle, of something that does not outlive its session")
        if isinstance(kind, TableType):
            check_table(kind)


def skeleton(nest: Any, is_leaf: Any) -> tuple[str, list[Any]]:
    """Return how values are nested, as JSON, and the values in order.

    Raises:
        TypeError: it is no nest of dicts with names, lists and tuples.

    Example:
        >>> skeleton({"w": 1.5, "b": (2.5,)}, lambda x: isinstance(x, float))
        ('{"dict":{"w":0,"b":{"tuple":[0]}}}', [1.5, 2.5])
    """
    leaves: list[Any] = []

    def walk(each: Any) -> Any:
        if is_leaf(each):
            leaves.append(each)
            return 0
        match each:
            case dict():
                for key in each:
                    check_name(key)
                return {"dict": {key: walk(value) for key, value in each.items()}}
            case list():
                return {"list": [walk(value) for value in each]}
            case tuple() if type(each) is tuple:
                return {"tuple": [walk(value) for value in each]}
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
