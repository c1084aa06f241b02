"""Hosts and workers that may be watched: what their parties do, and recordings of it."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from mplang_core.edsl import MPObject
from mplang_core.edsl.interp import data_of
from mplang_core.errors import PrecisionWarning
from mplang_core.ir import Operation, Program
from mplang_core.ir.source_line import warn
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, Listener
from mplang_core.runtime.mailbox import CommunicatorBase
from mplang_core.runtime.native import NativeCalls
from mplang_core.runtime.progress import PartyState, Traffic
from mplang_core.runtime.recorder import Observe, Recorder, joined
from mplang_core.simp.backend import Rehearse, rehearsal_of
from mplang_core.simp.diagnostics import Diagnostic, Samples, diagnose, samples_of
from mplang_core.simp.host import HostVar, Mode, SimpHost
from mplang_core.simp.public_inputs import with_public_inputs
from mplang_core.simp.worker import WorkerInterpreter
from mplang_core.types import size_of

_rehearse: ContextVar[Rehearse | None] = ContextVar("mplang_rehearse", default=None)


class ObservedHost(SimpHost):
    """Base class of hosts of backends: its parties' progress is told, and runs are recorded.

    Attributes:
        observe: returns the recorders of runs; ``None`` if nothing is recorded.
        compares: whether wrong numbers are found in the results, as by a simulator; if not,
            diagnostics try programs on the data that the host puts.
        diagnosed: programs of which a host that compares has told what goes wrong in them.
    """

    observe: Observe | None = None
    compares = False

    def __init__(self, cluster_spec: Any, mode: Mode = "standard") -> None:
        super().__init__(cluster_spec, mode)
        self.diagnosed: weakref.WeakSet[Program] = weakref.WeakSet()
        self._tried: weakref.WeakKeyDictionary[Program, weakref.WeakSet[HostVar]]
        self._tried = weakref.WeakKeyDictionary()
        self._samples: weakref.WeakKeyDictionary[HostVar, Samples] = weakref.WeakKeyDictionary()

    def evaluate(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """Run a program, once it was told what goes wrong in it, and was rehearsed.

        Args:
            program: the program.
            inputs: its inputs.

        Returns:
            Its results.
        """
        for found in self._diagnose(program, inputs):
            self._warn_of(found)
        if (rehearse := _rehearse.get()) is not None:
            with self.options():
                rehearse(self, program, inputs)
        return super().evaluate(program, inputs)

    def _diagnose(self, program: Program, inputs: Sequence[Any]) -> list[Diagnostic]:
        """Return what goes wrong, if it was not told of the program and these data before."""
        if self.compares:
            if program in self.diagnosed:
                return []
            self.diagnosed.add(program)
            return diagnose(program)
        given = {i: var for i, var in enumerate(inputs) if var in self._samples}
        tried = self._tried.get(program)
        if tried is not None and all(var in tried for var in given.values()):
            return []
        self._tried[program] = weakref.WeakSet(given.values())
        return diagnose(program, {i: self._samples[var] for i, var in given.items()})

    def literal(self, value: Any, parties: Mask) -> MPObject:
        """Return a value for a literal at some parties; diagnostics try programs on it."""
        made = super().literal(value, parties)
        self._sample(data_of(made), value)
        return made

    def lift(self, literal: Any, parties: Mask | None = None) -> HostVar:
        """Return a reference to a literal at some parties; diagnostics try programs on it."""
        made = super().lift(literal, parties)
        self._sample(made, literal)
        return made

    def _sample(self, var: HostVar, data: Any) -> None:
        if not self.compares and (samples := samples_of(data)):
            self._samples[var] = samples

    @contextmanager
    def options(
        self, *, mode: Mode | None = None, listener: Listener | None = None, check: Any = None
    ) -> Iterator[None]:
        """Set mode, listener and check of evaluations of this thread inside of ``with``.

        Args:
            mode: the mode; that of the host by default.
            listener: notified of each op; ``None`` for none.
            check: a backend that runs programs on synthetic data first, ``"simulator"``; ``None``
                for none.

        Raises:
            ConfigError: there is no such mode, or the backend does not rehearse programs.
            PluginLoadError: no such backend is installed.
        """
        token = _rehearse.set(None if check is None else rehearsal_of(check))
        try:
            with super().options(mode=mode, listener=listener):
                yield
        finally:
            _rehearse.reset(token)

    def _warn_of(self, found: Diagnostic) -> None:
        """Warn of what goes wrong in a program, before anything runs."""
        warn(found.text, PrecisionWarning, found.line)

    def progress(self) -> list[PartyState]:
        """Return the state of each party by rank; ``idle`` for all by default."""
        return [PartyState()] * self.world_size

    def at(self) -> Operation | None:
        """Return the op that the parties run now; ``None`` if nothing is evaluated.

        With several evaluations in one mode, it is that of the earliest.
        """
        contexts = [*self.running.values(), *self._launch.running.values()]
        return next(filter(None, map(op_of, contexts)), None)

    def fetch(self, var: HostVar) -> list[Any]:
        """Return the data of a value: one entry per rank, ``None`` for a party without it."""
        if (recorder := self._recorder(None, "fetch")) is None:
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
        with nullcontext() if recorder is None else recorder.program(program):
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
        """Mark this party as evaluating a run, so that the others wait for it."""
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
