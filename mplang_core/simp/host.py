"""Host: an interpreter that submits ops to the parties."""

from __future__ import annotations

import contextlib
import itertools
import threading
import uuid
import weakref
from abc import abstractmethod
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any, Literal, Self, TypeAlias, get_args

from mplang_core.edsl import InterpContext, InterpVar, MPObject
from mplang_core.edsl.context import Cluster
from mplang_core.errors import (
    AbortedError,
    AdmissionError,
    CommError,
    ConfigError,
    KernelError,
    PartyError,
    TraceError,
    WireError,
)
from mplang_core.feop import ContextBound
from mplang_core.ir import Graph, Level, Operation, Program, Value, op_defs
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.namespace import Namespace
from mplang_core.runtime.codec import type_of, value_of
from mplang_core.runtime.failure import told_of
from mplang_core.runtime.interpreter import Interpreter, KernelContext
from mplang_core.runtime.kernels import Kernel, host_kernels
from mplang_core.runtime.listener import Listener
from mplang_core.simp.interfaces import participants_of
from mplang_core.simp.ops.call import call_program, interpret, launch
from mplang_core.simp.ops.common import check_parties, single
from mplang_core.simp.ops.keep import kept_outputs
from mplang_core.simp.passes import stepped
from mplang_core.types import MPType

Mode: TypeAlias = Literal["standard", "launch"]

_options: ContextVar[tuple[Mode | None, Listener | None]] = ContextVar(
    "mplang_run_options", default=(None, None)
)


def submit(ctx: KernelContext, *args: Any, **attrs: Any) -> Any:
    """Submit an op to the parties that take part in it; return references to its results."""
    step, world = ctx.step, ctx.interpreter.mask
    if step.cache is None:
        step.cache = _alone(step.op, world), participants_of(step.op, world)
    program, parties = step.cache
    given = dict(zip(step.ins, args, strict=True))  # a value is given once
    return single(ctx, ctx.interpreter.submit(program, list(given.values()), parties))


def _alone(op: Operation, mask: Mask) -> Program:
    """Return a program of an op alone, whose inputs are the distinct operands."""
    inputs = {value: Value(value.type) for value in op.inputs}
    outputs = tuple(Value(value.type) for value in op.outputs)
    operands = tuple(inputs[value] for value in op.inputs)
    moved = Operation(op.opcode, operands, outputs, op.attrs, op.regions, op.location)
    return Program(op.opcode, mask, Graph(list(inputs.values()), [moved], list(outputs)))


class _HostKernels(Namespace[Kernel]):
    """Kernel table of hosts in standard mode: ops among parties without a kernel are submitted."""

    def get(self, name: str) -> Kernel | None:
        op_def = op_defs.get(name)
        is_among_parties = op_def is not None and op_def.level is Level.PARTY
        return host_kernels.get(name) or (submit if is_among_parties else None)


class _LaunchKernels(_HostKernels):
    """Kernel table of hosts in launch mode: calls are submitted as a whole."""

    def get(self, name: str) -> Kernel | None:
        found = super().get(name)
        return launch if found is interpret else found


class HostVar(ContextBound):
    """Reference of the host to a value at the parties.

    Attributes:
        values: one entry per rank: a reference of the backend, ``None`` for a party that does
            not hold the value.
        kept: whether :func:`mplang_core.keep` keeps it at the parties.
        public: whether all parties were given it, the same.
        labels: per rank what flowed into that party's copy, as :mod:`mplang_analysis` knows it;
            ``None`` if it was put.
    """

    __slots__ = ("__weakref__", "kept", "labels", "public", "values")

    def __init__(self, values: Sequence[Any], *, kept: bool = False, public: bool = False) -> None:
        self.values = tuple(values)
        self.kept = kept
        self.public = public
        self.labels: Mapping[int, Any] | None = None

    def __repr__(self) -> str:
        return f"HostVar({''.join('-' if value is None else 'x' for value in self.values)})"


class SimpHost(Interpreter, InterpContext):
    """Base class of hosts. Backends implement :meth:`_submit`, :meth:`_collect`, :meth:`_fetch`.

    Args:
        cluster_spec: the parties and devices.
        mode: ``"standard"``: the host interprets programs op by op. ``"launch"``: the parties
            run them as a whole. Both give the same results.

    Attributes:
        names: the names of the parties by rank.

    Raises:
        ConfigError: the cluster or the mode is invalid.
    """

    def __init__(self, cluster_spec: Cluster, mode: Mode = "standard") -> None:
        if not hasattr(cluster_spec, "mask"):
            raise ConfigError(
                f"a host is made for a cluster, as mp.ClusterSpec.simple(2), got {cluster_spec!r}",
                code="C002",
            )
        Interpreter.__init__(self, _HostKernels("host kernel"))
        InterpContext.__init__(self, cluster_spec)
        self.mode: Mode = _check_mode(mode)
        self.world_size = len(cluster_spec.mask)
        nodes = getattr(cluster_spec, "nodes", ())
        self.names = tuple(node.name for node in nodes) or ("",) * self.world_size
        self.session = uuid.uuid4().hex
        self._launch = Interpreter(_LaunchKernels("host kernel"), owner=self)
        self._callers: Sequence[MutableMapping[Program, Program]] = tuple(
            weakref.WeakKeyDictionary()
            for _ in range(2)  # of whole programs, and of steps
        )
        self._count = itertools.count()
        self._evaluations = itertools.count()
        self._order = threading.Lock()

    # -- implemented by backends

    def _begin(self, run: str) -> None:
        """Prepare a run before any party begins it."""

    @abstractmethod
    def _submit(
        self, rank: int, run: str, program: Program, inputs: Sequence[HostVar], parties: Mask
    ) -> Future[list[Any]]:
        """Start a program at a party.

        Args:
            rank: the party.
            run: the name of the run.
            program: the whole program.
            inputs: one per input, with the references of all parties.
            parties: those that run it.

        Returns:
            A future of one reference per output, ``None`` where the party holds none.
        """

    @abstractmethod
    def _collect(
        self, run: str, futures: Sequence[Future[list[Any]]]
    ) -> list[list[Any] | BaseException]:
        """Wait for all started parties; return the results or the error of each future."""

    @abstractmethod
    def _fetch(self, rank: int, value: Any) -> Any:
        """Return the data of one party's reference."""

    # -- running

    @contextlib.contextmanager
    def options(
        self, *, mode: Mode | None = None, listener: Listener | None = None, check: Any = None
    ) -> Iterator[None]:
        """Set the mode and the listener of evaluations of this thread inside of ``with``.

        Args:
            mode: the mode; that of the host by default.
            listener: notified of each op; ``None`` for none.
            check: what checks programs first; hosts of backends know ``"simulator"``.

        Raises:
            ConfigError: there is no such mode or check.
        """
        if check is not None:
            raise ConfigError(f"{type(self).__name__} has no check {check!r}", code="C002")
        token = _options.set((mode and _check_mode(mode), listener))
        try:
            yield
        finally:
            _options.reset(token)

    def evaluate(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """Run a program.

        Args:
            program: the whole program.
            inputs: one :class:`HostVar` per input.

        Returns:
            One :class:`HostVar` per output.

        Raises:
            VerifyError: the program breaks a rule.
            PartyError: a party failed; all parties have ended.
        """
        mode, listener = _options.get()
        interpreter = self._launch if (mode or self.mode) == "launch" else self
        run = f"{self.session}-host-{next(self._evaluations)}"
        caller = self._caller(program, steps=interpreter is self)
        with self._observed(program, run, listener) as notified:
            return interpreter.run(caller, inputs, run=run, listener=notified, inside=True)

    def pipeline(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which steps may be sent before those sent earlier have ended.

        Values that evaluations give there can be used at once. A failure is raised at the next
        fetch or step that needs its result, when the host waits as too many are under way, or at
        the end of ``with``; it names its op and line, and what was sent later does not run. Here
        each step is awaited; hosts of remote workers override it.

        Example:
            >>> import mplang_core as mp
            >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as host, host.pipeline():
            ...     print(mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7))))
            [array(7), array(7)]
        """
        return contextlib.nullcontext()

    def _observed(
        self, program: Program, run: str, listener: Listener | None
    ) -> contextlib.AbstractContextManager[Listener | None]:
        """Return the context of an evaluation; it yields whom to notify of ops."""
        return contextlib.nullcontext(listener)

    def evaluate_step(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """Run the program of an eager call; in standard mode, whatever that of the host is."""
        with self.options(mode="standard", listener=_options.get()[1]):
            return self.evaluate(program, inputs)

    def _caller(self, program: Program, *, steps: bool) -> Program:
        """Return a program that calls this one; the kernel of the call depends on the mode."""
        callers = self._callers[steps]
        if (caller := callers.get(program)) is None:
            caller = callers[program] = call_program(stepped(program) if steps else program)
        return caller

    def submit(
        self, program: Program, args: Sequence[HostVar], step: Mask | None = None
    ) -> list[HostVar]:
        """Run a program at the parties.

        Args:
            program: the whole program.
            args: one reference per input.
            step: of a program of one op, which standard mode and eager calls have, the parties
                that take part in it; ``None`` for a program that all parties run. Workers may
                refuse steps, since no owner can review them.

        Returns:
            One reference per output.

        Raises:
            AdmissionError: a party takes whole programs only.
            PartyError: a party failed; the others have ended or were aborted.
        """
        parties = self.mask if step is None else step
        done = self._run_parties(program, args, parties) if parties else {}
        nothing: list[Any] = [None] * len(program.graph.outputs)
        results = [done.get(rank, nothing) for rank in range(self.world_size)]
        kept = kept_outputs(program.graph)
        columns = enumerate(zip(*results, strict=True))
        return [HostVar(values, kept=i in kept) for i, values in columns]

    def _run_parties(
        self, program: Program, args: Sequence[HostVar], parties: Mask
    ) -> dict[int, list[Any]]:
        run = f"{self.session}-{next(self._count)}"
        with self._order:  # all parties get runs in the same order: prevents deadlock
            self._begin(run)
            futures = [self._submit(rank, run, program, args, parties) for rank in parties]
        results = dict(zip(parties, self._collect(run, futures), strict=True))
        failures = [(r, e) for r, e in results.items() if isinstance(e, BaseException)]
        if failures:
            raise self._explain(failures)
        return results  # type: ignore[return-value]  # no errors among them

    def _explain(self, failures: list[tuple[int, BaseException]]) -> BaseException:
        rank, error = min(failures, key=lambda item: _blame(item[1]))
        if not isinstance(error, Exception):
            return error
        text, op, where = told_of(error)
        site = (f" in {op}" + f" at {where}" * bool(where)) if op else ""
        message = f"{self.party(rank)} failed{site}"  # who refuses a program quotes the line
        also = {r: e for r, e in failures if isinstance(e, AdmissionError) and r != rank}
        if isinstance(error, AdmissionError):  # each owner has rules of his own
            told = (f"{self.party(r)} refuses it, too: {told_of(e)[0]}" for r, e in also.items())
            text = "\n".join((text, *told))
        code = getattr(error, "code", "")
        failure = PartyError(f"{message}: {text}", rank=rank, op=op, location=where, code=code)
        failure.others = tuple(also.values())
        failure.__cause__ = error.__cause__ if isinstance(error, KernelError) else error
        if failure.refusals:
            failure.add_note("(error.refusals has each as data, and what can be changed)")
        return failure

    def party(self, rank: int) -> str:
        """Return a party for a message: by its name, or by its rank if the cluster gave it none."""
        return f"party {rank if self.names[rank] in ('', f'node{rank}') else self.names[rank]}"

    def read_literal(self, literal: Any) -> Any:
        """Return what a user puts as a value: an array, a table, or a value of a plugin's type."""
        return value_of(literal)

    def literal(self, value: Any, parties: Mask) -> MPObject:
        """Return a value for a literal at some parties, without running a program."""
        try:
            check_parties(parties, self.mask)
            kind = MPType(type_of(value), parties)
        except (ValueError, WireError) as error:
            raise TraceError(f"{at()}{error}") from None
        return InterpVar(self, kind, self._give(value, parties))

    def lift(self, literal: Any, parties: Mask | None = None) -> HostVar:
        """Return a reference to a literal at some parties, all by default."""
        return self._give(value_of(literal), parties)

    def _give(self, value: Any, parties: Mask | None) -> HostVar:
        """Return a reference to a value of the host at some parties, all if ``None``."""
        held = self.mask if parties is None else parties
        values = [value if rank in held else None for rank in range(self.world_size)]
        return HostVar(values, public=held == self.mask)

    def fetch(self, var: HostVar) -> list[Any]:
        """Return the data of a value: one entry per rank, ``None`` for a party without it."""
        return [None if v is None else self._fetch(rank, v) for rank, v in enumerate(var.values)]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.world_size} parties>"

    def close(self) -> None:
        """Stop the workers that this host owns."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _check_mode(mode: Mode) -> Mode:
    if mode not in get_args(Mode):
        raise ConfigError(f"{at()}the mode is one of {get_args(Mode)}, got {mode!r}", code="C002")
    return mode


def _blame(error: BaseException) -> int:
    """Return the rank of an error as the cause of a failure; aborts and timeouts are effects."""
    return 2 if isinstance(error, AbortedError) else int(isinstance(error, CommError))
