"""Interpreter of a worker: programs at one party."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.ir import Program
from mplang_core.runtime import Interpreter, Listener, worker_kernels
from mplang_core.runtime.communicator import Communicator
from mplang_core.runtime.plan import Plan, make_plan
from mplang_core.simp.interfaces import participants_of
from mplang_core.simp.ops.regions import DISAGREE
from mplang_core.simp.passes import prepared


class WorkerInterpreter(Interpreter):
    """Interpreter of programs at one party.

    Programs are those of all parties; it skips the ops that this party takes no part in. At party
    level a value that this party does not hold is ``None``.

    Args:
        communicator: the transport, which determines the rank.
        session: a name that all workers of the cluster share, and no other cluster has.
        insecure: whether insecure protocols for debugging may run.
        timeout: how long links of plugins wait for a peer, in seconds.
        checks: the number checks of a simulator, as ``mplang_simulator`` has them; ``None``
            elsewhere.
        data: the data sets of this party, as ``mplang_data`` opens them; ``None`` for none.

    Attributes:
        resources: objects that kernels keep between ops, by plugin; replaced after a failure,
            since links may be out of sync.
    """

    def __init__(
        self,
        communicator: Communicator,
        *,
        session: str,
        insecure: bool = False,
        timeout: float = 60.0,
        checks: Any = None,
        data: Any = None,
    ) -> None:
        super().__init__(worker_kernels)
        self.communicator = communicator
        self.session = session
        self.insecure = insecure
        self.timeout = timeout
        self.checks = checks
        self.data = data
        self.resources: dict[Any, Any] = {}

    @property
    def rank(self) -> int:
        """This party's rank."""
        return self.communicator.rank

    @property
    def world_size(self) -> int:
        """The number of parties."""
        return self.communicator.world_size

    def make_plan(self, program: Program) -> Plan:
        """Return the plan of a program for this party: verified, after the passes."""
        ready, rank = prepared(program), self.rank
        return make_plan(
            ready.graph, self.kernels, lambda op: rank in participants_of(op, program.mask)
        )

    def evaluate(
        self, program: Program, inputs: Sequence[Any], run: str, listener: Listener | None = None
    ) -> list[Any]:
        """Run a program as this party; on failure abort the run at the other parties.

        Args:
            program: the program of all parties; verified before it runs.
            inputs: one value per input, ``None`` for those that this party does not hold.
            run: the name of the run, which must be open at the communicator.
            listener: notified of each op.

        Returns:
            One value per output, ``None`` for those that this party does not hold.

        Raises:
            VerifyError: the program breaks a rule.
            MPLangError: an op failed; ``error.op`` and ``error.location`` name it.
        """
        try:
            return self.run(program, inputs, run=run, listener=listener)
        except BaseException as error:
            self.abort(run, error)
            raise

    def abort(self, run: str, error: BaseException) -> None:
        """Abort a run at the other parties, as it failed here; they learn of the op and its line.

        Args:
            run: the run.
            error: the failure.
        """
        where = getattr(error, "location", None)
        at = f" at {where}" if where else ""
        why = f": {DISAGREE}" if str(error).startswith(DISAGREE) else ""  # all compare theirs
        self.communicator.abort(
            run, f"party {self.rank} failed in {getattr(error, 'op', None)}{at}{why}"
        )
