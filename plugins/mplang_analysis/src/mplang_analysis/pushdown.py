"""Walk over a program that finds which queries the sources of data sets run, and why not others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mplang_analysis.at_source import staying_reads
from mplang_analysis.data_question import AsksData, TableRead
from mplang_analysis.subject import line_of
from mplang_core import Mask
from mplang_core.ext import (
    Graph,
    Location,
    Operation,
    PartyCall,
    QueriesSources,
    Value,
    control_of,
    interface_of,
)


@dataclass(eq=False, slots=True)
class TableReading:
    """Op that reads a data set, wherever its rows go.

    Attributes:
        node: the op.
        table: the data set.
        parties: who runs it.
        line: its line.
        stays: whether the data set stays at its source.
        queries: the queries that take it as it is.
        uses: the other ops that do, each with its line; ``None`` for a result of the program.
    """

    node: Operation
    table: TableRead
    parties: Mask
    line: Location | None
    stays: bool
    queries: list[TableQuery] = field(default_factory=list)
    uses: list[tuple[str, Location | None] | None] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class TableQuery:
    """Op that queries tables.

    Attributes:
        node: the op.
        op: its opcode.
        parties: who runs it.
        line: its line.
        readings: per operand the data set that it is; ``None`` if it is none.
        at_source: whether its data sets stay at their source, which is to run it.
    """

    node: Operation
    op: str
    parties: Mask
    line: Location | None
    readings: Sequence[TableReading | None]
    at_source: bool


class Pushdown:
    """Walk over a program after the passes.

    Args:
        graph: its graph.
        parties: its parties.

    Attributes:
        queries: its queries, in the order of the program.
        readings: what it reads, likewise.
    """

    def __init__(self, graph: Graph, parties: Mask) -> None:
        self.queries: list[TableQuery] = []
        self.readings: list[TableReading] = []
        for reading in self._graph(graph, parties, {}, None):
            if reading is not None:
                reading.uses.append(None)

    def _graph(
        self, graph: Graph, parties: Mask, known: dict[Value, TableReading], around: Location | None
    ) -> Sequence[TableReading | None]:
        """Follow data sets through a graph, and return which of its results are some as they are.

        Args:
            graph: the graph.
            parties: who runs it.
            known: the data sets among its inputs.
            around: the line of the op around.
        """
        staying = staying_reads(graph)
        for op in graph.ops:
            line = line_of(op, around)
            asks = interface_of(op, AsksData)
            if asks is not None and not op.inputs:
                (table,) = asks.question(op, ()).tables.values()
                stays = op.outputs[0] in staying
                known[op.outputs[0]] = made = TableReading(op, table, parties, line, stays)
                self.readings.append(made)
            elif interface_of(op, QueriesSources) is not None:
                at_source = bool(op.inputs) and staying.keys() >= set(op.inputs)
                self._query(op, parties, line, [known.get(each) for each in op.inputs], at_source)
            elif isinstance(control := control_of(op), PartyCall):
                self._call(op, control.parties or parties, known, line)
            else:
                for reading in (known[each] for each in op.inputs if each in known):
                    reading.uses.append((op.opcode, line))
                for region in op.regions.values():
                    self._graph(region, parties, {}, line)
        return [known.get(value) for value in graph.outputs]

    def _query(
        self,
        op: Operation,
        parties: Mask,
        line: Location | None,
        readings: Sequence[TableReading | None],
        at_source: bool,
    ) -> None:
        query = TableQuery(op, op.opcode, parties, line, readings, at_source)
        self.queries.append(query)
        for reading in readings:
            if reading is not None:
                reading.queries.append(query)

    def _call(
        self, op: Operation, parties: Mask, known: dict[Value, TableReading], line: Location | None
    ) -> None:
        (region,) = op.regions.values()
        pairs = zip(region.inputs, op.inputs, strict=True)
        inner = {mine: known[value] for mine, value in pairs if value in known}
        results = self._graph(region, parties, inner, line)
        for value, reading in zip(op.outputs, results, strict=True):
            if reading is not None:
                known[value] = reading
