"""Labels of a session: whose data is in its values, run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mplang_analysis import Followed, Label, Memory, Stored
from mplang_http.ext import JobRequest

from mplang_core import Program
from mplang_worker.base.digests import sha256
from mplang_worker.engine.known_labels import KnownLabels
from mplang_worker.wire.opening import Opening


class SessionLabels:
    """Labels of a session: what its parties got so far, and of its results.

    Attributes:
        history: SHA-256 of the runs that were followed, which the peers are told.
    """

    def __init__(self) -> None:
        self.history = ""
        self._memory = Memory()
        self._known = KnownLabels()

    def of_inputs(
        self, openings: Mapping[int, Opening], request: JobRequest
    ) -> list[dict[int, Label]]:
        """Return per input of a run the labels of the parties' copies.

        Args:
            openings: the openings of the parties by rank.
            request: the run.

        Raises:
            WireError: a party tells of another number of inputs, or a label is malformed.
        """
        return self._known.of_inputs(openings, request.inputs)

    def of_result(self, name: str, rank: int) -> Label | None:
        """Return the label of a party's copy of a result; ``None`` if it is not known."""
        return self._known.of(name, rank)

    def follow(
        self,
        program: Program,
        request: JobRequest,
        openings: Mapping[int, Opening],
        labels: Sequence[Mapping[int, Label]],
        stored: Stored,
        key: str,
    ) -> Followed:
        """Return what a run does with labels, and remember it.

        Args:
            program: the program.
            request: the run.
            openings: the openings of the parties by rank.
            labels: per input the labels of the parties' copies.
            stored: the labels of what it loads.
            key: name of the run on links.
        """
        missed = False
        if not request.step:  # steps are known to those who take part only
            missed = any(each.history != self.history for each in openings.values())
            self.history = sha256([self.history, key])
        followed = self._memory.follow(program, labels, missed=missed, stored=stored)
        self._known.add(request.run, followed.outputs)
        return followed
