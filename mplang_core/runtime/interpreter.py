"""Runs programs, whatever their ops mean: the host's way and the worker's are kernels."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from mplang_core.errors import KernelError, MPLangError, RunError
from mplang_core.feop import ContextBound
from mplang_core.ir import Operation, Program, verify
from mplang_core.mask import Mask
from mplang_core.runtime.kernels import KernelTable
from mplang_core.runtime.listener import Listener
from mplang_core.runtime.plan import Plan, Step, make_plan

PLANS = 256  # kept at most
MAX_KEPT = 1 << 20  # bytes of constants and code in a program whose plan is kept


class KernelContext(ContextBound):
    """What a kernel may know of where it runs.

    Attributes:
        interpreter: who runs it. A worker's has ``rank``, ``world_size``, ``communicator``
            and ``resources``; a host's can ``submit``.
        run: the name of this run, the same at all parties.
        step: the op that runs now.
        inner: where its region runs, if one does.
    """

    __slots__ = ("_parent", "_tag", "index", "inner", "interpreter", "listener", "run", "step")

    step: Step
    inner: KernelContext | None

    def __init__(
        self,
        interpreter: Any,
        run: str,
        parent: KernelContext | None = None,
        tag: str = "",
        listener: Listener | None = None,
    ) -> None:
        self.interpreter = interpreter
        self.run = run
        self.listener = listener
        self.index = 0
        self._parent = parent
        self._tag = tag

    @property
    def op(self) -> Operation:
        """The op that runs now."""
        return self.step.op

    @property
    def parties(self) -> Mask:
        """The parties that run the ``pcall`` around this op together.

        Raises:
            RunError: it is known to no party who else runs it.
        """
        ctx: KernelContext | None = self._parent
        parties = ctx.step.attrs.get("parties") if ctx is not None else None
        if not isinstance(parties, Mask):
            raise RunError(
                f"{self.op.opcode} is run by several parties together, so it stands in a "
                "pcall_static that names them"
            )
        return parties

    @property
    def key(self) -> str:
        """Names this op's place in the run, loop turns included: a unique key of messages."""
        parts: list[str] = []
        ctx: KernelContext | None = self
        while ctx is not None:
            parts.append(f"{ctx._tag}{ctx.index}")
            ctx = ctx._parent
        return f"{self.run}/{'/'.join(reversed(parts))}"

    def run_region(self, name: str, inputs: Sequence[Any], turn: int = 0) -> list[Any]:
        """Run a region of this op.

        Args:
            name: the region.
            inputs: its inputs.
            turn: tells the turns of a loop apart.
        """
        plan = self.step.region(name)
        inner = KernelContext(self.interpreter, self.run, self, f"{name}{turn}:", self.listener)
        self.inner = inner
        try:
            return execute(plan, inputs, inner, self.listener)
        finally:
            self.inner = None  # they would hold each other


class Interpreter:
    """Runs programs by the kernels of a table.

    Args:
        kernels: what ops do here.
        owner: what kernels see as their interpreter; this one by default.
    """

    def __init__(self, kernels: KernelTable, owner: Any = None) -> None:
        self.kernels = kernels
        self._owner = self if owner is None else owner
        self._plans: OrderedDict[tuple[str, int], Plan] = OrderedDict()
        self._plans_lock = threading.Lock()
        self._running: dict[str, KernelContext] = {}

    def plan(self, program: Program) -> Plan:
        """Return the plan of a program: verified, planned, and kept by digest and lines.

        A program with large constants is planned anew, so that they are let go of.

        Raises:
            VerifyError: the program breaks a rule.
            KernelError: an op has no kernel here.
        """
        key = program.digest, program.line_hash
        with self._plans_lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
                return plan
        verify(program)
        plan = make_plan(program.graph, self.kernels)
        if program.size() <= MAX_KEPT:
            with self._plans_lock:
                self._plans[key] = plan
                if len(self._plans) > PLANS:
                    self._plans.popitem(last=False)
        return plan

    def run(
        self,
        program: Program,
        inputs: Sequence[Any],
        *,
        run: str,
        listener: Listener | None = None,
        inside: bool = False,
    ) -> list[Any]:
        """Run a program on values of this interpreter.

        Args:
            program: the program.
            inputs: its inputs.
            run: the name of this run.
            listener: is told of each op.
            inside: tell it only of those in regions: a host's program is but a call of one.
        """
        plan = self.plan(program)
        ctx = self._running[run] = KernelContext(self._owner, run, listener=listener)
        try:
            return execute(plan, inputs, ctx, None if inside else listener)
        finally:
            self._running.pop(run, None)

    def runs(self) -> list[str]:
        """Return the runs that are under way."""
        return list(self._running)

    def where(self, run: str) -> Operation | None:
        """Return the op that a run is at, the innermost one; may be asked from any thread."""
        ctx = self._running.get(run)
        while (inner := getattr(ctx, "inner", None)) is not None:
            ctx = inner
        step = getattr(ctx, "step", None)  # there is none before the first op
        return None if step is None else step.op


def execute(
    plan: Plan, inputs: Sequence[Any], ctx: KernelContext, listener: Listener | None = None
) -> list[Any]:
    """Run a plan's steps; each value is let go of after its last use."""
    slots: list[Any] = [None] * plan.size
    for slot, value in zip(plan.ins, inputs, strict=True):
        slots[slot] = value
    for i, step in enumerate(plan.steps):
        ctx.index, ctx.step = step.index, step
        if listener is not None:
            listener.op_started(step.op, i, len(plan.steps))
        _run_step(step, slots, ctx)
        if listener is not None:
            listener.op_finished(step.op, i, len(plan.steps))
    return [slots[slot] for slot in plan.outs]


def _run_step(step: Step, slots: list[Any], ctx: KernelContext) -> None:
    try:
        result = step.kernel(ctx, *[slots[i] for i in step.ins], **step.attrs)
        if len(step.outs) == 1:
            result = (result,)
        elif len(result) != len(step.outs):
            raise KernelError(f"expected {len(step.outs)} results, got {len(result)}")
        for check, value in zip(step.checks, result, strict=False):
            wrong = check.mismatch(value)
            if wrong:
                raise KernelError(f"the kernel broke its promise: {wrong}")
    except MPLangError as error:
        _locate(error, step.op)
        raise
    except Exception as error:
        failure = KernelError(f"{type(error).__name__} in the kernel of {step.op.opcode}")
        _locate(failure, step.op)
        raise failure from error
    for slot in step.dead:
        slots[slot] = None
    for slot, value in zip(step.outs, result, strict=True):
        if slot not in step.dead:
            slots[slot] = value


def _locate(error: MPLangError, op: Operation) -> None:
    """Note the innermost op that an error comes from; outer ops leave it as it is."""
    if getattr(error, "op", None) is None:
        error.op = op.opcode  # type: ignore[attr-defined]
        error.location = str(op.location) if op.location else None  # type: ignore[attr-defined]
