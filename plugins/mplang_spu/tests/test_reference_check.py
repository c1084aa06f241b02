"""Reference check: a simulator reports wrong numbers of SPU, with their lines."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_spu.reference_check.flat_function import flat_function, source_lines
from mplang_stablehlo.ext import lines_of
from reference_runs import COARSE, FINE, FULL, cluster, f32, line_after, root, secure

import mplang_core as mp
from mplang_core.errors import PrecisionWarning, TraceError

FAULTS = {
    "mean": (lambda x: x.mean(), np.full(40_000, 50, np.float32), "divide gives 45.7", "gives 50"),
    "sqrt": (lambda x: root(x) + 1, np.float32(300_000), "sqrt gives 0", "gives 547.7226"),
    "tiny": (
        lambda x: x * 1e-7,
        np.float32(1),
        ("multiply gives 0 ", "multiply gives 3.814697e-06 "),
        "gives 1e-07",
    ),
    "tiny in an array": (lambda x: x * 1e-7, f32(9), "constant gives 0", "gives 1e-07"),
    "max": (lambda x: x.max(), np.array([310, 925, 870]), "max gives -9223372", "gives 925"),
    "argmax": (lambda x: x.argmax(), np.array([310, 925, 870]), "gives 0", "gives 1 "),
    "log of 0": (lambda x: jnp.log(x), np.float32([1, 0]), "log gives", "-inf at [1] of f32[2]"),
    "NaN": (
        lambda x: jnp.where(x > 2, x, jnp.nan),
        np.float32([3, 1]),
        "constant gives 0",
        "gives nan",
    ),
    "whole": (lambda x: x // 7, np.float32([13, 924]), "remainder", "float64 gives 0 at [1]"),
    "loop": (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s * 1e-3, x),
        np.float32([1]),
        "loop gives 0",
        "gives 1e-09",
    ),
}


@pytest.mark.once
@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("name", FAULTS)
def test_each_kind_of_fault_is_told(name):
    fn, x, found, exact = FAULTS[name]
    (told,) = secure(fn, x)[1]
    text = str(told.message)
    assert any(each in text for each in ((found,) if isinstance(found, str) else found))
    assert exact in text
    assert "SEMI2K, FM64, 18 fraction bits" in text
    assert told.filename == (root if name == "sqrt" else fn).__code__.co_filename
    place = root.__code__.co_firstlineno + 3 if name == "sqrt" else fn.__code__.co_firstlineno
    assert place <= told.lineno <= place + 1


@pytest.mark.once
@pytest.mark.usefixtures("bare")
def test_the_line_is_that_of_the_helper_also_where_jax_kept_its_trace():
    def first(x):
        return jnp.std(x) * 1

    def second(x):
        y = x + 0
        return jnp.std(y)

    x = np.float32([310, 925, 870, 924, 12])
    (told,) = secure(first, x)[1]
    assert told.lineno == line_after(first, 1)
    (told,) = secure(second, x)[1]
    assert told.lineno == line_after(second, 2)
    assert "sqrt gives 0 where float64 gives 377.62" in str(told.message)


@pytest.mark.once
@pytest.mark.usefixtures("bare")
def test_the_same_code_of_two_lines_names_both():
    with mp.Simulator(cluster(2, COARSE)) as sim:

        def program():
            x = mp.put("P0", np.float32([300_000]))
            y = mp.device("SP0")(lambda x: jnp.sqrt(x))(x)
            z = mp.device("SP0")(lambda x: jnp.sqrt(x))(x)
            return mp.reveal(y), mp.reveal(z)

        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            mp.evaluate(sim, program)
    assert [each.lineno for each in shown] == [line_after(program, 2), line_after(program, 3)]


@pytest.mark.once
@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (lambda x: x * 1e-7, "the constant 1e-07 reaches multiply: the smallest step"),
        (lambda x: jnp.maximum(x, 1e-9), "the constant 1e-09 reaches maximum"),
        (lambda x: x * jnp.nan, "the constant NaN reaches multiply: there is none"),
        (lambda x: jnp.where(x > 2, x, jnp.nan), "NaN reaches the result if it is selected: "),
        (lambda x: jnp.where(x > 2, x, jnp.inf) * 2, "infinity reaches multiply if it is selected"),
        (lambda x: jnp.where(x > 2, x, 1e15), "the constant 1e\\+15 reaches the result"),
    ],
)
def test_a_constant_that_cannot_be_held_is_told_at_its_line(fn, text):
    with mp.Simulator(cluster(2, COARSE), check_numbers=False) as sim:
        program = lambda: mp.device("SP0")(fn)(mp.put("P0", np.float32([3, 1])))  # noqa: E731
        with pytest.warns(PrecisionWarning, match=text) as shown:
            mp.evaluate(sim, program)
    assert [(each.filename, each.lineno) for each in shown] == [(__file__, line_after(fn, 0))]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x * 1e15,
        lambda x: x + 1e14,
        lambda x: jnp.where(x > 2, x.astype(int), -(2**63)).max(),
    ],
)
def test_a_constant_that_cannot_be_right_is_refused_at_its_line(fn):
    with mp.Simulator(cluster(2, COARSE)) as sim:
        program = lambda: mp.device("SP0")(fn)(mp.put("P0", np.float64([3, 1])))  # noqa: E731
        with pytest.raises(
            TraceError, match=rf"test_reference_check.py:{line_after(fn, 0)}: the constant"
        ):
            mp.evaluate(sim, program)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.max() + x.min(),
        lambda x: jnp.median(x) + jnp.var(x) + jnp.std(x, ddof=1) + jnp.quantile(x, 0.3),
        lambda x: jax.nn.softmax(jnp.where(x > 2, x, -jnp.inf)) + jax.nn.logsumexp(x),
        lambda x: jnp.nan_to_num(x) + jnp.nanmean(x) + jnp.nansum(x),
        lambda x: jnp.nanvar(x),
        lambda x: jnp.exp(-jnp.arange(60.0))[:, None] * x,
        lambda x: jnp.clip(x, -jnp.inf, 2.5) + jnp.where(jnp.isinf(x), 0, x),
        lambda x: jnp.minimum(jnp.where(x > 2, x, 1e20), 7) / 1e-5,
    ],
)
def test_constants_that_reach_no_result_are_not_told(fn):
    assert not secure(fn, np.float32([3, 1, 2, 5]), config=FINE, notes=True)[1]


def test_more_bits_mend_it():
    result, shown = secure(lambda x: x.mean(), np.full(40_000, 50, np.float32), config=FINE)
    assert float(result) == pytest.approx(50, rel=1e-4)
    assert not shown


@pytest.mark.once
def test_data_that_vanish_are_told():
    before, told = secure(lambda x: x + 1, np.float32([1e-7, 0]))[1]
    assert "numbers up to 1e-07 vanish on SPU" in str(before.message)
    assert "stand for 0: its largest number, 1e-07, is below" in str(told.message)
    assert not secure(lambda x: x + 1, np.float32([1e-7, 1]))[1]


@pytest.mark.once
@pytest.mark.parametrize(
    ("fn", "x", "total"),
    [
        (jnp.sum, np.full(50_000, 109_875, np.int32), 5_493_750_000),
        (jnp.cumsum, np.array([70, 59, 90, 12, 57], np.uint8), 288),
        (lambda x: x.sum(axis=0), np.full((3, 2), -(2**30), np.int32), -3 * 2**30),
    ],
)
def test_a_sum_that_its_type_does_not_hold_is_told_at_its_line(fn, x, total):
    (told,) = secure(fn, x, config=FULL)[1]
    assert str(told.message).startswith(f"sum is {total}, which ")
    assert "astype('int64')" in str(told.message)


def test_a_wrap_that_numpy_has_too_is_not_told():
    x = np.uint8([250, 3])
    result, shown = secure(lambda x: jnp.stack([x + x, -x]), x, config=FULL)
    assert not shown
    np.testing.assert_array_equal(result, [x + x, -x])


def test_complex_numbers_are_refused_at_the_line_of_the_user():
    reason = r"reference_runs.py:\d+.*SPU computes on .* got c128"
    with pytest.raises(TraceError, match=reason):
        secure(lambda x: x, np.array([1 + 2j]))


def test_lines_are_beside_the_code_and_not_in_it():
    from mplang_jax.frontend import jax_compile

    from mplang_core import FeSignature, TensorType
    from mplang_core.ir.compressed_text import unpack

    def fn(x):
        y = x + 2
        return root(y)

    code = jax_compile(fn, FeSignature((TensorType("f32", (3,)),))).pfunc.attrs["code"]
    assert "test_reference_check" not in unpack(code)
    assert "reference_runs" not in unpack(code)
    names = {op.name: i for i, op in enumerate(flat_function(code).ops)}
    found = source_lines(code, None)
    assert found[names["add"]].line == line_after(fn, 1)
    assert found[names["sqrt"]].line == line_after(root, 3)
    assert lines_of(code + b" ") is None
