"""Range table: the numbers of each line, and whether its engine can represent them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mplang_analysis.interval import Interval
from mplang_analysis.interval_analysis import Finding, Numbers
from mplang_analysis.op_ranges import NumberStatus
from mplang_analysis.party_names import quoted, quoted_line
from mplang_analysis.range_inputs import Basis, Given, Key, given
from mplang_analysis.records import Records
from mplang_analysis.report import Report, TextTable
from mplang_analysis.subject import program_of

COLUMNS = ("line", "what", "low", "high", "largest", "smallest", "basis", "status")
NOT_KNOWN = "not known"
ALERTS = ("vanishes", "overflows", NOT_KNOWN)

_NOTES: Mapping[str, str] = {
    "overflows": "Overflows: what follows is computed as if it had not happened.",
    "observed": "Observed: it follows from the sample, and other data may be outside of it.",
}


@dataclass(frozen=True, slots=True)
class RangeRow:
    """The numbers of one value.

    Attributes:
        what: ``input x``, ``result``, an op, or a step inside of an op: ``spu.run_jax: divide``.
        line: the user's line, ``demo.py:12``; empty if unknown.
        interval: all numbers that it may have in any element; see ``interval.known``.
        basis: ``known`` if that follows from the program alone, ``declared`` if it follows from
            declared ranges, ``observed`` if it follows from a sample.
        status: whether the engine holds them: ``fits``; ``vanishes``, as they are too small;
            ``overflows``; or ``not known``. Empty where the engine is plain.
    """

    what: str
    line: str
    interval: Interval
    basis: Basis
    status: NumberStatus
    HEADS: ClassVar[Sequence[str]] = COLUMNS

    @property
    def alert(self) -> bool:
        """Whether its engine may not hold the numbers."""
        return self.status in ALERTS

    @property
    def largest(self) -> float | None:
        """The largest magnitude, if it is known."""
        return self.interval.largest if self.interval.known else None

    @property
    def smallest(self) -> float | None:
        """The smallest magnitude, if it is known."""
        return self.interval.smallest if self.interval.known else None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data; an infinite end is ``None``."""
        low, high = map(_finite, (self.interval.low, self.interval.high))
        return {
            "what": self.what,
            "line": self.line,
            "low": low,
            "high": high,
            "largest": self.largest,
            "smallest": self.smallest,
            "basis": self.basis,
            "status": self.status,
        }

    def texts(self) -> list[str]:
        """Return the cells of its line in a table."""
        ends = (self.interval.low, self.interval.high, self.largest, self.smallest)
        shown = [_short(end) for end in ends] if self.interval.known else [NOT_KNOWN, "", "", ""]
        basis = self.basis if self.interval.known else ""
        return [quoted_line(self.line) if self.line else "", self.what, *shown, basis, self.status]


@dataclass(frozen=True, slots=True)
class Ranges(Report):
    """The numbers of a program.

    Attributes:
        program: its name.
        rows: inputs, then ops in the order of the program, then results.
    """

    program: str
    rows: tuple[RangeRow, ...]

    @property
    def alerts(self) -> tuple[RangeRow, ...]:
        """The rows whose engine may not hold the numbers."""
        return Records(row for row in self.rows if row.status in ALERTS)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"program": self.program, "rows": [row.to_dict() for row in self.rows]}

    def tables(self) -> list[TextTable]:
        """Return the one table; what the engine may not hold are its alerts."""
        alerts = [i for i, row in enumerate(self.rows) if row.status in ALERTS]
        rows = [row.texts() for row in self.rows]
        return [TextTable(f"Numbers of {quoted(self.program)}", COLUMNS, rows, alerts)]

    def remarks(self) -> Sequence[str]:
        """Return remarks on how far the table can be trusted."""
        said = {row.status for row in self.rows} | {row.basis for row in self.rows}
        return [text for word, text in _NOTES.items() if word in said]


def ranges(
    program: Any, declared: Mapping[Key, Any] | None = None, *, sample: Any = None
) -> Ranges:
    """Return the ranges of the numbers of a program, before anything runs.

    Intervals go through the whole program: ops, moves, branches, loops, and the code of engines
    whose plugins know how. All elements of a value have one interval. What cannot be told, such
    as a quotient whose divisor may be 0, or what a loop with an open end adds up, is not known.

    Args:
        program: a program, or a function that was traced or compiled.
        declared: ``(low, high)`` per parameter, by its name or position. Ranges that the program
            itself declares, ``mp.put("P0", x, range=(0, 1))``, need not be repeated.
        sample: a tuple of arguments, or a dict of them by parameter. Their smallest and largest
            elements, with a margin of 10 %, stand for parameters without a declared range.

    Raises:
        TraceError: it is not a program, there is no such parameter, or a range is none.
        VerifyError: the program breaks a rule.

    Example:
        >>> import mplang_core as mp
        >>> def program(x):
        ...     return mp.put("P1", mp.put("P0", x, range=(0, 100)))
        >>> x = mp.MPType(mp.TensorType("f32", (3,)), mp.Mask.of(0))
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program, x)
        >>> for row in ranges(traced).rows:
        ...     print(row.what, row.interval, row.basis)
        input 0 not known known
        simp.bounded [0, 100] declared
        result [0, 100] declared
    """
    found = program_of(program)
    names, inputs = given(program, declared or {}, sample)
    numbers = Numbers(found, inputs)
    return Ranges(found.name, Records(_rows(names, inputs, numbers)))


def _rows(names: Sequence[str], inputs: Sequence[Given], numbers: Numbers) -> Iterator[RangeRow]:
    for name, each in zip(names, inputs, strict=True):
        yield RangeRow(f"input {quoted(name, None)}", "", each.interval, each.basis, "")
    yield from _merged(map(_row, numbers.findings.values()))
    for i, each in enumerate(numbers.results):
        what = "result" if len(numbers.results) == 1 else f"result {i}"
        yield RangeRow(what, "", each.interval, each.basis, "")


def _row(finding: Finding) -> RangeRow:
    what = f"{finding.op}: {quoted(finding.step)}" if finding.step else finding.op
    line = str(finding.line or "")
    return RangeRow(what, line, finding.given.interval, finding.given.basis, finding.status)


def _merged(rows: Iterator[RangeRow]) -> Iterator[RangeRow]:
    """Leave out a row like the one before it: the shares of one value, say."""
    before = None
    for row in rows:
        if row != before:
            yield row
        before = row


def _finite(end: float) -> float | None:
    return end if math.isfinite(end) else None


def _short(end: float | None) -> str:
    return "" if end is None else f"{end + 0.0:.4g}"  # no -0
