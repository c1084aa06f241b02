"""Host of the simulator."""

from __future__ import annotations

import concurrent.futures
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from mplang_analysis import Memory, remember, storage_of
from mplang_analysis.ext import ShownHost, turn_of
from mplang_cache import use_own_code_cache

from mplang_core import ClusterSpec, Mask, Program
from mplang_core.ext import (
    ConfigError,
    Diagnostic,
    HostVar,
    MissingPackageError,
    Mode,
    ObservedWorker,
    PartyState,
    PrecisionError,
    Recorder,
    RunError,
    check_fetchable,
    outcome_of,
    wait_for_outcome,
)
from mplang_simulator.checks import Meetings
from mplang_simulator.threads import PartyThread, ThreadCommunicator

Check: TypeAlias = Literal["warn", "raise"] | bool

GRACE = 2.0  # seconds for the other parties to end after one has failed


class Simulator(ShownHost):
    """Host that runs all parties in this process, for development and tests.

    The parties are not protected from each other: they share memory. Protocols for debugging are
    allowed.

    Args:
        cluster_spec: the parties and devices.
        timeout: seconds that a party waits for a message of one that does not work.
        mode: see :class:`mplang_core.simp.SimpHost`.
        check_numbers: whether approximate engines are checked against float64.
            ``"warn"`` or ``True`` shows a :class:`mplang_core.errors.PrecisionWarning` at the line
            that gives a wrong number, ``"raise"`` ends the run, ``False`` saves the time.
        check_budget: how long the op that gave a wrong number may be searched for, in times of the
            run that gave it; ten seconds are allowed in any case, and none by 0. What is left out
            is told.
        data: the data sets of the parties, by party and by name: frames, arrays, paths, or the
            fields of a worker's catalogue. Needs ``mplang-data``.
        engines: by party the database that its worker reads, such as ``{"bank": "postgresql"}``: a
            program that would give another answer there than on DuckDB is refused while compiling.
        sink: a folder for what programs store, with one of each party, which a later simulator may
            load from; a temporary one by default.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(3)) as sim:
        ...     x = mp.evaluate(sim, lambda: mp.constant(7))
        ...     mp.fetch(sim, x)
        [array(7), array(7), array(7)]
    """

    compares = True

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        *,
        timeout: float = 60.0,
        mode: Mode = "standard",
        check_numbers: Check = "warn",
        check_budget: float = 1.0,
        data: Mapping[str, Mapping[str, Any]] | None = None,
        engines: Mapping[str, str] | None = None,
        sink: str | os.PathLike[str] | None = None,
    ) -> None:
        if timeout <= 0:
            raise ConfigError(
                f"the timeout is a positive number of seconds, got {timeout}", code="C002"
            )
        super().__init__(cluster_spec, mode)
        use_own_code_cache()
        self.timeout = timeout
        self._data: Sequence[Any] = [None] * self.world_size
        self._sink = sink
        self._storage: Any = None  # of mplang_data, once a program uses it
        sets = {} if data is None else data
        if engines or not isinstance(sets, Mapping) or sets:
            self.catalogue, self._data = _data_sets(sets, self.names, engines)
        if sink is not None:
            self._open_storage()
        self._checks = _checks(check_numbers, check_budget)
        self._memory = Memory()
        self._generation = 0
        self._closed = False
        self._run_lock = threading.Lock()
        self._parties = self._start()

    def _start(self) -> _Parties:
        self._generation += 1
        session = f"{self.session}.{self._generation}"
        parties = _Parties(self._data, self.timeout, session, self._checks)
        weakref.finalize(self, parties.stop)  # a dropped simulator leaves no threads
        return parties

    def evaluate(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """Run a program; its wrong numbers are reported even if an earlier program had them.

        Args:
            program: the program.
            inputs: its inputs.

        Returns:
            Its results.
        """
        if self._checks is not None:
            self._checks.begin()
        return super().evaluate(program, inputs)

    def _warn_of(self, found: Diagnostic) -> None:
        if self._checks is None:
            return
        if self._checks.mode == "raise":
            raise PrecisionError(str(found))
        super()._warn_of(found)

    def submit(
        self, program: Program, args: Sequence[HostVar], step: Mask | None = None
    ) -> list[HostVar]:
        """Run a program after the runs of other threads, so that none starts during a failure.

        Args:
            program: the program.
            args: its inputs, at the parties.
            step: of a program of one op the parties that take part in it.

        Returns:
            Its results, at the parties.

        Raises:
            RunError: the simulator is closed.
        """
        with self._run_lock:
            if self._closed:
                raise RunError("this simulator is closed", code="R003")
            uses = storage_of(program)
            if uses and self._storage is None:
                self._open_storage()
            stored = self._storage.begin(program, self.session) if uses else None
            followed = self._memory.follow_values(program, args, stored)
            if uses:
                self._storage.follow(followed)
            try:
                results = super().submit(program, args, step)
            finally:
                if uses:
                    self._know_stored()
            remember(results, followed)
            return results

    def _open_storage(self) -> None:
        """Open the sinks of the parties, at the first program that uses them."""
        if self._data[0] is None:
            self.catalogue, self._data = _data_sets({}, self.names)
        from mplang_data.ext import LocalStorage

        self._storage = LocalStorage(self._sink, self.names)
        for mine, stored in zip(self._data, self._storage.parties, strict=True):
            mine.stored = stored
        if hasattr(self, "_parties"):
            self._parties.give(self._data)
        self._know_stored()

    def _know_stored(self) -> None:
        self.catalogue = self.catalogue.storing(self._storage.told())

    def _begin(self, run: str) -> None:
        self._parties.open(run)

    def _submit(
        self, rank: int, run: str, program: Program, inputs: Sequence[HostVar], parties: Mask
    ) -> Future[list[Any]]:
        mine = [each.values[rank] for each in inputs]
        public = [i for i, each in enumerate(inputs) if each.public]
        return self._parties.submit(rank, run, program, mine, self._recorder(rank, run), public)

    def _collect(
        self, run: str, futures: Sequence[Future[list[Any]]]
    ) -> list[list[Any] | BaseException]:
        try:
            wait_for_outcome(futures)
        except BaseException:
            self._abandon(run, "the host was interrupted")
            raise
        if any(future.done() and future.exception() for future in futures):
            self._parties.abort_checks(run)
            concurrent.futures.wait(futures, timeout=min(GRACE, self.timeout))
            self._abandon(run, "another party failed")
        else:
            self._parties.close(run)
        if self._checks is not None:
            self._checks.warn()
        return [outcome_of(future) for future in futures]

    def _abandon(self, run: str, reason: str) -> None:
        """Abandon the threads of a failed run, and start new ones.

        State that kernels share among parties, such as links of libraries, is inconsistent after a
        failure.
        """
        self._parties.abort(run, reason)
        self._parties.stop()
        self._parties = self._start()

    def progress(self) -> list[PartyState]:
        """Return the current state of each party; link statistics start at the last failure."""
        return [replace(each.state(), turn=turn_of(each)) for each in self._parties.workers]

    def _fetch(self, rank: int, value: Any) -> Any:
        read = getattr(value, "__mplang_fetch__", None)  # of what is read when it is used
        if read is not None:
            value = read()
        check_fetchable(value)
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False  # the array belongs to the party
        return value

    def close(self) -> None:
        """Stop the threads. A second call does nothing."""
        with self._run_lock:
            self._closed = True
            self._parties.stop()
            if self._storage is not None:
                self._storage.close()


def _checks(wanted: Check, budget: float) -> Meetings | None:
    if wanted not in (True, False, "warn", "raise"):
        raise ConfigError(
            f"check_numbers is 'warn', 'raise', True or False, got {wanted!r}", code="C002"
        )
    if not isinstance(budget, int | float) or not budget >= 0:
        raise ConfigError(
            f"check_budget is a number of times, 0 or more, got {budget!r}", code="C002"
        )
    if wanted is False:
        return None
    return Meetings("raise" if wanted == "raise" else "warn", budget)


def _data_sets(
    data: Mapping[str, Mapping[str, Any]],
    names: Sequence[str],
    engines: Mapping[str, str] | None = None,
) -> tuple[Any, Sequence[Any]]:
    try:
        from mplang_data.ext import simulated
    except ModuleNotFoundError as error:
        if error.name != "mplang_data":
            raise
        raise MissingPackageError(
            "data sets come with another package; try: pip install mplang-data"
        ) from None
    return simulated(data, names, engines)


class _Parties:
    """Workers of one generation: from one failure to the next."""

    def __init__(
        self, data: Sequence[Any], timeout: float, session: str, checks: Meetings | None
    ) -> None:
        self._checks = checks
        self._comms = ThreadCommunicator.connected(len(data), timeout)
        options: dict[str, Any] = {"timeout": timeout, "checks": checks}
        self.workers = [
            ObservedWorker(comm, session=session, insecure=True, data=mine, **options)
            for comm, mine in zip(self._comms, data, strict=True)
        ]
        self._threads = [PartyThread(f"mplang-P{comm.rank}") for comm in self._comms]

    def give(self, data: Sequence[Any]) -> None:
        for worker, mine in zip(self.workers, data, strict=True):
            worker.data = mine

    def open(self, run: str) -> None:
        for comm in self._comms:
            comm.open(run)

    def close(self, run: str) -> None:
        for comm in self._comms:
            comm.close(run)

    def submit(
        self,
        rank: int,
        run: str,
        program: Program,
        inputs: Sequence[Any],
        recorder: Recorder | None,
        public: Sequence[int],
    ) -> Future[list[Any]]:
        evaluate = self.workers[rank].evaluate
        job = partial(evaluate, program, inputs, run, recorder=recorder, public=public)
        return self._threads[rank].submit(job)

    def abort_checks(self, run: str) -> None:
        if self._checks is not None:
            self._checks.abort(run)

    def abort(self, run: str, reason: str) -> None:
        self.abort_checks(run)
        self._comms[0].abort(run, reason)

    def stop(self) -> None:
        for thread in self._threads:
            thread.stop()
