"""Costs of a program by the user's lines: what protocols take, and the values that move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mplang_analysis.cost_model import costs
from mplang_analysis.network import Link
from mplang_analysis.subject import program_of
from mplang_analysis.taint import Flow
from mplang_analysis.type_size import bytes_of


@dataclass(frozen=True, slots=True)
class LineTotal:
    """Costs of all parties together at a line, once in each loop around it.

    Attributes:
        messages: how many.
        bytes: of them.
        seconds: of computing by protocols, and of the network; moves of values are not in it.
        known: whether nothing is left out.
    """

    messages: int = 0
    bytes: int = 0
    seconds: float = 0.0
    known: bool = True

    def plus(self, other: LineTotal, times: int = 1) -> LineTotal:
        """Return the total with another one, which is taken some times."""
        return LineTotal(
            self.messages + times * other.messages,
            self.bytes + times * other.bytes,
            self.seconds + times * other.seconds,
            self.known and other.known,
        )


def costs_by_line(program: object, link: Link | Mapping[str, float]) -> dict[str, LineTotal]:
    """Return what each line takes; what is set up once in a session is at the line ``""``.

    Args:
        program: a program, or a function that was traced or compiled.
        link: the network between the parties, as :func:`costs` takes it.

    Raises:
        TraceError: it is not a program.
        VerifyError: the program breaks a rule.
        ConfigError: there is no such network.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.parse('''
        ... program "demo" on {0, 1} (%0: f32[3]@{0}) {
        ...   %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : f32[3]@{1} at "demo.py:7"
        ...   return
        ... }''')
        >>> costs_by_line(program, "lan")
        {'demo.py:7': LineTotal(messages=1, bytes=12, seconds=0.0, known=True)}
    """
    checked = program_of(program)
    totals: dict[str, LineTotal] = {}

    def add(line: str, more: LineTotal) -> None:
        totals[line] = totals.get(line, LineTotal()).plus(more)

    for event in Flow(checked).events:
        if event.sent and isinstance(event.sender, int) and isinstance(event.receiver, int):
            size = bytes_of(event.type)
            known = size is not None and not event.when
            add(str(event.location or ""), LineTotal(1, size or 0, known=known))
    report = costs(checked, link)
    for row in report.lines:
        known = row.known and not row.per_iteration
        add(row.line, LineTotal(row.messages, row.bytes, row.total, known))
    for lost in report.unknown:
        add(lost.line, LineTotal(known=False))
    return totals
