"""The analysis ``holders``, and ``few_values``, by which a worker's owner refuses programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mplang_analysis import Report, Submission, TextTable
from mplang_core import MPType, Program
from mplang_core.ext import StrictModel
from pydantic import Field


@dataclass(frozen=True, slots=True)
class Holders(Report):
    """How many values each party gets to hold.

    Attributes:
        counts: per party, with those of branches and bodies of loops, each once. What is local to
            a ``pcall``, and what has its parties only at run time, is not counted.
    """

    counts: tuple[int, ...]

    def tables(self) -> list[TextTable]:
        """Return a row per party."""
        rows = [[str(party), str(count)] for party, count in enumerate(self.counts)]
        return [TextTable("Who holds how many values", ["party", "values"], rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"counts": list(self.counts)}


def holders(program: Program) -> Holders:
    """Count the values that each party gets to hold.

    Args:
        program: any valid program.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     return mp.put("P1", mp.put("P0", 1))
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program).program
        >>> print(holders(traced))
        Who holds how many values
          party  values
          0      1
          1      1
    """
    found = Counter(rank for kind in _types(program) for rank in kind.pmask or ())
    return Holders(tuple(found[rank] for rank in range(len(program.mask))))


def _types(program: Program) -> Iterator[MPType]:
    """Yield the type of each value among parties, also of those within regions."""
    regions = (region for op in program.graph.walk() for region in op.regions.values())
    for graph in (program.graph, *regions):
        values = [*graph.inputs, *(value for op in graph.ops for value in op.outputs)]
        yield from (value.type for value in values if isinstance(value.type, MPType))


class FewValues(StrictModel):
    """Admission check: this party holds at most so many values of a program.

    Attributes:
        most: how many.

    Example:
        >>> from mplang_analysis import Submission
        >>> import mplang_core as mp
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda: mp.constant(1))
        >>> FewValues(most=0).refusals(Submission(traced.program, "ann", 0, ("bank",)))
        ['bank would hold 1 values, at most 0 are allowed']
    """

    most: int = Field(default=1000, ge=0)

    def refusals(self, submission: Submission) -> Sequence[str]:
        """Return that there are too many, if there are."""
        count = holders(submission.program).counts[submission.party]
        if count <= self.most:
            return []
        name = submission.parties[submission.party]
        return [f"{name} would hold {count} values, at most {self.most} are allowed"]
