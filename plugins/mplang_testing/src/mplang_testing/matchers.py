"""What matchers promise: who learns has what is in common, and the other one learns nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar

from mplang_trace import record

import mplang_core as mp
from mplang_testing.suite import Suite, complain
from mplang_testing.traffic import NOISE, Traffic, traffic

COUNT = 50
ROUNDS = 10
_IDS = [f"id {i:06d}" for i in range(100_000)]


class MatcherSuite(Suite, kit=True):
    """A matcher tells one of two parties which tokens are in common, and the other one nothing.

    It is run by ``mp.match`` of ``mplang-match``, in a simulator.

    Attributes:
        protocol: its name in the group ``mplang.matchers``.
        noisy: whether the bytes of runs on the same sets vary, by two thousandths at most.

    Example::

        class TestMine(MatcherSuite):
            protocol = "MINE"
    """

    protocol: ClassVar[str]
    noisy: ClassVar[bool] = False

    def test_who_learns_has_what_is_in_common(self) -> None:
        """Results are what Python's sets have in common, whatever their sizes."""
        draw = random.Random(7)
        for _ in range(ROUNDS):
            sizes = draw.randrange(4), draw.randrange(COUNT)
            pool = draw.sample(_IDS, COUNT)
            a, b = (draw.sample(pool, size) for size in draw.sample(sizes, 2))
            for learn in ("node0", "node1"):
                ids, _ = self._matched(a, b, learn)
                self._check(ids, set(a) & set(b))

    def test_who_does_not_learn_gets_the_same_messages_whatever_is_in_common(self) -> None:
        """Number and sizes do not depend on it."""
        for learn, link in (("node0", (0, 1)), ("node1", (1, 0))):
            usual: Traffic = {}
            for common in (0, 1, COUNT // 2, COUNT - 1, COUNT):
                chosen = random.Random(common).sample(_IDS, 2 * COUNT - common)
                ids, sent = self._matched(chosen[:COUNT], chosen[COUNT - common :], learn)
                self._check(ids, set(chosen[COUNT - common : COUNT]))
                usual = usual or sent
                if not self._alike(usual[link], sent[link]):
                    complain(
                        f"the matcher {self.protocol!r} tells who must not learn by its messages",
                        expected=f"as many of the same sizes, whatever is in common: {usual[link]}",
                        got=f"{sent[link]}, where {common} tokens are",
                        fix="send the learner's messages before it knows anything, or pad them",
                    )

    def _matched(self, a: Sequence[str], b: Sequence[str], learn: str) -> tuple[set[str], Traffic]:
        """Return what a party learns of two sets, and what was sent."""
        data = {f"node{i}": {"keys": _table(ids)} for i, ids in enumerate((a, b))}

        def program() -> object:
            a, b = (mp.dataset(f"node{i}", "keys") for i in range(2))
            return mp.match(a, b, on="id", learn=learn, protocol=self.protocol, keep=True)

        with mp.Simulator(mp.ClusterSpec.simple(2), data=data) as host, record(host) as recording:
            rows = mp.fetch(host, mp.evaluate(host, program))
        return set(rows.column("id").to_pylist()), traffic(recording)

    def _check(self, ids: set[str], expected: set[str]) -> None:
        if ids != expected:
            complain(
                f"the matcher {self.protocol!r} gives something else than what is in common",
                expected=f"{len(expected)} tokens: {sorted(expected)[:3]}, …",
                got=f"{len(ids)}: {sorted(ids)[:3]}, …",
                fix="return the lines of `tokens` that the other party has, too, and no others",
            )

    def _alike(self, one: Sequence[int], other: Sequence[int]) -> bool:
        if self.noisy:
            near = abs(sum(one) - sum(other)) <= NOISE * sum(one)
            return len(one) == len(other) and near
        return list(one) == list(other)


def _table(ids: Sequence[str]) -> object:
    import pyarrow as pa  # type: ignore[import-untyped]

    return pa.table({"id": pa.array(ids, pa.string())})
