"""Questions about data sets, as ops declare them that ask their party for rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from mplang_core.ext import Operation


class TableRead(NamedTuple):
    """Data set in a question.

    Attributes:
        data: its name.
        type: the type that is read, as text.
        ranges: ranges that the program counts on.
    """

    data: str
    type: str
    ranges: Sequence[Sequence[float] | None] = ()


class DataQuestion(NamedTuple):
    """Question about data sets: for the rows of one, or for what SQL over some gives.

    Attributes:
        tables: the data sets by their names in the SQL; of a reading one without a name.
        sql: the SQL; empty for a reading.
        gives: the type of the result, as text; empty for a reading.

    Example:
        >>> ages = TableRead("people", 'table<["age", "int64"]>')
        >>> reading = DataQuestion({"": ages})
        >>> reading.digest == DataQuestion({"": ages}, "SELECT 1").digest
        False
    """

    tables: Mapping[str, TableRead]
    sql: str = ""
    gives: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of it, in hex."""
        fields = [sorted(self.tables.items()), self.sql, self.gives]
        return hashlib.sha256(json.dumps(fields).encode()).hexdigest()

    @property
    def readings(self) -> list[DataQuestion]:
        """The questions for the rows of its data sets, each by itself."""
        return [DataQuestion({"": each}) for each in self.tables.values()]


@runtime_checkable
class AsksData(Protocol):
    """Interface of an op that asks its party about data sets."""

    def question(self, op: Operation, operands: Sequence[DataQuestion]) -> DataQuestion:
        """Return what its kernel asks.

        Args:
            op: the op.
            operands: what would be asked for the rows of each operand; nothing has been.
        """


@dataclass(frozen=True, slots=True)
class QuestionRule:
    """A function as the interface :class:`AsksData`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op, operands)``.
    """

    rule: Callable[[Operation, Sequence[DataQuestion]], DataQuestion]

    def question(self, op: Operation, operands: Sequence[DataQuestion]) -> DataQuestion:
        """Return what the function does."""
        return self.rule(op, operands)
