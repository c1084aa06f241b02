"""Answers of other engines: which ops they would run in another way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mplang_core.ext import Operation, interface_of


@runtime_checkable
class HasEngines(Protocol):
    """Interface of an op that may run in the database where its operands are."""

    def engine_refusals(self, op: Operation, engine: str) -> Sequence[str]:
        """Return what the engine would answer in another way, each with how to write it.

        Args:
            op: the op.
            engine: its name, as catalogues publish it.
        """


@dataclass(frozen=True, slots=True)
class EngineRule:
    """A function as the interface :class:`HasEngines`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op, engine)``.
    """

    rule: Callable[[Operation, str], Sequence[str]]

    def engine_refusals(self, op: Operation, engine: str) -> Sequence[str]:
        """Return what the function does."""
        return self.rule(op, engine)


def engine_refusals_of(op: Operation, engine: str) -> Sequence[str]:
    """Return what an engine would answer in another way; nothing of ops that do not run there."""
    declared = interface_of(op, HasEngines)
    return () if declared is None else declared.engine_refusals(op, engine)
