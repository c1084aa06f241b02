"""Intervals through StableHLO: single ops, and that nothing observed is outside of them."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from functions import functions
from hypothesis import HealthCheck, given, settings
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func
from mplang_stablehlo.inline import inline
from mplang_stablehlo.intervals import FLOATING, fixed_point, intervals
from mplang_stablehlo.module import artifact, canonical, parse, text_of

from mplang_core.interval import Interval

X = np.ones((5, 4), np.float32)
V = np.ones(6, np.int32)
UNIT = (-3.0, 4.0)


def lowered(fn, *args) -> str:
    return canonical(jax.jit(fn, keep_unused=True).lower(*args).as_text())


def results(fn, *given, precision=FLOATING):
    arrays, ranges = zip(*given, strict=True)
    return intervals(lowered(fn, *arrays), [Interval(*each) for each in ranges], precision).results


# -- soundness


def all_values(text: str) -> tuple[str, list[ir.Type]]:
    """Return the module with every value at the top of ``main`` as a result."""
    module = parse(text)
    inline(module)
    (main,) = module.body.operations
    *ops, end = [op.operation for op in main.operation.regions[0].blocks[0].operations]
    values = [value for op in ops for value in op.results] or list(end.operands)
    with module.context, end.location:
        kinds = [value.type for value in values]
        arguments = main.operation.regions[0].blocks[0].arguments
        kind = ir.FunctionType.get([value.type for value in arguments], kinds)
        main.operation.attributes["function_type"] = ir.TypeAttr.get(kind)
        with ir.InsertionPoint(end):
            func.ReturnOp(values)
        end.erase()
    return text_of(module), kinds


def observed(text: str, args) -> list[np.ndarray]:
    """Run a module on XLA, in the place of a function with the same signature."""
    everything, kinds = all_values(text)
    shapes = [jax.ShapeDtypeStruct(arg.shape, arg.dtype) for arg in args]
    tensors = [ir.RankedTensorType(kind) for kind in kinds]
    names = {"i1": "bool", "f32": "float32", "f64": "float64"}
    dtypes = [names.get(str(t.element_type), str(t.element_type)) for t in tensors]
    dtypes = [name.replace("ui", "uint") if name.startswith("ui") else name for name in dtypes]
    dtypes = ["int" + name[1:] if name[0] == "i" and name[1].isdigit() else name for name in dtypes]
    shown = list(zip([t.shape for t in tensors], dtypes, strict=True))

    def stand_in(*args):
        return [jnp.zeros(shape, dtype) for shape, dtype in shown]

    template = jax.export.export(jax.jit(stand_in, keep_unused=True))(*shapes)
    loaded = dataclasses.replace(template, mlir_module_serialized=artifact(everything))
    return [np.asarray(value) for value in jax.jit(loaded.call)(*args)]


def assert_within(value: np.ndarray, interval: Interval, what: str) -> None:
    if interval.open or value.size == 0:
        return
    assert not np.isnan(value).any(), f"{what}: NaN, but {interval!r}"
    low, high = value.min().item(), value.max().item()
    assert low >= interval.low, f"{what}: {low} is below {interval!r}"
    assert high <= interval.high, f"{what}: {high} is above {interval!r}"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(functions())
def test_no_value_is_outside_of_its_interval(function):
    with jax.enable_x64(function.x64):
        text = lowered(function.fn, *function.args)
        ranges = [
            Interval(float(np.float32(low)), float(np.float32(high)))
            for low, high in function.ranges.values()
        ]
        values = iter(observed(text, function.args))
        found = intervals(text, ranges)
        steps = {step.op: step for step in found.steps}
        for op in found.module.body.operations[0].regions[0].blocks[0].operations:
            for i, _ in enumerate(op.operation.results):
                value, step = next(values), steps.get(op.operation)
                if step is not None:
                    assert_within(value, step.results[i], str(op)[:200])
