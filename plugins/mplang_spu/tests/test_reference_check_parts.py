"""Parts of the reference check: tolerances, decisions, flat functions, float widths."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_spu.reference_check import reference
from mplang_spu.reference_check.decisions import OpTrace, decision_differences
from mplang_spu.reference_check.flat_function import Op, flat_function
from mplang_spu.reference_check.tolerance import compare
from mplang_stablehlo.ext import canonical

from mplang_core.ir.compressed_text import pack

STEP = 2.0**-18
SINGLE = 2.0**-23  # float32 rounds a number next to 1 by less


def flat_of(fn, *args):
    with jax.enable_x64(True):
        return flat_function(pack(canonical(jax.jit(fn, keep_unused=True).lower(*args).as_text())))


# -- tolerances


@pytest.mark.parametrize(
    ("found", "exact_", "wrong"),
    [
        ([1.0, 100.05], [1.0, 100.0], False),  # 1e-3 of the largest
        ([1.05, 100.0], [1.0, 100.0], False),
        ([1.2, 100.0], [1.0, 100.0], True),
        ([STEP * 3], [0.0], False),  # a few steps
        ([STEP * 5], [0.0], True),
        ([0.0], [STEP / 2], True),  # vanishes
        ([7.0], [np.nan], True),
        ([7.0], [np.inf], True),
    ],
)
def test_tolerance(found, exact_, wrong):
    assert compare(np.array(found), np.array(exact_), STEP).is_wrong is wrong


def test_integers_and_bools_are_exact():
    assert compare(np.array([2**62 + 1]), np.array([2**62]), STEP).is_wrong
    assert compare(np.array([True]), np.array([False]), STEP).is_wrong
    assert not compare(np.zeros((0, 3)), np.zeros((0, 3)), STEP).is_wrong


# -- decisions


def decided(
    name, operands, exact_, found_in, found, local, direction="", dimensions=(0,), noise=0.0
):
    """Return whether a decision is wrong whose first operand may be off by ``noise``."""
    op = Op(name, name, (), (), len(operands), direction, dimensions)
    arrays = [[np.asarray(x) for x in each] for each in (operands, exact_, found_in, found, local)]
    (first, *rest), exact = arrays[:2]
    ways = [([first + sign * noise, *rest], exact) for sign in (1, -1)]
    case = OpTrace(op, *arrays, STEP, roundings=lambda: ways)
    return any(each.is_wrong for each in decision_differences(case))


def test_a_comparison_is_wrong_unless_rounding_decides_it():
    def compared(left, found_left, found, direction="GT", noise=0.0):
        test = {"GT": np.greater, "EQ": np.equal}[direction]
        exact_, local = test(left, 1.0), test(found_left, 1.0)
        return decided(
            "compare", [[left], [1.0]], [[exact_]], [[found_left], [1.0]], [[found]], [[local]],
            direction, noise=noise,
        )  # fmt: skip

    assert not compared(1.0 + SINGLE, 1.0, False)  # as good as equal
    assert compared(1.0, 1.0 + STEP, True)  # they are equal
    assert compared(1.0 + STEP, 1.0, False)  # they are not
    assert not compared(1.0 + STEP, 1.0, False, noise=STEP)
    assert compared(1.0 + 20 * STEP, 1.0 - 20 * STEP, False)  # also if SPU had another one
    assert compared(2.0, 2.0, False)
    assert compared(1.0, 1.0 - STEP, False, "EQ")
    assert compared(1.0 + STEP, 1.0, True, "EQ")
    assert not compared(1.0 + SINGLE, 1.0, True, "EQ")


def test_a_whole_number_is_not_rounded_away():
    def floored(x, found_x, found, noise=0.0):
        return decided(
            "floor", [[x]], [[np.floor(x)]], [[found_x]], [[found]], [[np.floor(found_x)]],
            noise=noise,
        )  # fmt: skip

    assert floored(132.0, 131.9999, 131.0)
    assert floored(131.99, 132.01, 132.0)  # also if SPU had another one
    assert floored(2.0 - STEP, 2.0, 2.0)
    assert not floored(2.0 - STEP, 2.0, 2.0, noise=STEP)
    assert not floored(2.0 - SINGLE, 2.0, 2.0)
    assert floored(2.5, 2.5, 3.0)


def test_a_sort_keeps_rows_together():
    keys, places = np.array([2.0, 1.0, 1.0]), np.array([0, 1, 2])
    right = [[1.0, 1.0, 2.0], [1, 2, 0]]
    close = [np.array([1.0 + STEP, 1.0]), np.array([0, 1])]

    def sorted_(*found):
        given = [keys, places]
        return decided("sort", given, right, given, found, right)

    assert not sorted_([1.0, 1.0, 2.0], [2, 1, 0])
    assert sorted_([1.0, 1.0, 2.0], [0, 2, 1])
    assert sorted_([2.0, 1.0, 1.0], [0, 1, 2])
    as_one, in_order = [[1.0, 1.0], [0, 1]], [[1.0, 1.0 + STEP], [1, 0]]
    equal = [np.array([1.0, 1.0]), np.array([0, 1])]
    assert decided("sort", close, in_order, equal, as_one, as_one)
    assert not decided("sort", close, in_order, equal, as_one, as_one, noise=np.array([STEP, 0]))


def test_an_index_is_of_an_extreme():
    keys, places = np.array([3.0, 3.0 - STEP, 3.0 - SINGLE, 1.0]), np.arange(4)

    def extreme(found, noise=0.0):
        given = [keys, places]
        return decided("reduce", given, [3.0, 0], given, [3.0, found], [3.0, 0], noise=noise)

    assert extreme(1)
    assert not extreme(1, noise=np.array([0, STEP, 0, 0]))
    assert not extreme(2)
    assert extreme(3)
    assert extreme(4)


# -- flat functions


def test_an_op_in_a_loop_uses_what_stands_outside():
    function = flat_of(
        lambda x, y: jax.lax.fori_loop(0, 3, lambda i, s: s + y, x), np.float32(1), np.float32(2)
    )
    (loop,) = (op for op in function.ops if op.name == "while")
    assert {0, 1} <= set(loop.operands)
    assert loop.label == "loop"


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jnp.sort(x)[0] + x.mean(),
        lambda x: jax.lax.scan(lambda s, x: (s + x, s * x), jnp.float32(0), x)[1],
        lambda x: jax.lax.reduce_precision(x, 5, 10),
        lambda x: jax.nn.gelu(x) + jnp.argmax(x),
        lambda x: jnp.where(x > 0, x, jnp.array([1.5, 2.5, -np.inf], x.dtype)),
        lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
        lambda x: jnp.dot(x, x, precision="highest"),
        lambda x: jax.lax.erf(x).astype(jnp.float16),
    ],
)
def test_a_function_in_float64_is_that_of_numpy(fn):
    x = np.float32([0.5, -1.25, 2])
    (found,) = reference.outputs_of(flat_of(fn, x), [x])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.asarray(fn(jnp.asarray(x))), rtol=1e-2)


def test_values_are_given_from_outside():
    function = flat_of(lambda x: jnp.sqrt(x + 1) * 2, np.float32([3]))
    add, sqrt = (
        next(op.results[0] for op in function.ops if op.name == name) for name in ("add", "sqrt")
    )
    variant = function.with_outputs([add, sqrt], [add], 64)
    found = reference.run(variant, [np.array([3.0]), np.array([25.0])])
    np.testing.assert_allclose(found, [[4.0], [5.0]])
