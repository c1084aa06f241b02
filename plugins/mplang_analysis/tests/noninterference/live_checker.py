"""Comparison of two runs on worker processes: messages by number and size, and what is told."""

from __future__ import annotations

from collections.abc import Iterable

from mplang_analysis import DisclosureRow

from .checker import Comparison, Finding, Reader, Stage
from .link_logs import Place, differences

LOOSE = (0, 1)  # the members of the SPU on CHEETAH, whose bytes vary by a thousandth
CONTROL = ("predicate", "index")
BESIDE = ("failure", "duration")  # tell neither of values nor of sizes


class LiveComparison(Comparison):
    """Comparison of two runs of a chain on worker processes, of which peers see the links."""

    def findings(self) -> list[Finding]:
        """Return what made a difference without a row."""
        found: list[Finding] = []
        for step, pair in enumerate(zip(self.base, self.changed, strict=False)):
            found += self._results(step, *pair)
            if pair[0].failed_at == pair[1].failed_at:
                found += self._told(step, *pair)
            if any(stage.failure for stage in pair):  # whoever was ahead had sent more
                break
            found += self._frames(step, *pair)
            found += self._at_others(step, *pair)
        return found

    def _frames(self, step: int, base: Stage, changed: Stage) -> Iterable[Finding]:
        for place in differences(base.frames, changed.frames, LOOSE):
            _, sender, receiver, _ = place
            views = (base.frames.get(place, {}), changed.frames.get(place, {}))
            detail = f"{place}: {dict(views[0])}, {dict(views[1])}"
            if sender != self.source and not self._knows(step, sender):
                yield Finding("frames", step, sender, self.source, detail)
            if receiver != self.source and not self._may_differ(step, place):
                yield Finding("frames", step, receiver, self.source, detail)

    def _may_differ(self, step: int, place: Place) -> bool:
        """Return whether a row names the party whose data a receiver's messages depend on."""
        _, sender, receiver, _ = place
        return any(
            (row.sender, row.receiver) == (sender, receiver)
            or (row.what in CONTROL and receiver in (row.sender, row.receiver))
            or row.receiver == "everyone"
            for row in self._rows(step)
        )

    def _knows(self, step: int, reader: Reader) -> bool:
        """Return whether a row of a program so far tells a reader of the party's data."""
        return any(
            row.receiver in (reader, "everyone")
            for each in range(step + 1)
            for row in self._rows(each)
        )

    def _rows(self, step: int) -> Iterable[DisclosureRow]:
        """Yield the rows of a program that disclose the party's data by a value or a size."""
        for row in self.tables[step].rows:
            if row.what not in BESIDE and self.source in row.discloses:
                yield row

    def _at_others(self, step: int, base: Stage, changed: Stage) -> Iterable[Finding]:
        for (output, rank), data in base.results.items():
            differs = changed.results.get((output, rank), data) != data
            if differs and rank != self.source and not self._knows(step, rank):
                yield Finding("result", step, rank, self.source, f"output {output}")

    def _told(self, step: int, base: Stage, changed: Stage) -> Iterable[Finding]:
        """Compare what the host is told; in runs that fail, by the party that failed.

        Whether the others had ended by then is a matter of time.
        """
        tellers = base.failed_at[:1] or range(len(base.told))
        views = [[stage.told[rank] for rank in tellers] for stage in (base, changed)]
        if views[0] != views[1]:
            yield Finding("status", step, "host", self.source, f"{views[0]}, {views[1]}")
        if base.log != changed.log:
            yield Finding("log", step, "host", self.source, f"{base.log}, {changed.log}")
