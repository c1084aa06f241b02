"""Nesting of spans: the op that each span is in, and the time that an op takes for itself."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mplang_trace.spans import Span

BACK = 100
"""Ops of a party that are looked at for one that was open when another thread sent a message."""


@dataclass(eq=False, slots=True)
class Nested:
    """A span of a party, and where it is.

    Attributes:
        span: the span.
        around: the innermost op around it; ``None`` for none.
        own: seconds of an op without those of ops in it.
        leaf: whether no op is in it.
    """

    span: Span
    around: Nested | None = None
    own: float = 0.0
    leaf: bool = True


def within(spans: Sequence[Span]) -> list[Span]:
    """Return spans without what lies before or after what the host recorded itself.

    Times of a remote worker are what it says, by a clock that differs a little.

    Args:
        spans: spans by their start.
    """
    host = [span for span in spans if span.party is None]
    if not host:
        return list(spans)
    low, high = min(span.begin for span in host), max(span.end for span in host)
    result = []
    for span in spans:
        begin, end = (min(max(each, low), high) for each in (span.begin, span.end))
        same = (begin, end) == (span.begin, span.end)
        result.append(span if same else replace(span, begin=begin, duration=end - begin))
    return sorted(result, key=lambda span: (span.begin, -span.duration))


def nested(spans: Iterable[Span]) -> list[Nested]:
    """Return the spans of the parties with the ops around them, by their start.

    Args:
        spans: spans by their start, those around others first.

    Example:
        >>> spans = [Span("a", "op", 0, 0.0, 1.0), Span("b", "op", 0, 0.25, 0.5)]
        >>> [(each.span.name, each.own, each.leaf) for each in nested(spans)]
        [('a', 0.5, False), ('b', 0.5, True)]
    """
    result: list[Nested] = []
    open_ops: dict[tuple[int, int], list[Nested]] = defaultdict(list)
    for span in spans:
        if span.party is None:
            continue
        stack = open_ops[span.party, span.thread]
        while stack and stack[-1].span.end <= span.begin:
            stack.pop()
        each = Nested(span, stack[-1] if stack else None, span.duration)
        result.append(each)
        if span.kind == "op":
            if each.around is not None:
                each.around.own -= span.duration
                each.around.leaf = False
            stack.append(each)
    _find_across_threads(result)
    return result


def _find_across_threads(spans: Sequence[Nested]) -> None:
    """Set the ops around messages that a thread of their own sends or waits for."""
    ops: dict[int | None, list[Nested]] = defaultdict(list)
    for each in spans:
        if each.span.kind == "op":
            ops[each.span.party].append(each)
    begins = {party: [op.span.begin for op in mine] for party, mine in ops.items()}
    for each in spans:
        party = each.span.party
        if each.around is None and each.span.kind in ("send", "wait") and party in ops:
            last = bisect_right(begins[party], each.span.begin)
            each.around = next(_open(ops[party][max(0, last - BACK) : last], each.span), None)


def _open(ops: Sequence[Nested], span: Span) -> Iterator[Nested]:
    """Yield the ops that are open when a span begins, the latest first."""
    return (op for op in reversed(ops) if op.span.end > span.begin)
