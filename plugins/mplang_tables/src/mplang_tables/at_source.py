"""Tables that stay at their source, where SQL over them is run. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mplang_analysis import staying_reads

from mplang_core import TableType
from mplang_core.ext import Graph, Operation


class Place(Protocol):
    """Place where tables are, as a worker's catalogue."""

    def query(self, sql: str, tables: Mapping[str, AtSource], gives: TableType, *, op: str) -> Any:
        """Run one SELECT on tables where they are.

        Args:
            sql: in the dialect of DuckDB.
            tables: the tables by their names in the SQL, all of this place.
            gives: the type of the result.
            op: the op that asks, for messages.

        Returns:
            A ``pyarrow.Table`` of that type.

        Raises:
            AdmissionError: the SQL is not allowed, or a table may not be read.
            KernelError: a source is not what its owner says, or the query fails.
        """


@dataclass(slots=True, eq=False)
class AtSource:
    """Table that stays at its source.

    Attributes:
        kind: its type.
        name: its name at its place.
        place: where it is.
        facts: what the place keeps with it.
    """

    kind: TableType
    name: str
    place: Place
    facts: Any = None

    @property
    def schema(self) -> Any:
        """The Arrow schema of it."""
        from mplang_tables import arrow

        return arrow.schema(self.kind)


def stays_at_source(op: Operation, graph: Graph) -> bool:
    """Return whether the table that an op reads may stay at its source.

    That is so if all that is done with it is done by ops that ask the sources of their operands;
    see :func:`mplang_analysis.staying_reads`.

    Args:
        op: reads a table of a party, and has no operands.
        graph: the graph that it is in.
    """
    return op.outputs[0] in staying_reads(graph)
