"""Job: state of one run of a program at a worker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mplang_analysis.ext import turn_of
from mplang_trace import SpanRecorder, now

from mplang_core.ext import MAX_PLACE, Failure, ObservedWorker, Traffic
from mplang_worker.base.step_clock import StepClock

log = logging.getLogger("mplang.http.session")


@dataclass(slots=True)
class Job:
    """State of one run of a program.

    Attributes:
        run: name of the run.
        key: name of the run on links.
        program: digest of the program.
        recorder: span recorder, if the coordinator asked for spans.
        state: ``queued``, ``running``, ``done``, ``failed`` or ``cancelled``.
        held: per result whether this party has it; set when the job is done.
        error: why the job failed.
        failure: how its program failed here; known before it is the job's outcome.
        begun: time when it was queued, in seconds.
        ended: time when it ended, in seconds.
        settled: whether no op of it runs here any more, nor ever will; a cancelled job may run on.
        op_failed: whether one of its ops failed here.
        clock: has the steps at which its end is told; ``None`` if it is told at once.
    """

    run: str
    key: str
    program: str
    recorder: SpanRecorder | None = None
    state: str = "queued"
    held: list[bool] = field(default_factory=list)
    error: Failure | None = None
    failure: Failure | None = None
    begun: float = field(default_factory=now)
    ended: float | None = None
    settled: bool = False
    op_failed: bool = False
    clock: StepClock | None = None
    _worker: ObservedWorker | None = None
    _traffic_at_start: dict[int, Traffic] = field(default_factory=dict)
    _final_traffic: dict[int, Traffic] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether the job has ended."""
        return self.ended is not None

    def start(self, worker: ObservedWorker) -> None:
        """Set the state to ``running``."""
        self.state, self._worker = "running", worker
        self._traffic_at_start = worker.traffic()

    def wait_for_step(self, leave: Callable[[], object]) -> None:
        """Wait until the end of the run may be told, if it has a clock.

        Before, nothing of its session tells it: it has no results, and the next run does not begin.

        Args:
            leave: lets go of the run, at the peers as well, as it may be long.
        """
        if self.clock is not None:
            log.info("its end is published at the next step of its clock")
            leave()
            self.clock.wait()

    def end(self, state: str, held: Sequence[bool], error: Failure | None) -> None:
        """Set the final state.

        Args:
            state: ``done``, ``failed`` or ``cancelled``.
            held: per result whether this party has it.
            error: why the job failed.
        """
        self._final_traffic, self._worker = self.traffic(), None
        self._traffic_at_start = {}  # a thousand jobs that have ended are kept
        self.state, self.held, self.error, self.ended = state, list(held), error, now()

    def traffic(self) -> dict[int, Traffic]:
        """Return the traffic of this run, by the rank of the peer."""
        if self._worker is None:
            return self._final_traffic
        found = self._worker.traffic()
        return {peer: found[peer] - before for peer, before in self._traffic_at_start.items()}

    def op_location(self) -> dict[str, str | None]:
        """Return the running op, its line in the coordinator's source, and the turn of its loop."""
        worker = self._worker
        op = None if worker is None else worker.where(self.key)
        if worker is None or op is None:
            return {"op": None, "location": None}
        where = str(op.location)[:MAX_PLACE] if op.location else None
        return {"op": op.opcode, "location": where, "turn": turn_of(worker)}

    def status(self) -> dict[str, Any]:
        """Return the status that is sent to the coordinator."""
        return {
            "at": self.op_location(),
            "run": self.run,
            "program": self.program,
            "state": self.state,
            "held": self.held,
            "error": None if self.error is None else asdict(self.error),
            "begun": self.begun,
            "ended": self.ended,
            "now": now(),
            "links": {str(peer): asdict(link) for peer, link in self.traffic().items()},
        }
