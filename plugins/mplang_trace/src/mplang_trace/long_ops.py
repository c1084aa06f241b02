"""Long ops: how far an op is whose costs can be told, such as one of an SPU."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from mplang_analysis import HasCosts, OpCosts, network_of

from mplang_core.ext import MPLangError, ObservedHost, Operation, PartyState, interface_of

LONG = 10.0
"""Seconds in an op after which its costs are asked for."""


@dataclass
class LongOps:
    """Ops that take long, and what they were said to take.

    Their costs are counted beside the run, which takes seconds, each once.
    """

    _costs: dict[Operation, OpCosts | None] = field(default_factory=dict)

    def progress(self, host: ObservedHost, state: PartyState, seconds: float, sent: float) -> str:
        """Return how far an op is, in words; empty if that is not known, or not yet.

        Args:
            host: whose parties run it.
            state: of one of them.
            seconds: since it began.
            sent: bytes that all parties have sent since; 0 if they are not counted.
        """
        if seconds < LONG:
            return ""
        op = _find(host.at(), state)
        if op is None:
            return ""
        if op not in self._costs:
            self._costs[op] = None
            threading.Thread(target=self._ask, args=(op,), daemon=True).start()
        costs = self._costs[op]
        return "" if costs is None else in_words(costs, seconds, sent)

    def _ask(self, op: Operation) -> None:
        asked = interface_of(op, HasCosts)
        try:
            costs = None if asked is None else asked.costs(op, network_of(None))
        except MPLangError:
            return
        if costs is not None and costs.known:
            self._costs[op] = costs


def in_words(costs: OpCosts, seconds: float, sent: float) -> str:
    """Return how far an op is by what it was said to take.

    Args:
        costs: the same.
        seconds: since it began.
        sent: bytes that all parties have sent since; 0 if they are not counted.

    Example:
        >>> from mplang_analysis import StepCost
        >>> costs = OpCosts([StepCost("sort", bytes=1000, seconds=40)])
        >>> in_words(costs, seconds=12, sent=250)
        '25 %, about 36 s left'
        >>> in_words(costs, seconds=30, sent=0)
        '75 %, about 10 s left'
        >>> in_words(costs, seconds=60, sent=0)
        'longer than the 40 s that were told'
    """
    whole = costs.seconds(network_of(None))
    share = sent / costs.bytes if sent and costs.bytes else seconds / max(whole, 1e-9)
    if share >= 1:
        return f"longer than the {whole:.0f} s that were told" if not sent else "nearly done"
    left = seconds * (1 - share) / share if share else whole
    return f"{share * 100:.0f} %, about {left:.0f} s left"


def _find(around: Operation | None, state: PartyState) -> Operation | None:
    """Return the op at which a party is, of those that the host runs."""
    todo = [] if around is None else [around]
    while todo:
        op = todo.pop()
        if op.opcode == state.op and str(op.location or "") == (state.location or ""):
            return op
        todo += [inner for region in op.regions.values() for inner in region.ops]
    return None
