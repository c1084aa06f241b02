"""Ops that leave values in the storage of parties, or bring them back, from session to session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable
from weakref import WeakKeyDictionary

from mplang_analysis import op_traits
from mplang_analysis.labels import Label
from mplang_analysis.ops_among import ops_among
from mplang_core import Mask, Program
from mplang_core.ext import Graph, Operation, interface_of

Action: TypeAlias = Literal["store", "load", "remove"]

Stored: TypeAlias = Mapping[str, Mapping[int, Label]]
"""Labels of what is stored, by name and by the rank of who holds it."""


@runtime_checkable
class UsesStorage(Protocol):
    """Interface of a local op on what is stored under a name at the parties that run it.

    ``store`` leaves the operands there, the results of ``load`` were left there.
    """

    def use(self, op: Operation) -> tuple[Action, str]:
        """Return what the op does, and the name."""


class StorageUse(NamedTuple):
    """Use of storage by a program.

    Attributes:
        action: what it does.
        name: the name.
        parties: who runs the op together.
    """

    action: Action
    name: str
    parties: Mask


def storage_of(program: Program) -> Sequence[StorageUse]:
    """Return how a program uses the storage of its parties, each use once.

    An op that stands where its parties are known only at run time counts as run by all.
    """
    found = _cache.get(program)
    if found is None:
        uses = set(_uses(program.graph, program.mask))
        found = sorted(uses, key=lambda use: (use.name, use.action, use.parties.bits))
        _cache[program] = found
    return found


def stored_forms(program: Program) -> Mapping[str, tuple[str, ...]]:
    """Return by name in which forms a program leaves values in storage, such as ``("share",)``."""
    found: dict[str, set[str]] = {}
    for op, _ in ops_among(program.graph, program.mask):
        action, name = use_of(op)
        if action == "store":
            forms = (op_traits.base_of(value.type).form.value for value in op.inputs)
            found.setdefault(name, set()).update(forms)
    return {name: tuple(sorted(forms)) for name, forms in sorted(found.items())}


_cache: WeakKeyDictionary[Program, Sequence[StorageUse]] = WeakKeyDictionary()


def use_of(op: Operation) -> tuple[Action | None, str]:
    """Return what an op does with storage, and the name; ``None`` if it does nothing."""
    found = interface_of(op, UsesStorage)
    return (None, "") if found is None else found.use(op)


def _uses(graph: Graph, parties: Mask) -> Iterator[StorageUse]:
    for op, among in ops_among(graph, parties):
        action, name = use_of(op)
        if action is not None:
            yield StorageUse(action, name, among)
