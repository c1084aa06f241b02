"""One party's interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.ir import Program
from mplang_core.namespace import Namespace
from mplang_core.runtime import Interpreter, Kernel, Listener, Recorder, joined, worker_kernels
from mplang_core.simp.checks import NumberChecks
from mplang_core.simp.comm import Communicator
from mplang_core.simp.progress import PartyState


class WorkerInterpreter(Interpreter):
    """Runs programs as one party.

    At party level a value that this party does not hold is ``None``.

    Args:
        communicator: how it reaches the others; says which party this is.
        session: a name that all workers of a cluster share, and no other cluster has.
        insecure: whether protocols that are for debugging only may run.
        timeout: how many seconds plugins' own links wait for a peer.
        checks: where a simulator's parties compare their numbers with plain ones.

    Attributes:
        rank: this party.
        world_size: how many parties there are.
        resources: what kernels keep from one op to the next, by plugin; made anew after a
            failure, when links are out of step.
    """

    def __init__(
        self,
        communicator: Communicator,
        *,
        session: str,
        insecure: bool = False,
        timeout: float = 60.0,
        checks: NumberChecks | None = None,
    ) -> None:
        kernels: Namespace[Kernel] = Namespace("worker kernel", fallback=worker_kernels)
        super().__init__(kernels)
        self.communicator = communicator
        self.session = session
        self.insecure = insecure
        self.timeout = timeout
        self.checks = checks
        self.resources: dict[Any, Any] = {}

    @property
    def rank(self) -> int:
        """This party's rank."""
        return self.communicator.rank

    @property
    def world_size(self) -> int:
        """How many parties there are."""
        return self.communicator.world_size

    def evaluate(
        self,
        program: Program,
        inputs: Sequence[Any],
        run: str,
        listener: Listener | None = None,
        recorder: Recorder | None = None,
    ) -> list[Any]:
        """Run a program as this party; where it fails, the others are told.

        Args:
            program: the same at all parties; verified before it runs.
            inputs: this party's values, ``None`` for what it does not hold.
            run: the run's name, opened at the communicator.
            listener: is told of each op.
            recorder: notes ops and messages.
        """
        try:
            if recorder is not None:
                self.communicator.record(run, recorder)
            return self.run(program, inputs, run=run, listener=joined(listener, recorder))
        except BaseException as error:
            where = getattr(error, "location", None)
            at = f" at {where}" if where else ""
            self.communicator.abort(
                run, f"party {self.rank} failed in {getattr(error, 'op', None)}{at}"
            )
            raise
        finally:
            if recorder is not None:
                recorder.end()

    def state(self) -> PartyState:
        """Return what this party does now; may be asked from any thread."""
        run = next(iter(self.runs()), None)
        op = None if run is None else self.where(run)
        return PartyState(
            "idle" if run is None else "running",
            None if op is None else op.opcode,
            None if op is None or op.location is None else str(op.location),
            self.communicator.traffic(),
        )
