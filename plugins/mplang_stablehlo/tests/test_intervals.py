"""Interval analysis of StableHLO: single ops, and soundness against observed values."""

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
from mplang_analysis import Interval
from mplang_stablehlo.admission import ARITHMETIC, STRUCTURE
from mplang_stablehlo.custom_calls import CUSTOM_CALLS
from mplang_stablehlo.inline import inline
from mplang_stablehlo.intervals import FLOATING, fixed_point, intervals, op_number, prepare
from mplang_stablehlo.intervals.rules import INTERVAL_RULES
from mplang_stablehlo.module import artifact, canonical, parse, text_of, walk

X = np.ones((5, 4), np.float32)
V = np.ones(6, np.int32)
UNIT = (-3.0, 4.0)


def lowered(fn, *args) -> str:
    return canonical(jax.jit(fn, keep_unused=True).lower(*args).as_text())


def results(fn, *given, precision=FLOATING):
    arrays, ranges = zip(*given, strict=True)
    module = prepare(parse(lowered(fn, *arrays)))
    return intervals(module, [Interval(*each) for each in ranges], precision).results


def test_every_op_that_is_admitted_has_a_rule():
    named = STRUCTURE | ARITHMETIC | CUSTOM_CALLS.keys()
    assert named - INTERVAL_RULES.keys() == {"custom_call", "return"}


W = np.ones((3, 4), np.float32)
B = np.ones(6, np.uint8)

KNOWN = {
    # arithmetic
    "add": (lambda x: x + 1, [X], [UNIT], (-2, 5)),
    "subtract": (lambda x: 1 - x, [X], [UNIT], (-3, 4)),
    "subtract itself": (lambda x: x - x, [X], [UNIT], (0, 0)),
    "multiply": (lambda x, y: x * y, [X, X], [UNIT, (-1, 2)], (-6, 8)),
    "square": (lambda x: x * x, [X], [UNIT], (0, 16)),
    "cube": (lambda x: x**3, [X], [UNIT], (-48, 64)),
    "divide": (lambda x: x / 8, [X], [UNIT], (-0.375, 0.5)),
    "divide by data": (lambda x, y: x / y, [X, X], [UNIT, (2, 4)], (-1.5, 2)),
    "power": (lambda x: x**0.5, [X], [(4, 9)], (2, 3)),
    "remainder": (lambda x: jax.lax.rem(x, jnp.float32(2)), [X], [UNIT], (-2, 2)),
    "bfloat16": (
        lambda x: jax.lax.reduce_precision(x, 8, 7),
        [X],
        [(2, 2)],
        (2 - 2**-6, 2 + 2**-6),
    ),
    "absolute": (jnp.abs, [X], [UNIT], (0, 4)),
    "sign": (jnp.sign, [X], [(1, 2)], (1, 1)),
    "rounding": (lambda x: jnp.floor(x) + jnp.ceil(x), [X], [(0.5, 1.5)], (1, 3)),
    "round": (jnp.round, [X], [(0.6, 1.4)], (1, 1)),
    "clip": (lambda x: jnp.clip(x, 0, 1), [X], [UNIT], (0, 1)),
    "maximum": (lambda x: jnp.maximum(x, 0), [X], [UNIT], (0, 4)),
    # functions
    "exp": (jnp.exp, [X], [(0, 1)], (1, np.e)),
    "expm1": (jnp.expm1, [X], [(0, 1)], (0, np.e - 1)),
    "log": (jnp.log, [X], [(1, np.e)], (0, 1)),
    "log1p": (jnp.log1p, [X], [(0, np.e - 1)], (0, 1)),
    "sqrt": (jnp.sqrt, [X], [(4, 9)], (2, 3)),
    "rsqrt": (jax.lax.rsqrt, [X], [(4, 25)], (0.2, 0.5)),
    "cbrt": (jnp.cbrt, [X], [(8, 27)], (2, 3)),
    "tanh": (jnp.tanh, [X], [(0, 50)], (0, 1)),
    "sine": (jnp.sin, [X], [UNIT], (-1, 1)),
    "erf": (jax.lax.erf, [X], [(0, 50)], (0, 1)),
    "sigmoid": (jax.nn.sigmoid, [X], [(-1000, 0)], (0, 0.5)),
    "sigmoid by hand": (lambda x: 1 / (1 + jnp.exp(-x)), [X], [(-1000, 1000)], (0, 1)),
    "softmax": (lambda x: jnp.exp(x - x.max()), [X], [(-100, 100)], (0, 1)),
    "softmax of columns": (jax.nn.log_softmax, [X], [(1, 1)], (-np.log(4), -np.log(4))),
    # choices
    "where": (lambda x: jnp.where(x > 0, x, 0), [X], [UNIT], (-3, 4)),
    "where known": (lambda x: jnp.where(x < 9, x, 1e9), [X], [UNIT], (-3, 4)),
    "compare": (lambda x: x > 7, [X], [UNIT], (0, 0)),
    "equal": (lambda x: x == x, [X], [UNIT], (1, 1)),
    "cond": (lambda x: jax.lax.cond(x[0, 0] > 0, lambda: 2 * x, lambda: x), [X], [UNIT], (-6, 8)),
    "cond known": (
        lambda x: jax.lax.cond(x[0, 0] > 9, lambda: x * x, lambda: x),
        [X],
        [UNIT],
        UNIT,
    ),
    "switch": (
        lambda v: jax.lax.switch(v[0], [lambda: 1.0, lambda: 2.0, lambda: 3.0]),
        [V],
        [(1, 7)],
        (1, 3),
    ),
    # many elements
    "sum": (jnp.sum, [X], [UNIT], (-60, 80)),
    "sum of axis": (lambda x: x.sum(0), [X], [UNIT], (-15, 20)),
    "mean": (jnp.mean, [X], [UNIT], UNIT),
    "var": (jnp.var, [X], [UNIT], (0, 49)),
    "std": (jnp.std, [X], [UNIT], (0, 7)),
    "max": (jnp.max, [X], [UNIT], UNIT),
    "argmax": (jnp.argmax, [X], [UNIT], (0, 19)),
    "sort": (jnp.sort, [X], [UNIT], UNIT),
    "median": (jnp.median, [X], [UNIT], UNIT),
    "prod": (lambda x: jnp.prod(x[0, :2]), [X], [UNIT], (-16, 16)),
    "cumsum": (jnp.cumsum, [X], [UNIT], (-60, 80)),
    "cummax": (jax.lax.cummax, [X], [UNIT], UNIT),
    "matmul": (lambda x, w: x @ w.T, [X, W], [UNIT, (0, 2)], (-24, 32)),
    "norm": (lambda x: jnp.linalg.norm(x[0]), [X], [UNIT], (0, 8)),
    "convolve": (lambda x: jnp.convolve(x[0], x[1, :3]), [X], [UNIT], (-36, 48)),
    "scatter": (lambda x: x.at[0].add(2.0), [X], [UNIT], (-3, 12)),
    "scatter of one": (lambda x: x.at[0].set(9.0), [X], [UNIT], (-3, 9)),
    "gather": (lambda x, v: x[v], [X, V], [UNIT, (0, 4)], UNIT),
    "top_k": (lambda x: jax.lax.top_k(x, 2)[1], [X], [UNIT], (0, 3)),
    "pad": (lambda x: jnp.pad(x, 1), [X + 1], [(2, 3)], (0, 3)),
    "concatenate": (lambda x: jnp.concatenate([x, 2 * x]), [X], [UNIT], (-6, 8)),
    "iota": (lambda x: jnp.arange(5) + 0 * x[0, 0].astype(int), [X], [UNIT], (0, 4)),
    # integers
    "integers": (lambda v: v * v + 1, [V], [(-3, 4)], (1, 17)),
    "integer division": (lambda v: jax.lax.div(v, np.int32(2)), [V], [(-7, 7)], (-3, 3)),
    "wraps": (lambda v: v * v, [V], [(0, 1e9)], (-(2**31), 2**31 - 1)),
    "bits": (lambda v: (v & 7) + (v >> 1) + (v << 2), [V], [(0, 8)], (0, 43)),
    "or": (lambda v: v | 5, [V], [(0, 8)], (5, 15)),
    "exact": (lambda v: v + (2**31 - 3), [V], [(0.0, 2.0)], (2**31 - 3, 2**31 - 1)),
    "popcount": (jax.lax.population_count, [V], [(0, 8)], (0, 32)),
    "of the type": (lambda b: b.astype(np.float32), [B], [(-np.inf, np.inf)], (0, 255)),
    "cut off": (lambda x: x.astype(int), [X], [(1.5, 2.5)], (1, 2)),
    # loops
    "loop": (lambda x: jax.lax.fori_loop(0, 10, lambda i, s: s * 0.5 + i, x), [X], [(0, 1)], None),
    "loop that is sure": (
        lambda x: jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + x), (0, x))[1],
        [X],
        [(0, 1)],
        (0, 4),
    ),
    "open loop": (
        lambda x: jax.lax.while_loop(lambda s: s[0, 0] < 0.5, lambda s: jnp.clip(s * 2, 0, 9), x),
        [X],
        [(0, 1)],
        (0, 9),
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known(name):
    fn, arrays, ranges, expected = KNOWN[name]
    (found,) = results(fn, *zip(arrays, ranges, strict=True))
    if expected is not None:
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert found.known


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: 1 / x,
        jnp.log,
        jnp.sqrt,
        jnp.tan,
        lambda x: x**0.5,
        lambda x: jnp.exp(1000 * x),  # beyond float32
        lambda x: (x - x.mean()) / x.std(),
        lambda x: jnp.linalg.cholesky(x[:4]),
        lambda x: jnp.abs(x + 1j),
        lambda x: jax.lax.while_loop(lambda s: s.sum() < 9, lambda s: s * 2, x),
        lambda x: jax.lax.fori_loop(0, x[0, 0].astype(int), lambda i, s: s + 1, x),
        lambda x: jax.lax.bitcast_convert_type(x, np.int32),
        lambda x: jax.random.normal(jax.random.PRNGKey(0), (3,)) + x[0, 0],
    ],
)
def test_what_is_not_known(fn):
    (found,) = results(fn, (X, UNIT))
    assert not found.known


SQUARE = np.ones((4, 4), np.float32)


@pytest.mark.parametrize(
    ("fn", "own"),
    [
        (lambda x: x - x.max(), True),
        (lambda x: x - x.max(0), True),
        (lambda x: x - x.max(1, keepdims=True), True),
        (lambda x: x - x.max(1), False),  # of other rows
        (lambda x: x - x.min(), False),
        (lambda x: x - (x * x).max(), False),
    ],
)
def test_a_maximum_is_subtracted_from_its_own_elements_only(fn, own):
    (found,) = results(fn, (SQUARE, (-3, 4)), precision=fixed_point(18))
    assert (found.high == 0) == own


def test_xla_may_round_a_product_twice():
    """Softmax of 4e13 gives infinity: one use of the product is rounded, another is not."""
    (found,) = results(lambda x: x * x - (x * x).max(), (SQUARE, (-1e7, 1e7)))
    assert found.high > 4e6


def test_fixed_point_is_wider_and_knows_small_reciprocals():
    (floating,) = results(jnp.mean, (np.ones(40_000, np.float32), (50, 50)))
    (fixed,) = results(jnp.mean, (np.ones(40_000, np.float32), (50, 50)), precision=fixed_point(18))
    assert floating.high - floating.low < 1
    assert 45.8 in fixed  # what libspu gives


def test_a_step_carries_the_number_of_its_op():
    text = lowered(lambda x: jnp.median(x) + jnp.var(x), X)
    module, found = parse(text), intervals(prepare(parse(text)), [Interval(*UNIT)])
    names = [op.name for op in walk(module.operation)]
    for step in found.steps:
        assert names[op_number(step.op)] == step.op.name


@pytest.mark.long("a loop of 10,000 turns in another")
def test_long_loops_end():
    def nested(x):
        return jax.lax.fori_loop(
            0, 10_000, lambda i, s: jax.lax.fori_loop(0, 10_000, lambda j, t: t * 0.5, s), x
        )

    (found,) = results(nested, (X, UNIT))
    assert found.largest < 1e-30


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
    """Run a module on XLA, in place of a function with the same signature."""
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


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(functions())
def test_no_value_is_outside_of_its_interval(function):
    check_values(function)


@pytest.mark.slow("300 random functions, compiled by XLA")
@pytest.mark.timeout(600)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(functions())
def test_so_it_is_for_many(function):
    check_values(function)


def check_values(function) -> None:
    with jax.enable_x64(function.x64):
        text = lowered(function.fn, *function.args)
        ranges = [
            Interval(float(np.float32(low)), float(np.float32(high)))
            for low, high in function.ranges.values()
        ]
        values = iter(observed(text, function.args))
        found = intervals(prepare(parse(text)), ranges)
        steps = {step.op: step for step in found.steps}
        for op in found.module.body.operations[0].regions[0].blocks[0].operations:
            for i, _ in enumerate(op.operation.results):
                value, step = next(values), steps.get(op.operation)
                if step is not None:
                    assert_within(value, step.results[i], str(op)[:200])
