"""Inputs of a run at a worker, some of which an earlier run may still have to give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mplang_analysis import Label, own
from mplang_http.ext import Input, JobRequest, Stored

from mplang_core import MPType, Program
from mplang_core.ext import AbortedError, RunError
from mplang_worker.base.errors import RequestError
from mplang_worker.engine.job import Job
from mplang_worker.engine.labels import SessionLabels
from mplang_worker.wire.requests import InputValues, input_of
from mplang_worker.wire.stored_value import StoredValue


class RunInputs:
    """Inputs of one run: read as it is submitted, but for the results of runs before it.

    Args:
        request: the run.
        program: its program.
        rank: this party.
        values: values of the session.
        job_of: returns a job of the session by the name of its run, or ``None``.

    Raises:
        RequestError: a value is not here, or the run that this one follows.
        WireError: a value is malformed.
    """

    def __init__(
        self,
        request: JobRequest,
        program: Program,
        rank: int,
        values: InputValues,
        job_of: Callable[[str], Job | None],
    ) -> None:
        self._request, self._program, self._rank, self._all = request, program, rank, values
        self._before = None if request.after is None else job_of(request.after)
        if request.after is not None and self._before is None:
            text = f"no run {request.after!r} in this session, which this one is to follow"
            raise RequestError(404, "unknown-job", text)
        self._late = {
            i
            for i, each in enumerate(request.inputs)
            if self._before is not None and _is_late(self._name(each), job_of)
        }
        self._values = [
            None if i in self._late else input_of(each, rank, values)
            for i, each in enumerate(request.inputs)
        ]
        self._failure: RunError | None = None

    @property
    def values(self) -> Sequence[StoredValue | None]:
        """One per input, ``None`` where this party has none."""
        return self._values

    def check(self) -> None:
        """Check that the values have the types of the program.

        Raises:
            RequestError: one has another type, or there are too few or too many.
        """
        wanted = self._program.graph.inputs
        if len(wanted) != len(self._values):
            raise RequestError(422, "inputs", f"the program takes {len(wanted)} inputs")
        for i, (each, value) in enumerate(zip(wanted, self._values, strict=True)):
            kind = each.type
            assert isinstance(kind, MPType)
            if value is not None and kind.base.mismatch(value.value):
                raise RequestError(422, "inputs", f"input {i} is not of type {kind.base}")

    def resolve(self) -> None:
        """Read what the runs before have given, now that they have ended; see :meth:`require`."""
        before, self._before = self._before, None
        try:
            if before is not None and before.state != "done":
                raise AbortedError(
                    f"party {self._rank} did not run it, as the run before it, {before.run}, has "
                    "not ended well"
                )
            for i in self._late:
                self._values[i] = input_of(self._request.inputs[i], self._rank, self._all)
            self.check()
        except RunError as error:
            self._failure = error
        except RequestError as error:  # it was released, or is not a result of this party
            self._failure = RunError(error.text, code="R019")

    def require(self) -> None:
        """Refuse to go on where :meth:`resolve` has failed.

        Raises:
            AbortedError: the run that this one follows has not ended well.
            RunError: an input is not here, or has another type.
        """
        if self._failure is not None:
            raise self._failure

    def labels(self, known: SessionLabels) -> list[Label | None]:
        """Return per input the label of this party's copy, also where that is not here.

        Args:
            known: labels of the session.
        """
        labels = [None if each is None else each.label for each in self._values]
        for i in self._late:
            name = self._name(self._request.inputs[i])
            if name is not None and labels[i] is None:
                labels[i] = known.of_result(name, self._rank) or own(self._rank, "unknown")
        return labels

    def _name(self, source: Input) -> str | None:
        """Return the name of the value of an input here, if it has one."""
        names = source.names if isinstance(source, Stored) else ()
        return names[self._rank] if self._rank < len(names) else None


def _is_late(name: str | None, job_of: Callable[[str], Job | None]) -> bool:
    """Return whether a value is the result of a run that has not ended."""
    job = None if name is None else job_of(name.rpartition(".")[0])
    return job is not None and not job.finished
