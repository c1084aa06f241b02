"""Analysis ``fields``: the field of each SPU's shares in a program, and why it is that one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mplang_analysis import Report, TextTable
from mplang_analysis.ext import quoted, quoted_line

from mplang_core import Program
from mplang_spu.config import NARROW, WIDE
from mplang_spu.field_reasons import reasons_against
from mplang_spu.share_type import Sharing, shares_in

ENOUGH = "integers that FM64 is certain to get right"
COLUMNS = ("shares", "field", "line", "why")


@dataclass(frozen=True, slots=True)
class FieldRow:
    """Field of the shares of one SPU, and one reason.

    Attributes:
        shares: how they are shared: ``ABY3 of {0, 1, 2}``.
        field: the field, with its fraction bits.
        line: the user's line, ``demo.py:12``; empty if unknown, or if all lines are meant.
        why: what needs FM128; or that FM64 is enough, whether or not it was taken.
    """

    shares: str
    field: str
    line: str
    why: str


@dataclass(frozen=True, slots=True)
class Fields(Report):
    """Fields of a program.

    Attributes:
        program: its name.
        rows: one per SPU and reason.
    """

    program: str
    rows: tuple[FieldRow, ...]

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        rows = [{name: getattr(row, name) for name in COLUMNS} for row in self.rows]
        return {"program": self.program, "rows": rows}

    def tables(self) -> list[TextTable]:
        """Return the one table."""
        rows = [
            [row.shares, row.field, quoted_line(row.line) if row.line else "", row.why]
            for row in self.rows
        ]
        return [TextTable(f"Fields of {quoted(self.program)}", COLUMNS, rows)]


def fields(program: Program) -> Fields:
    """Return which field the shares of a program have, and what needs FM128 rather than FM64.

    Args:
        program: a valid program.

    Returns:
        A row per SPU and reason; no rows if there are no shares.

    Example:
        >>> import mplang_core as mp
        >>> def program(x):
        ...     return mp.reveal(mp.device("SP0")(lambda x: x > 3)(mp.seal(x)))
        >>> x = mp.MPType(mp.TensorType("i32", (3,)), mp.Mask.of(0))
        >>> devices = {"SP0": {"kind": "SPU", "members": [0, 1], "config": {"field": "auto"}}}
        >>> compiled = mp.compile(program, x, cluster_spec=mp.ClusterSpec([{}, {}], devices))
        >>> fields(compiled.program).rows[0].field
        'FM64 with 18 fraction bits'
    """
    rows = (row for like in shares_in(program.graph) for row in _rows(program, like))
    return Fields(program.name, tuple(rows))


def _rows(program: Program, like: Sharing) -> Iterator[FieldRow]:
    shares = f"{like.protocol} of {like.parties}"
    field = f"{like.field} with {like.fxp} fraction bits"
    for line, why in _reasons(program, like):
        yield FieldRow(shares, field, line, why)


def _reasons(program: Program, like: Sharing) -> Sequence[tuple[str, str]]:
    against = reasons_against(program, like) if like.field in (NARROW, WIDE) else []
    reasons = [(str(each.line or ""), each.text) for each in against]
    if like.field == WIDE:
        return reasons or [("", f"{ENOUGH}; field: auto would take it")]
    if like.field == NARROW and not reasons:
        return [("", ENOUGH)]
    return [("", "so the device says"), *reasons]
