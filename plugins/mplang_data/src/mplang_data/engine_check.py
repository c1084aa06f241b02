"""Check of SQL against the engines of the data sets that it reads. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mplang_analysis import engine_refusals_of

from mplang_core import Mask, Program
from mplang_core.ext import Graph, Operation, PartyCall, TraceError, Value, control_of
from mplang_data.description import Description


class _Read(NamedTuple):
    """Data set that a value is.

    Attributes:
        shown: its owner and its name, for messages.
        engine: of its source.
    """

    shown: str
    engine: str | None


class _Walk:
    """Walk over a program.

    Args:
        names: the names of the parties, by rank.
        known: descriptions by party and by name.
    """

    def __init__(
        self, names: Sequence[str], known: Mapping[str, Mapping[str, Description]]
    ) -> None:
        self.names, self.known = names, known

    def graph(self, graph: Graph, parties: Mask, reads: dict[Value, _Read]) -> list[_Read | None]:
        """Check the ops of a graph, and return which of its results are data sets as they are."""
        for op in graph.ops:
            if op.opcode == "data.read":
                data_set = self._read(op, parties)
                reads |= {op.outputs[0]: data_set} if data_set else {}
            elif op.regions:
                self._regions(op, parties, reads)
            else:
                _check(op, [reads.get(value) for value in op.inputs])
        return [reads.get(value) for value in graph.outputs]

    def _regions(self, op: Operation, parties: Mask, reads: dict[Value, _Read]) -> None:
        control = control_of(op)
        if not isinstance(control, PartyCall):
            for region in op.regions.values():
                self.graph(region, parties, {})
            return
        (region,) = op.regions.values()
        pairs = zip(region.inputs, op.inputs, strict=True)
        inner = {mine: reads[value] for mine, value in pairs if value in reads}
        results = self.graph(region, control.parties or parties, inner)
        for value, data_set in zip(op.outputs, results, strict=True):
            if data_set:
                reads[value] = data_set

    def _read(self, op: Operation, parties: Mask) -> _Read | None:
        if len(parties) != 1:
            return None
        party, name = self.names[parties.first], str(op.attrs["name"])
        described = self.known.get(party, {}).get(name)
        return _Read(f"{party}'s {name}", described.engine) if described else None


def check_engines(
    program: Program, names: Sequence[str], known: Mapping[str, Mapping[str, Description]]
) -> None:
    """Check that a program gives on the engines of its data sets what it gives on DuckDB.

    What reads data sets of one engine alone runs there; other ops run on DuckDB.

    Args:
        program: a traced program.
        names: the names of the parties, by rank.
        known: descriptions of data sets by party and by name.

    Raises:
        TraceError: an op would give another answer; says which part of it, and how to write it.
    """
    _Walk(names, known).graph(program.graph, program.mask, {})


def _check(op: Operation, operands: Sequence[_Read | None]) -> None:
    engines = {each.engine if each else None for each in operands}
    if len(engines) != 1 or None in engines:
        return
    (engine,) = engines
    refusals = engine_refusals_of(op, str(engine))
    if refusals:
        where = f"{op.location}: " if op.location else ""
        read = ", ".join(dict.fromkeys(each.shown for each in operands if each))
        raise TraceError(f"{where}{op.opcode} on {read}: {'; '.join(refusals)}", code="T010")
