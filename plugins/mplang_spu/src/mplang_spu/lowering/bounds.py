"""Bounds of integers of libspu's ring, by the rules of the interval analysis. Imports JAX."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from mplang_analysis import UNKNOWN, Interval
from mplang_stablehlo.ext import (
    INTERVAL_RULES,
    ElementType,
    Interpreter,
    Precision,
    combined,
    comparison,
    element_type_of,
)

from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.term import is_float

EXACT = 2**53
"""Exclusive bound on floats that are integers."""

LARGEST = 2**192
"""Bounds beyond it are unknown: no ring is as large, and sums of sums would have any size."""

_BITWISE = {"and", "or", "xor"}

CHOICES = {"and", "compare", "maximum", "minimum", "not", "or", "return", "select"}
"""Ops of a reducer by which the results are some of its operands."""

_MAY_LEAVE = {
    "add", "convolution", "dot_general", "multiply", "negate", "power", "scatter",
    "select_and_scatter", "shift_left", "subtract",
}  # fmt: skip
"""Ops whose results are not known to be of their type where no rule bounds them."""


class _Ring(Precision):
    """Precision of libspu's integers, which do not wrap around at the limits of their type."""

    def wrap(self, kind: ElementType, x: Interval) -> Interval:
        """Return the exact result."""
        return x


class RingBounds:
    """Bounds of the integers of a module, as libspu computes them.

    Ops are told in their order. Each operand that an op looks at is within its type: else it is
    reduced before.

    Args:
        main: the function.
        unreduced: the numbers of its operands that may be beyond their types.
    """

    def __init__(self, main: ir.Operation, unreduced: frozenset[int] = frozenset()) -> None:
        self._run = Interpreter(_Ring(), INTERVAL_RULES)
        self._constants: dict[ir.Value, int] = {}
        self._public: set[ir.Value] = set()
        for i, value in enumerate(main.regions[0].blocks[0].arguments):
            self.tell(value, UNKNOWN if i in unreduced else None)

    def tell(self, value: ir.Value, known: Interval | None = None) -> None:
        """Say that a value is within bounds, or within those of its type."""
        limits = element_type_of(value).limits
        self._run[value] = limits if known is None else known

    def fits(self, value: ir.Value) -> bool:
        """Return whether a value is certainly of its type."""
        return _within(self[value], element_type_of(value).limits)

    def __getitem__(self, value: ir.Value) -> Interval:
        """Return the bounds of a value: whole numbers, or unknown."""
        return self._run[value]

    def constants(self, value: ir.Value) -> int:
        """Return how many constants a sum of sums has, two at most, as XLA combines two."""
        return 1 if value in self._public else self._constants.get(value, 0)

    def follow(self, op: ir.Operation) -> None:
        """Find the bounds of an op's results, and of the arguments of its regions."""
        name = op.name.removeprefix("stablehlo.")
        made_of = all(value in self._public for value in op.operands) and bool(op.operands)
        if name in ("constant", "iota") or (made_of and not op.regions):
            self._public.update(op.results)
        elif name in ("add", "subtract", "negate"):
            self._constants[op.results[0]] = min(2, sum(map(self.constants, op.operands)))
        if name in ("case", "if", "while"):
            self._enter(op)
        else:
            found = self._of_op(op, name)
            for value, bounds in zip(op.results, found, strict=True):
                self.tell(value, _whole(bounds))

    def _enter(self, op: ir.Operation) -> None:
        """Report values whose type is thereby known: a state, and results of branches."""
        inner = [value for region in op.regions for value in region.blocks[0].arguments]
        for value in (*op.results, *inner):
            self.tell(value)
        if op.name == "stablehlo.while":
            self._count(op)

    def _count(self, loop: ir.Operation) -> None:
        """Report states that each turn adds a number to, if the number of turns is bounded."""
        condition, body = (region.blocks[0] for region in loop.regions)
        nexts = body.operations[len(body.operations) - 1].operands
        steps = [_step(after, arg) for after, arg in zip(nexts, body.arguments, strict=True)]
        lasts = _lasts(condition, steps, self)
        if not lasts:
            return
        low = {i: int(self[loop.operands[i]].low) for i in lasts}
        turns = min((last - low[i]) // steps[i] + 1 for i, last in lasts.items())
        for i, step in enumerate(steps):
            if step:
                start = self[loop.operands[i]]
                seen = _seen(start, step, max(turns, 1), lasts.get(i))
                after = start | Interval(seen.low + step, seen.high + step)
                if _within(after, element_type_of(loop.results[i]).limits):
                    self.tell(body.arguments[i], seen)
                    self.tell(condition.arguments[i], after)
                    self.tell(loop.results[i], after)

    def _of_op(self, op: ir.Operation, name: str) -> Sequence[Interval]:
        kinds = [element_type_of(value) for value in op.results]
        if not any(kind.is_integer for kind in kinds):
            return [UNKNOWN] * len(kinds)
        if name == "convert" and not element_type_of(op.operands[0]).is_integer:
            return [kinds[0].limits]
        ins = [self[value] for value in op.operands]
        found = self._special(op, name, ins) or self._run.of_rule(op, ins)
        stays = not self._may_leave(op, name) and all(map(self._is_whole, op.operands))
        return [
            kind.limits if kind.name == "i1" or (each.open and stays) else each
            for kind, each in zip(kinds, found, strict=True)
        ]

    def _special(
        self, op: ir.Operation, name: str, ins: Sequence[Interval]
    ) -> Sequence[Interval] | None:
        """Return the bounds of an op whose rule is another, or tells less, than libspu's."""
        kind = element_type_of(op.results[0])
        if name == "not" and kind.name != "i1":
            return [Interval(-1 - ins[0].high, -1 - ins[0].low)]
        if name == "divide" and ins[1].low <= 0 <= ins[1].high:  # the smallest number by -1
            return [Interval(kind.limits.low, max(kind.limits.high, -kind.limits.low))]
        if name == "subtract" and op.operands[1] in self._public:
            return [_negated_constant(ins[0], ins[1], kind)]
        if name == "select":
            return self._selected(op, ins)
        if name == "bitcast_convert" and kind.bits == element_type_of(op.operands[0]).bits:
            return ins
        return None

    def _may_leave(self, op: ir.Operation, name: str) -> bool:
        """Return whether results may be beyond their type where no rule bounds them."""
        if name in ("reduce", "reduce_window"):
            if combined(op.regions[0]) in _BITWISE:
                return False
            inner = {each.operation.name for each in op.regions[0].blocks[0].operations}
            return not {each.removeprefix("stablehlo.") for each in inner} <= CHOICES
        return name in _MAY_LEAVE

    def _is_whole(self, value: ir.Value) -> bool:
        return not element_type_of(value).is_integer or self.fits(value)

    def _selected(self, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval] | None:
        """Return the bounds of ``select(x < c, x + d, …)``, as of an index from the end."""
        test, yes, _ = op.operands
        owner, made = test.owner, yes.owner
        if not all(isinstance(each, ir.Operation) for each in (owner, made)):
            return None
        if owner.name != "stablehlo.compare" or made.name != "stablehlo.add":
            return None
        if comparison(owner) != "LT" or owner.operands[0] != made.operands[0]:
            return None
        x, below, plus = (self[each] for each in (*owner.operands, made.operands[1]))
        return [Interval(x.low + plus.low, min(x.high, below.high - 1) + plus.high) | ins[2]]


def _negated_constant(x: Interval, c: Interval, kind: ElementType) -> Interval:
    """Return the bounds of ``x - c``, for which XLA adds ``-c`` modulo 2^n."""
    low, high = x.low - c.high, x.high - c.low
    size = 2**kind.bits
    if kind.limits.low == 0:
        return Interval(low, high + size)
    return Interval(low - size, high) if c.low == kind.limits.low else Interval(low, high)


def _within(x: Interval, limits: Interval) -> bool:
    return limits.low <= x.low and x.high <= limits.high


def _whole(x: Interval) -> Interval:
    """Return bounds as ints; unknown where floats may have rounded them, or beyond all rings."""
    for each in (x.low, x.high):
        if not abs(each) < (EXACT if isinstance(each, float) else LARGEST):
            return UNKNOWN
    return Interval(int(x.low), int(x.high))


def _lasts(condition: ir.Block, steps: Sequence[int], known: RingBounds) -> dict[int, int]:
    """Return the largest number that a turn sees, per state that counts up to a limit."""
    found: dict[int, int] = {}
    for test in _conjuncts(condition.operations[len(condition.operations) - 1].operands[0]):
        x, limit = test.operands
        if comparison(test) == "LT" and isinstance(x.owner, ir.Block) and x.owner == condition:
            i, high = ir.BlockArgument(x).arg_number, _limit(limit, known).high
            if steps[i] > 0 and high - 1 + steps[i] <= element_type_of(x).limits.high:
                found[i] = int(high) - 1
    return found


def _seen(start: Interval, step: int, turns: int, last: int | None) -> Interval:
    """Return the bounds of a state at the begin of a turn."""
    moved = (turns - 1) * step
    high = start.high + max(0, moved) if last is None else max(start.low, last)
    return Interval(start.low + min(0, moved), high)


def _limit(value: ir.Value, known: RingBounds) -> Interval:
    """Return the bounds of what a condition compares with, which may be made within it."""
    owner = value.owner
    if isinstance(owner, ir.Operation) and owner.name == "stablehlo.constant":
        known.follow(owner)
    try:
        return known[value]
    except KeyError:
        return element_type_of(value).limits


def _conjuncts(value: ir.Value) -> list[ir.Operation]:
    """Return the comparisons all of which hold where a condition does."""
    owner = value.owner
    if not isinstance(owner, ir.Operation):
        return []
    if owner.name == "stablehlo.and":
        return [each for operand in owner.operands for each in _conjuncts(operand)]
    return [owner] if owner.name == "stablehlo.compare" else []


def _step(after: ir.Value, before: ir.Value) -> int:
    """Return the number that a turn adds to a state of integers; 0 if it does something else."""
    owner = after.owner
    if not isinstance(owner, ir.Operation) or owner.name != "stablehlo.add" or is_float(after):
        return 0
    number = splat_of(owner.operands[1])
    return int(number) if owner.operands[0] == before and number is not None else 0
