"""One party's interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.ir import Program
from mplang_core.namespace import Namespace
from mplang_core.runtime import Interpreter, Kernel, Listener, worker_kernels
from mplang_core.simp.comm import Communicator

__all__ = ["WorkerInterpreter"]


class WorkerInterpreter(Interpreter):
    """Runs programs as one party.

    At party level a value that this party does not hold is ``None``.

    Args:
        communicator: how it reaches the others; says which party this is.
        session: a name that all workers of a cluster share, and no other cluster has.
        insecure: whether protocols that are for debugging only may run.
        timeout: how many seconds plugins' own links wait for a peer.

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
    ) -> None:
        kernels: Namespace[Kernel] = Namespace("worker kernel", fallback=worker_kernels)
        super().__init__(kernels)
        self.communicator = communicator
        self.session = session
        self.insecure = insecure
        self.timeout = timeout
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
    ) -> list[Any]:
        """Run a program as this party; where it fails, the others are told.

        Args:
            program: the same at all parties; verified before it runs.
            inputs: this party's values, ``None`` for what it does not hold.
            run: the run's name, opened at the communicator.
            listener: is told of each op.
        """
        try:
            return self.run(program, inputs, run=run, listener=listener)
        except BaseException as error:
            where = getattr(error, "location", None)
            at = f" at {where}" if where else ""
            self.communicator.abort(
                run, f"party {self.rank} failed in {getattr(error, 'op', None)}{at}"
            )
            raise
