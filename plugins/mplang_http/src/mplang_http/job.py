"""One run of a program, as the worker keeps it and tells of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mplang_core.runtime import Recorder, now
from mplang_core.simp import Traffic, WorkerInterpreter
from mplang_core.simp.failure import MAX_PLACE, Failure

__all__ = ["Job"]


@dataclass(slots=True)
class Job:
    """One run of a program.

    Attributes:
        run: its name.
        key: what it is called on links.
        program: the program's digest.
        recorder: notes its spans, if the coordinator wants them.
        state: ``queued``, ``running``, ``done``, ``failed`` or ``cancelled``.
        held: once it is done, per result whether this party holds it.
        error: once it has failed, why.
        begun: when it was queued.
        ended: when it ended.
    """

    run: str
    key: str
    program: str
    recorder: Recorder | None = None
    state: str = "queued"
    held: list[bool] = field(default_factory=list)
    error: Failure | None = None
    begun: float = field(default_factory=now)
    ended: float | None = None
    _worker: WorkerInterpreter | None = None
    _traffic_at_start: dict[int, Traffic] = field(default_factory=dict)
    _final_traffic: dict[int, Traffic] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self.ended is not None

    def start(self, worker: WorkerInterpreter) -> None:
        """Note that it runs."""
        self.state, self._worker = "running", worker
        self._traffic_at_start = worker.communicator.traffic()

    def end(self, state: str, held: Sequence[bool], error: Failure | None) -> None:
        """Note how it ended."""
        self._final_traffic, self._worker = self.traffic(), None
        self.state, self.held, self.error, self.ended = state, list(held), error, now()

    def traffic(self) -> dict[int, Traffic]:
        """Return what went between this party and each other in this run."""
        if self._worker is None:
            return self._final_traffic
        found = self._worker.communicator.traffic()
        return {peer: found[peer] - before for peer, before in self._traffic_at_start.items()}

    def op_location(self) -> dict[str, str | None]:
        """Return the op that runs, and its line in the coordinator's source."""
        op = None if self._worker is None else self._worker.where(self.key)
        if op is None:
            return {"op": None, "location": None}
        where = str(op.location)[:MAX_PLACE] if op.location else None
        return {"op": op.opcode, "location": where}

    def status(self) -> dict[str, Any]:
        """Return what the coordinator may know."""
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
