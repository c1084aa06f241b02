"""Chart of a run: lanes of parties over one axis of time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mplang_analysis.ext import in_seconds


@dataclass(frozen=True, slots=True)
class OpBlock:
    """An op, or several equal ones without a gap that could be seen.

    Attributes:
        begin: seconds since the recording began.
        end: likewise.
        name: the op.
        line: its line; empty if it has none.
        failed: whether it failed.
        count: how many they are.
    """

    begin: float
    end: float
    name: str
    line: str
    failed: bool = False
    count: int = 1


@dataclass(frozen=True, slots=True)
class PartyLane:
    """Lane of one party, or of the host.

    Attributes:
        name: what it is called.
        blocks: its ops, by their start.
        waits: begin and end of its waits for messages.
        sends: time and bytes of the messages that it sends.
    """

    name: str
    blocks: tuple[OpBlock, ...]
    waits: tuple[tuple[float, float], ...]
    sends: tuple[tuple[float, int], ...]

    def summary(self) -> str:
        """Return how long it computes and waits, and what it sends."""
        waited = sum(covered(self.waits, 1, math.inf))
        if not self.sends and not waited:
            return ""
        busy = sum(covered(((each.begin, each.end) for each in self.blocks), 1, math.inf))
        size = sum(each for _, each in self.sends)
        many = f"{len(self.sends):,} message{'s' * (len(self.sends) != 1)}"
        computed = max(busy - waited, 0)
        return (
            f"computes {in_seconds(computed)}, waits {in_seconds(waited)}, "
            f"sends {in_bytes(size)} in {many}"
        )


@dataclass(frozen=True, slots=True)
class Chart:
    """Lanes over one axis.

    Attributes:
        title: what was run.
        seconds: how long it took.
        lanes: the host, if it ran a program, and the parties.
    """

    title: str
    seconds: float
    lanes: tuple[PartyLane, ...]


def covered(intervals: Iterable[tuple[float, float]], bins: int, seconds: float) -> list[float]:
    """Return the seconds of each bin that intervals cover; where they overlap, once.

    Args:
        intervals: begin and end of each.
        bins: the number of bins.
        seconds: the end of the last bin.

    Example:
        >>> covered([(0.0, 1.0), (0.5, 3.0)], 2, 4.0)
        [2.0, 1.0]
    """
    size = seconds / bins
    sums = [0.0] * bins
    last = 0.0
    for start, end in sorted(intervals):
        begin, last = max(start, last), max(last, end)
        if bins == 1:
            sums[0] += max(end - begin, 0.0)
            continue
        at = int(begin / size)
        while at < bins and at * size < end and begin < end:
            sums[at] += max(min(end, (at + 1) * size) - max(begin, at * size), 0.0)
            at += 1
    return sums


def counted(sends: Sequence[tuple[float, int]], bins: int, seconds: float) -> list[list[int]]:
    """Return number and bytes of the messages in each bin.

    Example:
        >>> counted([(0.5, 8), (0.7, 8), (3.0, 100)], 2, 4.0)
        [[2, 16], [1, 100]]
    """
    sums = [[0, 0] for _ in range(bins)]
    for at, size in sends:
        one = sums[min(int(at / seconds * bins), bins - 1)] if seconds else sums[0]
        one[0] += 1
        one[1] += size
    return sums


def merged(blocks: Iterable[OpBlock], gap: float) -> Iterator[OpBlock]:
    """Yield blocks, those of one op and line that are no further apart than a gap as one.

    Example:
        >>> blocks = [OpBlock(0.0, 1.0, "a", ""), OpBlock(1.125, 2.0, "a", "")]
        >>> [(each.end, each.count) for each in merged(blocks, 0.25)]
        [(2.0, 2)]
    """
    last: OpBlock | None = None
    for each in blocks:
        if last is None:
            last = each
        elif (last.name, last.line, last.failed) == (each.name, each.line, each.failed) and (
            each.begin - last.end <= gap
        ):
            last = replace(last, end=max(last.end, each.end), count=last.count + each.count)
        else:
            yield last
            last = each
    if last is not None:
        yield last


def ticks(seconds: float, most: int) -> list[float]:
    """Return round numbers of seconds for an axis.

    Example:
        >>> ticks(0.8, 4)
        [0.0, 0.2, 0.4, 0.6, 0.8]
    """
    if seconds <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(seconds / most))
    step = next(n * power for n in (1, 2, 5, 10) if n * power * most >= seconds * (1 - 1e-9))
    return [round(i * step, 12) for i in range(int(seconds / step + 1e-9) + 1)]


def in_bytes(size: float) -> str:
    """Return a number of bytes with two digits or more.

    Example:
        >>> in_bytes(950), in_bytes(1234), in_bytes(25e6)
        ('950 bytes', '1.2 kB', '25 MB')
    """
    if size < 1000:
        return f"{size:.0f} bytes"
    for unit in ("kB", "MB", "GB", "TB"):
        size /= 1000
        if size < 999.5 or unit == "TB":
            break
    return f"{size:.1f} {unit}" if size < 9.95 else f"{size:,.0f} {unit}"
