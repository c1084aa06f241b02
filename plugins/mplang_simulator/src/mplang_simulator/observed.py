"""Hosts and workers that may be watched: what their parties do, and recordings of it."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import numpy as np
from mplang_analysis import Interval, PrecisionLoss, precision_losses, sample_of_data
from mplang_passes import with_public_inputs

from mplang_core import Mask, MPObject, Program, TensorType
from mplang_core.ext import (
    ConfigError,
    HostVar,
    KernelContext,
    Listener,
    Location,
    Mode,
    Operation,
    PrecisionWarning,
    SimpHost,
    WorkerInterpreter,
    size_of,
)
from mplang_simulator.mailbox import CommunicatorBase
from mplang_simulator.native import NativeCalls
from mplang_simulator.progress import PartyState, Traffic
from mplang_simulator.recorder import Observe, Recorder, joined

_check: ContextVar[str | None] = ContextVar("mplang_check", default=None)


class ObservedHost(SimpHost):
    """Base class of hosts of backends: its parties' progress is told, and runs are recorded.

    Attributes:
        observe: returns the recorders of runs; ``None`` if nothing is recorded.
        foretold: programs of which a host that compares results has told what engines will not
            hold.
    """

    observe: Observe | None = None

    def __init__(self, cluster_spec: Any, mode: Mode = "standard") -> None:
        super().__init__(cluster_spec, mode)
        self.foretold: weakref.WeakSet[Program] = weakref.WeakSet()
        self._tried: weakref.WeakKeyDictionary[Program, weakref.WeakSet[HostVar]]
        self._tried = weakref.WeakKeyDictionary()
        self._samples: weakref.WeakKeyDictionary[HostVar, Interval] = weakref.WeakKeyDictionary()

    def evaluate(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """Run a program, once it was told what its engines will not hold, and was rehearsed.

        Args:
            program: the program.
            inputs: its inputs.

        Returns:
            Its results.
        """
        for loss in self._losses(program, inputs):
            self._foretell(loss)
        if _check.get() is not None:
            from mplang_simulator.rehearsal import rehearse

            with self.options():
                rehearse(self, program, inputs)
        return super().evaluate(program, inputs)

    def _losses(self, program: Program, inputs: Sequence[Any]) -> list[PrecisionLoss]:
        """Return what engines will not hold, if it was not told of the program and these data.

        Nobody compares their results, so the engines try their functions.
        """
        given = {i: var for i, var in enumerate(inputs) if var in self._samples}
        tried = self._tried.get(program)
        if tried is not None and all(var in tried for var in given.values()):
            return []
        self._tried[program] = weakref.WeakSet(given.values())
        return precision_losses(program, {i: self._samples[var] for i, var in given.items()})

    def literal(self, value: Any, parties: Mask) -> MPObject:
        """Return a value for a literal at some parties; engines are tried on its data."""
        made = super().literal(value, parties)
        self._sample(made.value, value)
        return made

    def lift(self, literal: Any, parties: Mask | None = None) -> HostVar:
        """Return a reference to a literal at some parties; engines are tried on its data."""
        made = super().lift(literal, parties)
        self._sample(made, literal)
        return made

    def _sample(self, var: HostVar, literal: Any) -> None:
        if isinstance(literal, np.ndarray | np.generic | int | float):
            array = np.asarray(literal)
            found = sample_of_data(array, TensorType.of(array))
            if found.known:
                self._samples[var] = found

    @contextmanager
    def options(
        self, *, mode: Mode | None = None, listener: Listener | None = None, check: Any = None
    ) -> Iterator[None]:
        """Set mode, listener and check of evaluations of this thread inside of ``with``.

        Args:
            mode: the mode; that of the host by default.
            listener: notified of each op; ``None`` for none.
            check: ``"simulator"`` to run programs on synthetic data first; ``None`` for nothing.

        Raises:
            ConfigError: there is no such mode or check.
        """
        if check not in (None, "simulator"):
            raise ConfigError(f"check is 'simulator' or None, got {check!r}")
        token = _check.set(check)
        try:
            with super().options(mode=mode, listener=listener):
                yield
        finally:
            _check.reset(token)

    def _foretell(self, loss: PrecisionLoss) -> None:
        """Tell of a number that an engine does not hold, before anything runs."""
        line = loss.line or Location("<mplang>", 1)
        warnings.warn_explicit(loss.text, PrecisionWarning, line.file, line.line)

    def progress(self) -> list[PartyState]:
        """Return the state of each party by rank; ``idle`` for all by default."""
        return [PartyState()] * self.world_size

    def at(self) -> Operation | None:
        """Return the op that the parties run now; ``None`` if nothing is evaluated.

        With several evaluations in one mode, it is that of the earliest.
        """
        contexts = [*self.running.values(), *self._launch.running.values()]
        ops = map(op_of, contexts)
        return next((op for op in ops if op is not None), None)

    def fetch(self, var: HostVar) -> list[Any]:
        """Return the data of a value: one entry per rank, ``None`` for a party without it."""
        recorder = self._recorder(None, "fetch")
        if recorder is None:
            return super().fetch(var)
        found: list[Any] = [None] * len(var.values)
        for rank, value in enumerate(var.values):
            if value is not None:
                with recorder.message("fetch", rank, "") as facts:
                    found[rank] = self._fetch(rank, value)
                    facts["bytes"] = size_of(found[rank])
        return found

    def _recorder(self, rank: int | None, run: str) -> Recorder | None:
        """Return the recorder of a party in a run, ``None`` if nothing is recorded.

        A backend calls it in :meth:`_submit`. It passes the recorder to
        :meth:`ObservedWorker.evaluate`, or adds spans of a remote worker to it.
        """
        observe = self.observe
        return None if observe is None else observe(rank, run)

    @contextmanager
    def _observed(
        self, program: Program, run: str, listener: Listener | None
    ) -> Iterator[Listener | None]:
        recorder = self._recorder(None, run)
        with nullcontext() if recorder is None else recorder.program(program.name):
            yield joined(listener, recorder)


class ObservedWorker(WorkerInterpreter):
    """Interpreter of a worker that tells what it does, and records it.

    Attributes:
        natives: the native services of its session, by name; ``None`` where kernels call their
            libraries in this process.
    """

    natives: Mapping[str, NativeCalls] | None = None

    def evaluate(
        self,
        program: Program,
        inputs: Sequence[Any],
        run: str,
        listener: Listener | None = None,
        recorder: Recorder | None = None,
        public: Collection[int] = (),
    ) -> list[Any]:
        """Run a program as this party; on failure abort the run at the other parties.

        Args:
            program: the program of all parties; verified before it runs.
            inputs: one value per input, ``None`` for those that this party does not hold.
            run: the name of the run, which must be open at the communicator.
            listener: notified of each op.
            recorder: records ops and messages.
            public: the positions of the inputs that all parties were given, the same.

        Returns:
            One value per output, ``None`` for those that this party does not hold.

        Raises:
            VerifyError: the program breaks a rule.
            MPLangError: an op failed; ``error.op`` and ``error.location`` name it.
        """
        with self._at_work(run):
            program = with_public_inputs(program, public)
            if recorder is None:
                return super().evaluate(program, inputs, run, listener)
            try:
                self._record(run, recorder)
                return super().evaluate(program, inputs, run, joined(listener, recorder))
            finally:
                recorder.end()

    @contextmanager
    def _at_work(self, run: str) -> Iterator[None]:
        """Have the other parties wait for this one while it evaluates a run."""
        comm = self.communicator
        if not isinstance(comm, CommunicatorBase):
            yield
            return
        comm.set_evaluated(run, True)
        try:
            yield
        finally:
            comm.set_evaluated(run, False)

    def _record(self, run: str, recorder: Recorder) -> None:
        try:
            if isinstance(self.communicator, CommunicatorBase):
                self.communicator.record(run, recorder)
        except BaseException as error:
            self.abort(run, error)
            raise

    def where(self, run: str) -> Operation | None:
        """Return the current innermost op of a run, ``None`` if there is none; thread-safe."""
        return op_of(self.running.get(run))

    def state(self) -> PartyState:
        """Return the state of this party; thread-safe."""
        run = next(iter(list(self.running)), None)
        op = None if run is None else self.where(run)
        return PartyState(
            "idle" if run is None else "running",
            None if op is None else op.opcode,
            None if op is None or op.location is None else str(op.location),
            self.traffic(),
        )

    def traffic(self) -> dict[int, Traffic]:
        """Return the traffic with each other party by rank; empty if not counted."""
        comm = self.communicator
        return comm.traffic() if isinstance(comm, CommunicatorBase) else {}


def op_of(ctx: KernelContext | None) -> Operation | None:
    """Return the current innermost op of a run, ``None`` if there is none; thread-safe.

    Args:
        ctx: the outermost context of the run; ``None`` if it is not active.
    """
    found = None
    while ctx is not None:
        # a region has no step before its first op: then it is the op around it
        found = getattr(ctx, "step", None) or found
        ctx = getattr(ctx, "inner", None)
    return None if found is None else found.op
