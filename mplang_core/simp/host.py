"""The coordinator: an interpreter whose kernels have the parties do the work."""

from __future__ import annotations

import contextlib
import itertools
import threading
import uuid
import weakref
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias, get_args

from mplang_core.edsl import InterpContext
from mplang_core.edsl.context import Cluster
from mplang_core.errors import AbortedError, CommError, ConfigError, KernelError, PartyError
from mplang_core.feop import ContextBound
from mplang_core.ir import Level, Operation, Program, op_defs
from mplang_core.mask import Mask
from mplang_core.namespace import Namespace
from mplang_core.runtime.interpreter import Interpreter, KernelContext
from mplang_core.runtime.kernels import Kernel, host_kernels
from mplang_core.runtime.listener import Listener, Observe, Recorder, joined
from mplang_core.simp.comm import size_of
from mplang_core.simp.failure import Failure
from mplang_core.simp.ops.call import call_program, interpret, launch
from mplang_core.simp.ops.common import single
from mplang_core.simp.partition import Part, part_of
from mplang_core.simp.progress import PartyState
from mplang_core.types import array_of, frozen

Mode: TypeAlias = Literal["standard", "launch"]

_options: ContextVar[tuple[Mode | None, Listener | None]] = ContextVar(
    "mplang_run_options", default=(None, None)
)


def submit(ctx: KernelContext, *args: Any, **attrs: Any) -> Any:
    """Submit an op to all parties; its results are references to theirs."""
    step = ctx.step
    if step.cache is None:
        step.cache = step.program(ctx.interpreter.mask)
    given = [args[i] for i in step.distinct_ins]
    return single(ctx, ctx.interpreter.submit(step.cache, given))


class _HostKernels(Namespace[Kernel]):
    """The kernels of the host's role; an op among parties without one is submitted."""

    def __init__(self) -> None:
        super().__init__("host kernel")

    def get(self, name: str) -> Kernel | None:
        op_def = op_defs.get(name)
        is_among_parties = op_def is not None and op_def.level is Level.PARTY
        return host_kernels.get(name) or (submit if is_among_parties else None)


class _LaunchKernels(_HostKernels):
    """As those, but a call is submitted whole."""

    def get(self, name: str) -> Kernel | None:
        found = super().get(name)
        return launch if found is interpret else found


class HostVar(ContextBound):
    """A value at the parties, as the host sees it: one reference per party.

    Attributes:
        values: by rank; ``None`` where a party holds none. What else stands here is the
            backend's matter.
    """

    __slots__ = ("__weakref__", "values")

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)

    def __repr__(self) -> str:
        held = "".join("-" if value is None else "x" for value in self.values)
        return f"HostVar({held})"


class SimpHost(Interpreter, InterpContext):
    """The host's half of a backend.

    A backend implements :meth:`_submit`, :meth:`_collect` and :meth:`_fetch`; what ops mean
    is left to kernels.

    Args:
        cluster_spec: the parties and devices.
        mode: ``"standard"`` interprets programs here, op by op; ``"launch"`` has the parties
            run them whole. Both give the same results.

    Attributes:
        names: the parties, by rank.
        observe: gives the recorders of runs from now on, if any.
    """

    def __init__(self, cluster_spec: Cluster, mode: Mode = "standard") -> None:
        if not hasattr(cluster_spec, "mask"):
            raise ConfigError(
                f"a host is made for a cluster, as mp.ClusterSpec.simple(2), got {cluster_spec!r}"
            )
        Interpreter.__init__(self, _HostKernels())
        InterpContext.__init__(self, cluster_spec)
        self.mode: Mode = _check_mode(mode)
        self.world_size = len(cluster_spec.mask)
        nodes = getattr(cluster_spec, "nodes", ())
        self.names = tuple(node.name for node in nodes) or ("",) * self.world_size
        self.session = uuid.uuid4().hex
        self._launch = Interpreter(_LaunchKernels(), owner=self)
        self._callers: weakref.WeakKeyDictionary[Program, Program] = weakref.WeakKeyDictionary()
        self._parts: weakref.WeakKeyDictionary[Program, list[Part]] = weakref.WeakKeyDictionary()
        self._count = itertools.count()
        self._evaluations = itertools.count()
        self._order = threading.Lock()
        self.observe: Observe | None = None

    # -- a backend's part

    def _begin(self, run: str) -> None:
        """Get ready for a run, before any party begins it."""

    @abstractmethod
    def _submit(
        self, rank: int, run: str, program: Program, inputs: Sequence[Any]
    ) -> Future[list[Any]]:
        """Have one party begin its part of a program on its references."""

    @abstractmethod
    def _collect(
        self, run: str, futures: Sequence[Future[list[Any]]]
    ) -> list[list[Any] | BaseException]:
        """Wait until all have ended that began; give per future its results or its error."""

    @abstractmethod
    def _fetch(self, rank: int, value: Any) -> Any:
        """Get the data behind one party's reference."""

    def progress(self) -> list[PartyState]:
        """Return what each party does now, by rank, as far as this backend knows."""
        return [PartyState()] * self.world_size

    # -- being recorded

    def _recorder(self, rank: int | None, run: str) -> Recorder | None:
        """Return what is to note the spans of a party, or ``None`` while nobody records.

        A backend asks for it in :meth:`_submit`, and gives it to
        :meth:`WorkerInterpreter.evaluate`, or has it take the spans that a worker noted.
        """
        observe = self.observe
        return None if observe is None else observe(rank, run)

    # -- running

    @contextlib.contextmanager
    def options(
        self, *, mode: Mode | None = None, listener: Listener | None = None
    ) -> Iterator[None]:
        """Run what is evaluated inside, in this thread, in a mode and with a listener.

        Raises:
            ConfigError: there is no such mode.
        """
        token = _options.set((mode and _check_mode(mode), listener))
        try:
            yield
        finally:
            _options.reset(token)

    def evaluate(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """Run a program on a :class:`HostVar` per input.

        Raises:
            PartyError: a party failed; all have ended.
        """
        mode, listener = _options.get()
        interpreter = self._launch if (mode or self.mode) == "launch" else self
        run = f"{self.session}-host-{next(self._evaluations)}"
        caller, recorder = self._caller(program), self._recorder(None, run)
        listener = joined(listener, recorder)
        with contextlib.nullcontext() if recorder is None else recorder.program(program.name):
            return interpreter.run(caller, inputs, run=run, listener=listener, inside=True)

    def at(self) -> Operation | None:
        """Return the op that this host has the parties run, if it evaluates something now.

        Of several evaluations in one mode, the one that began first counts.
        """
        ops = (each.where(run) for each in (self, self._launch) for run in each.runs())
        return next((op for op in ops if op is not None), None)

    def _caller(self, program: Program) -> Program:
        """Return a program that calls this one, so that a kernel decides how it is run."""
        made = self._callers.get(program)
        if made is not None:
            return made
        caller = call_program(program)
        self._callers[program] = caller
        return caller

    def submit(self, program: Program, args: Sequence[HostVar]) -> list[HostVar]:
        """Have all parties run a program together, each its own part of it.

        A party that has no part in it is not asked.

        Raises:
            PartyError: one failed; all have ended, or were told to.
        """
        parts = self._parts_of(program)
        inputs = [[arg.values[rank] for arg in args] for rank in range(self.world_size)]
        busy = [rank for rank, part in enumerate(parts) if not part.is_idle]
        done = dict(zip(busy, self._run_parts(parts, inputs, busy), strict=True)) if busy else {}
        results = [
            part.scatter_outputs(done[rank]) if rank in done else part.forward(inputs[rank])
            for rank, part in enumerate(parts)
        ]
        return [HostVar(values) for values in zip(*results, strict=True)]

    def _run_parts(
        self, parts: Sequence[Part], inputs: Sequence[Sequence[Any]], ranks: Sequence[int]
    ) -> list[list[Any]]:
        run = f"{self.session}-{next(self._count)}"
        with self._order:  # every party gets the runs in the same order, so none waits crosswise
            self._begin(run)
            futures = [
                self._submit(
                    rank, run, parts[rank].program, parts[rank].select_inputs(inputs[rank])
                )
                for rank in ranks
            ]
        results = self._collect(run, futures)
        failures = [
            (r, e) for r, e in zip(ranks, results, strict=True) if isinstance(e, BaseException)
        ]
        if failures:
            raise self._explain(failures)
        return results  # type: ignore[return-value]  # no errors among them

    def _parts_of(self, program: Program) -> list[Part]:
        parts = self._parts.get(program)
        if parts is None:
            parts = [part_of(program, rank) for rank in range(self.world_size)]
            self._parts[program] = parts
        return parts

    def _explain(self, failures: list[tuple[int, BaseException]]) -> BaseException:
        rank, error = min(failures, key=lambda item: _blame(item[1]))
        if not isinstance(error, Exception):
            return error
        told = Failure.of(error)
        op, where, text = told.op, told.location, told.text
        message = (
            f"party {rank} failed" + (f" in {op}" if op else "") + (f" at {where}" if where else "")
        )
        failure = PartyError(f"{message}: {text}", rank=rank, op=op, location=where)
        failure.__cause__ = error.__cause__ if isinstance(error, KernelError) else error
        return failure

    def lift(self, literal: Any, parties: Mask | None = None) -> HostVar:
        """Give a literal to parties, all by default."""
        value = frozen(array_of(literal))
        ranks = range(self.world_size)
        return HostVar([value if parties is None or r in parties else None for r in ranks])

    def fetch(self, var: HostVar) -> list[Any]:
        """Get the data of a value: one entry per party, ``None`` where it holds none."""
        recorder = self._recorder(None, "fetch")

        def get(rank: int, value: Any) -> Any:
            if recorder is None:
                return self._fetch(rank, value)
            with recorder.message("fetch", rank, "") as facts:
                data = self._fetch(rank, value)
                facts["bytes"] = size_of(data)
                return data

        return [
            None if value is None else get(rank, value) for rank, value in enumerate(var.values)
        ]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.world_size} parties>"

    def close(self) -> None:
        """End the workers that belong to this host."""

    def __enter__(self) -> SimpHost:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _check_mode(mode: Mode) -> Mode:
    if mode not in get_args(Mode):
        raise ConfigError(f"the mode is one of {get_args(Mode)}, got {mode!r}")
    return mode


def _blame(error: BaseException) -> int:
    """The cause comes before those who only stopped, or waited in vain, because of it."""
    if isinstance(error, AbortedError):
        return 2
    return 1 if isinstance(error, CommError) else 0
