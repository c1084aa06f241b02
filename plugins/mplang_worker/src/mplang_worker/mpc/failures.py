"""Filter for failures that an MPC process reports to its engine.

Peers may have taken that process over. It has operands, and the text of a failure goes to the
coordinator where the transport failed or no op ran. So what leaves the engine is one of the texts
that are listed here; whatever else the process says is in the worker's own log.
"""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import (
    WITHHELD,
    AbortedError,
    CommError,
    Failure,
    RecvTimeoutError,
    RunError,
    late,
    overdue,
)
from mplang_worker.link.linked_communicator import SETTING
from mplang_worker.link.lost_link import LostLink

KINDS = {kind.__name__: kind for kind in (CommError, RecvTimeoutError, AbortedError)}
"""Errors that an MPC process may tell besides ``RunError``: those of the transport."""


class MpcFailures:
    """Failures that the MPC process of a session may tell.

    Args:
        rank: rank of this party.
        names: names of the parties' workers, by rank.
        seconds: that it waits for a message.
        longest: seconds that a run may take.
    """

    def __init__(self, rank: int, names: Sequence[str], seconds: float, longest: float) -> None:
        self._worker = names[rank]
        self._texts = {WITHHELD}
        for peer, name in enumerate(names):
            self._texts |= {late(rank, peer, seconds, SETTING), overdue(rank, peer, longest)}
            lost = f"party {rank} has lost its link to the MPC process of party {peer} ({name})"
            self._texts |= {f"{lost}: {why}" for why in LostLink}

    def error(self, kind: str, text: str, aborted: Failure | None) -> RunError:
        """Return the error for what the process tells; its cause is for this party alone.

        Args:
            kind: name of the error's class, as the process says.
            text: its text, as the process says.
            aborted: how the run has failed here already, if it has.
        """
        told = Failure(kind, text).error()
        found = KINDS.get(kind)
        if found is None:
            return self.withheld(told)
        known = self._texts | ({str(aborted.error())} if aborted is not None else set())
        error = found(text if text in known else WITHHELD)
        error.__cause__ = told
        return error

    def withheld(self, why: BaseException) -> RunError:
        """Return the error for anything that depends on what the process has sent.

        Args:
            why: the cause, for this party alone.
        """
        error = RunError(
            f"the MPC process of worker {self._worker} failed; {WITHHELD}", code="R017"
        )
        error.__cause__ = why
        return error
