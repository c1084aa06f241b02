"""Admission of untrusted StableHLO: the ops, types and attributes that an engine may run.

MLIR's verifiers check a module against the specification of StableHLO. That is not enough: the
engines trust much that the specification leaves open, and crash, or write past the end of a buffer,
where it is violated. So an engine lists what it runs, and refuses every other op, type and
attribute.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mplang_stablehlo.call_graph import MAX_OPS, check_call_graph
from mplang_stablehlo.custom_calls import target_of
from mplang_stablehlo.module import attribute_names, parse, walk
from mplang_stablehlo.rules import RULES

Rule: TypeAlias = Callable[[ir.Operation], None]
"""Raises ``ValueError`` with the reason if an op may not run."""

MAX_RANK = 32
MAX_REASON = 1000  # characters; names in a module may be arbitrarily long

_STRUCTURE = """
bitcast_convert broadcast_in_dim case clamp compare concatenate constant convert convolution
custom_call dot_general dynamic_slice dynamic_update_slice gather if iota optimization_barrier
pad reduce reduce_window reshape return reverse scatter select select_and_scatter slice sort
transpose while
"""
_ARITHMETIC = """
abs add and atan2 cbrt ceil cosine count_leading_zeros divide exponential exponential_minus_one
floor is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt power
reduce_precision remainder round_nearest_afz round_nearest_even rsqrt shift_left
shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor
"""

STRUCTURE = frozenset(_STRUCTURE.split())
"""StableHLO ops that move, select and reduce elements, as JAX writes them."""

ARITHMETIC = frozenset(_ARITHMETIC.split())
"""Elementwise StableHLO ops on real numbers."""

_CALLS_OUT = (
    "it is not among the custom calls allowed there: Python callbacks and calls of a host cannot "
    "run there"
)

_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    "builtin.module": frozenset({"sym_name", "mhlo.num_partitions", "mhlo.num_replicas"}),
    "func.func": frozenset({"sym_name", "function_type", "sym_visibility"}),
    "func.call": frozenset({"callee"}),
    "func.return": frozenset(),
}


class OpRefusedError(ValueError):
    """Raised if an engine refuses an op.

    Args:
        text: names the engine, the op and the reason.
        index: of the op, in the order of :func:`mplang_stablehlo.module.walk`.
    """

    def __init__(self, text: str, index: int) -> None:
        super().__init__(text)
        self.index = index


def refusal(engine: str, module: ir.Module, op: ir.Operation, reason: str) -> OpRefusedError:
    """Return the error of an engine that does not run an op of a module."""
    index = next((i for i, each in enumerate(walk(module.operation)) if each == op), -1)
    return OpRefusedError(f"{engine} cannot run {_name(op)}: {reason[:MAX_REASON]}", index)


@dataclass(frozen=True, slots=True)
class Admission:
    """Admission list of an engine.

    Args:
        engine: its name, for messages.
        ops: the ops of StableHLO, without the prefix.
        elements: the element types of tensors, as MLIR writes them.
        calls: the targets of custom calls, each with a rule that checks operands, results and every
            attribute.
        rules: rules for ops in addition to those of :mod:`mplang_stablehlo.rules`.
        advice: remedies for a refused op or custom call, by prefix of its name.
        largest: the maximum size of a tensor in bytes.
    """

    engine: str
    ops: frozenset[str]
    elements: frozenset[str]
    calls: Mapping[str, Rule]
    rules: Mapping[str, Rule] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)
    largest: int = 1 << 40

    def admit(self, text: str) -> ir.Module:
        """Parse and check a module.

        An engine gets the printed module, not the text: what is checked is what runs.

        Args:
            text: within the limits of :func:`mplang_stablehlo.read`.

        Returns:
            The module.

        Raises:
            OpRefusedError: it has an op, type or attribute that is not listed; names op and reason.
            ValueError: it is not valid StableHLO.
        """
        try:
            module = parse(text)
        except ir.MLIRError as error:
            reason = " ".join(str(error).split("\n")[:2])
            raise ValueError(f"it is not StableHLO: {reason[:300]}") from None
        self._check(module)
        return module

    def _check(self, module: ir.Module) -> None:
        types: set[ir.Type] = set()
        ops = [module.operation]
        for function in reversed([each.operation for each in module.body.operations]):
            ops += (function, *walk(function))  # what JAX calls tells more than what uses it
        if len(ops) > MAX_OPS:
            raise ValueError(f"the code has over {MAX_OPS} ops")
        ops.sort(key=lambda op: target_of(op) is None)  # custom calls have the most telling names
        for check in (self._check_name, lambda op: self._check_types(op, types), self._check_rule):
            for op in ops:
                try:
                    check(op)
                except ValueError as error:
                    raise refusal(self.engine, module, op, str(error)) from None
        check_call_graph(module)

    def _check_name(self, op: ir.Operation) -> None:
        target, name = target_of(op), op.name.removeprefix("stablehlo.")
        if target is not None:
            if target not in self.calls:
                raise ValueError(self._why_not(target, _CALLS_OUT))
        elif op.name not in _ATTRIBUTES and (name == op.name or name not in self.ops):
            raise ValueError(self._why_not(name, "it is not among the ops allowed there"))

    def _check_rule(self, op: ir.Operation) -> None:
        target, name = target_of(op), op.name.removeprefix("stablehlo.")
        if target is not None:
            self.calls[target](op)
            return
        _check_attributes(
            op, _ATTRIBUTES[op.name] if op.name in _ATTRIBUTES else _inherent(op.name)
        )
        for rules in (RULES, self.rules):
            if name in rules:
                rules[name](op)

    def _why_not(self, name: str, otherwise: str) -> str:
        found = (text for prefix, text in self.advice.items() if name.startswith(prefix))
        return next(found, otherwise)

    def _check_types(self, op: ir.Operation, known: set[ir.Type]) -> None:
        for kind in _types(op):
            if kind not in known:
                self._check_type(kind)
                known.add(kind)

    def _check_type(self, kind: ir.Type) -> None:
        if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
            raise ValueError(f"{str(kind)[:100]} is not a tensor of a static shape")
        if kind.encoding is not None:
            raise ValueError("a tensor has an encoding")
        element = str(kind.element_type)
        if element not in self.elements:
            raise ValueError(f"tensors of {element[:100]} are not allowed there")
        if kind.rank > MAX_RANK or math.prod(kind.shape) * _bits(element) > 8 * self.largest:
            raise ValueError(
                f"{kind} is too large; a tensor has at most {MAX_RANK} dimensions, and "
                f"{self.largest} bytes"
            )


def _bits(element: str) -> int:
    """Return the size of an element type in bits, such as ``bf16`` or ``complex<f64>``."""
    number = element.removeprefix("complex<").removesuffix(">").strip("uibf")
    return int(number) * (1 if number in element.partition("<")[0] else 2)


def _types(op: ir.Operation) -> Iterable[ir.Type]:
    yield from (result.type for result in op.results)
    for region in op.regions:
        for block in region.blocks:
            yield from (argument.type for argument in block.arguments)


def _check_attributes(op: ir.Operation, allowed: frozenset[str]) -> None:
    unknown = attribute_names(op) - allowed
    if unknown:
        raise ValueError(f"the attributes {sorted(unknown)} are not allowed there")


@functools.cache
def _inherent(name: str) -> frozenset[str]:
    """Return the names of the attributes and operands in an op's definition."""
    return frozenset(
        member for member, value in vars(_classes()[name]).items() if isinstance(value, property)
    )


@functools.cache
def _classes() -> Mapping[str, type]:
    found = (value for value in vars(stablehlo).values() if inspect.isclass(value))
    return {value.OPERATION_NAME: value for value in found if hasattr(value, "OPERATION_NAME")}


def _name(op: ir.Operation) -> str:
    target = target_of(op)
    return op.name if target is None else f"custom_call @{target[:100]}"
