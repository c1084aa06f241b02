"""Data sets that a program reads, by party."""

from __future__ import annotations

from collections.abc import Mapping

from mplang_analysis import op_traits
from mplang_analysis.labels import DATA_SET
from mplang_analysis.ops_among import ops_among
from mplang_core import Program


def data_reads(program: Program) -> Mapping[int, tuple[str, ...]]:
    """Return which data sets and columns a program reads at each party.

    Returns:
        Per rank the names, sorted, such as ``"people.age"``; no rank that reads none.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda: 1).program
        >>> data_reads(program)
        {}
    """
    found: dict[int, set[str]] = {}
    for op, parties in ops_among(program.graph, program.mask):
        for name in op_traits.reads(op):
            if name.startswith(DATA_SET):
                for rank in parties:
                    found.setdefault(rank, set()).add(name.removeprefix(DATA_SET))
    return {rank: tuple(sorted(names)) for rank, names in sorted(found.items())}
