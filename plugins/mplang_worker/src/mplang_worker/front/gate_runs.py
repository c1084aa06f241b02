"""Runs of a session at the gate: asked for, permitted, and what peers tell of their logs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from mplang_analysis import RunRequest

from mplang_worker.base.section_protocols import Decision

MAX_RUNS = 64  # that have ended, whose late heads are taken
MAX_HEARD = 8  # runs whose heads are kept, of 64 KiB a peer: one or two are at work at once

Fields: TypeAlias = Mapping[str, Any]
"""What an entry says, or a process tells, as plain data."""

Reply: TypeAlias = dict[str, Any]
"""Answer to an engine, as plain data."""


class Pending(NamedTuple):
    """Run that the gate permits, and that begins once all parties do.

    Attributes:
        asking: the run.
        decision: that it is allowed.
    """

    asking: RunRequest
    decision: Decision


class GateRuns:
    """Runs of one session at the gate.

    Attributes:
        asked: by their names, runs that the coordinator has asked for and of which nothing is on
            record yet: what an entry of each says.
        pending: by its name, the run that is permitted and has not begun.
    """

    def __init__(self) -> None:
        self.asked: dict[str, Fields] = {}
        self.pending: dict[str, Pending] = {}
        self._heads: OrderedDict[str, dict[str, bytes]] = OrderedDict()
        self._ended: OrderedDict[str, set[str]] = OrderedDict()  # by run, of whom nothing came yet

    def hear(self, run: str, peer: str, head: bytes) -> bool:
        """Keep the signed head of a peer; return whether it is late, as the run has ended.

        Args:
            run: name of the run.
            peer: name of the peer.
            head: untrusted.
        """
        if run in self._ended:
            is_late = peer in self._ended[run]
            self._ended[run].discard(peer)
            return is_late
        self._heads.setdefault(run, {}).setdefault(peer, head)
        if len(self._heads) > MAX_HEARD:
            self._heads.popitem(last=False)
        return False

    def end(self, run: str, peers: set[str]) -> dict[str, bytes]:
        """Return the heads that came of a run's peers, as it ends; those that are missing are late.

        Args:
            run: name of the run.
            peers: names of its peers that have a gate.
        """
        heads = {peer: head for peer, head in self._heads.pop(run, {}).items() if peer in peers}
        self._ended[run] = peers - heads.keys()
        if len(self._ended) > MAX_RUNS:
            self._ended.popitem(last=False)
        return heads
