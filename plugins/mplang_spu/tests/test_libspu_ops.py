"""Every op of the shared admission list runs on SPU as on XLA, or is refused before libspu.

libspu's compiler breaks the heap of the process where it fails; see ``libspu_ops``.
"""

from __future__ import annotations

import jax
import numpy as np
import op_samples
import pytest
import spu_runner
from mplang_spu.lowering import SPU, Target, lower
from mplang_spu.lowering.libspu_ops import OPS, REWRITTEN
from mplang_stablehlo import signature_of
from mplang_stablehlo.ext import ARITHMETIC, CUSTOM_CALLS, STRUCTURE, compile_for_xla, parse
from op_samples import adder, call, constant, one, sample, tensor

import mplang_core as mp
from mplang_core.errors import TraceError
from mplang_core.ext import pack

SHARED = sorted(STRUCTURE | ARITHMETIC)  # custom calls are admitted by their targets
EXPANDED = sorted(CUSTOM_CALLS.keys() - {"mhlo.topk"})
RUN = {*CUSTOM_CALLS, "custom_call"}
TARGET = Target("SEMI2K", "FM128", 40)
ERROR = 2e-3


def test_each_op_of_the_shared_list_is_decided():
    """What SPU refuses of the shared list says what to do instead."""
    refused = set(SHARED) - OPS - REWRITTEN - {"custom_call"}
    assert refused == {"reduce_precision"}
    assert refused <= SPU.advice.keys()
    assert OPS | REWRITTEN <= STRUCTURE | ARITHMETIC


def f32(*numbers):
    return np.array(numbers, np.float32)


def is_valid(text: str) -> bool:
    try:
        parse(text)
    except Exception:  # the op is not defined on this type
        return False
    return True


def check(text: str, name: str) -> None:
    """Run a module on shares, and on XLA; or see that it is refused by our own error."""
    if name not in OPS | REWRITTEN | RUN or _is_refused_type(name, text):
        with pytest.raises(ValueError, match=f"SPU cannot run stablehlo.{name}: "):
            lower(text, TARGET)
        return
    takes, gives = signature_of(pack(text))
    rng = np.random.default_rng(0)
    operands = [_numbers(rng, kind, name) for kind in takes]
    found = spu_runner.run_text(text, operands, gives)
    with jax.enable_x64(True):
        if name in EXPANDED:  # XLA of some versions has no code for these calls
            exact = [getattr(jax.lax, name.removeprefix("mhlo."))(*operands)]
        else:
            exact = compile_for_xla(text, takes, gives)(*operands)
    assert spu_runner.off(found, [np.asarray(x) for x in exact]) < ERROR


def _is_refused_type(name: str, text: str) -> bool:
    return name == "bitcast_convert" and "xf" in text


def _numbers(rng, kind, name):
    dtype = kind.dtype.numpy
    if dtype.kind == "b":
        return rng.integers(0, 2, kind.shape).astype(bool)
    if name == "custom_call":  # equal elements come in any order
        return rng.permutation(kind.size).astype(dtype)
    if dtype.kind in "iu":
        high = 2 if name in ("case", "gather", "scatter") else 4
        return rng.integers(0 if high == 2 else 1, high, kind.shape).astype(dtype)
    return (rng.uniform(0.3, 0.8, kind.shape) + (name == "mhlo.acosh")).astype(dtype)


def some(texts):
    return next(text for text in texts if is_valid(text))


@pytest.mark.parametrize("name", SHARED)
def test_an_op_gives_the_numbers_of_xla_or_is_refused(name):
    check(some(sample(name, element) for element in ("f32", "i32")), name)


@pytest.mark.parametrize("name", EXPANDED)
def test_a_custom_call_gives_the_numbers_of_xla(name):
    check(call(name.removeprefix("mhlo."), "f32"), name)


@pytest.mark.slow("70 ops on 12 types")
@pytest.mark.parametrize("element", op_samples.ELEMENTS)
@pytest.mark.parametrize("name", [*SHARED, *EXPANDED])
def test_an_op_of_each_type_gives_the_numbers_of_xla_or_is_refused(name, element):
    if name in EXPANDED:
        text = call(name.removeprefix("mhlo."), element)
        if not element.startswith("f"):
            pytest.skip("it is of floats")
    else:
        text = sample(name, element)
    if not is_valid(text):
        pytest.skip("StableHLO has no such op")
    if element == "i1" and name == "custom_call":
        pytest.skip("equal elements come in any order")
    check(text, name)


F, M, S = tensor("f32", 4), tensor("f32", 4, 4), tensor("f32")
IMAGES, KERNELS, MADE = (
    tensor("f32", 2, 4, 4, 2),
    tensor("f32", 2, 2, 2, 4),
    tensor("f32", 1, 3, 3, 4),
)
ERF = f"custom_call @mhlo.erf(%x) {{mhlo.attributes = {{}}, mhlo.version = 1 : i64}} : ({S}) -> {S}"


def reducer(line: str) -> str:
    """Return a sum whose reducer computes ``%s`` in another way."""
    region = adder("f32").replace(f"add %x, %y : {S}", line)
    return one(
        [M], F, f'%0 = "stablehlo.reduce"(%arg0, %z) <{{dimensions = array<i64: 1>}}> ({region}) '
        f": ({M}, {S}) -> {F}", constant("z", "f32"),
    )  # fmt: skip


FAILING = {
    "groups of a batch": (
        one(
            [IMAGES, KERNELS], MADE,
            "%0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->"
            "[b, 0, 1, f], window = {} {batch_group_count = 2 : i64, feature_group_count = 1 : i64}"
            f" : ({IMAGES}, {KERNELS}) -> {MADE}",
        ),
        "convolution: it has no groups of a batch",
    ),
    "slice of a scalar": (
        one([S], S, f"%0 = stablehlo.dynamic_slice %arg0, sizes = [] : ({S}) -> {S}"),
        "dynamic_slice: a scalar has no slices",
    ),
    "indices before a batch": (
        one(
            [tensor("f32", 2, 4), tensor("i32", 1, 2)], tensor("f32", 2),
            '%0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<'
            "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims ="
            " [1], start_index_map = [1], index_vector_dim = 0>, slice_sizes = array<i64: 1, 1>}> "
            f": ({tensor('f32', 2, 4)}, {tensor('i32', 1, 2)}) -> {tensor('f32', 2)}",
        ),
        "gather: in a batch, its indices stand in the last dimension",
    ),
    "tangent in a reducer": (reducer(f"tan %x : {S}"), "tan in the region of a reduce"),
    "cube root in a reducer": (reducer(f"cbrt %x : {S}"), "cbrt in the region of a reduce"),
    "error function in a reducer": (reducer(ERF), "erf in the region of a reduce"),
    "precision in a reducer": (
        reducer(f"reduce_precision %x, format = e5m10 : {S}"), "reduce_precision: its floats",
    ),
    "two ops to combine": (
        sample("scatter", "f32").replace(
            f"%s = stablehlo.add %x, %y : {S}",
            f"%t = stablehlo.add %x, %y : {S}\n        %s = stablehlo.sine %t : {S}",
        ),
        "scatter: it combines two elements by one op",
    ),
    "cropping": (
        sample("select_and_scatter", "f32")
        .replace("<{window_dim", "<{padding = dense<[[-1, -1]]> : tensor<1x2xi64>, window_dim")
        .replace("tensor<2xf32>", "tensor<1xf32>"),
        "select_and_scatter: it crops nothing",
    ),
}  # fmt: skip
"""Code that StableHLO and XLA take, and at which libspu's compiler fails; what we say."""


@pytest.mark.parametrize(("text", "message"), FAILING.values(), ids=list(FAILING))
@pytest.mark.parametrize("field", ["FM128", "FM64"])
def test_libspu_gets_nothing_at_which_it_fails(text, message, field):
    assert is_valid(text)
    with pytest.raises(ValueError, match=f"SPU cannot run (stablehlo.|mhlo.)?{message}"):
        lower(text, Target("ABY3", field, 18))


def coarse(x):
    return jax.lax.reduce_precision(x, 5, 10)


def evaluate(fn, x):
    with mp.Simulator(mp.ClusterSpec.simple(3)) as sim:

        def program(x):
            return mp.reveal(mp.device("SP0")(fn)(mp.seal(x)), to="P0")

        return mp.fetch(sim, mp.evaluate(sim, program, x))


def test_the_author_is_told_the_op_and_its_own_line(capfd):
    """The line is that of the op, not that of the call; libspu prints nothing."""
    line = coarse.__code__.co_firstlineno + 1
    with pytest.raises(
        TraceError, match=rf"^{__file__.rsplit('/', 1)[1]}:{line}: .*reduce_precision"
    ):
        evaluate(coarse, f32(1, 2))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("secret", [(False, True), (True, True)])
def test_a_padded_selection_takes_public_numbers_and_a_secret_source(secret):
    """As a gradient of a maximum over windows does, at which libspu's compiler failed."""
    text = sample("select_and_scatter", "f32").replace("tensor<2xf32>", "tensor<3xf32>")
    text = text.replace("<{window_d", "<{padding = dense<1> : tensor<1x2xi64>, window_d")
    operands, (takes, gives) = (f32(4, 3, 1, 2), f32(1, 2, 3)), signature_of(pack(text))
    found = spu_runner.run_text(text, operands, gives, secret=secret)
    exact = compile_for_xla(text, takes, gives)(*operands)
    assert spu_runner.off(found, [np.asarray(each) for each in exact]) < ERROR


@pytest.mark.timeout(60)
@pytest.mark.parametrize("secret", [(True, False), (False, True)])
def test_a_loop_that_swaps_a_secret_and_a_public_value_compiles(secret):
    """libspu's compiler looked forever for what is secret, and held Python's lock."""

    def fn(x, y):
        return jax.lax.fori_loop(0, 3, lambda i, s: (s[1] * 2, s[0] + 1, s[3], s[2]), (x, y, x, y))

    x, y = f32(1, 2), f32(5, 7)
    text = spu_runner.stablehlo(fn, x, y)
    found = spu_runner.run_text(text, [x, y], signature_of(pack(text))[1], secret=secret)
    assert spu_runner.off(found, [np.asarray(each) for each in fn(x, y)]) < ERROR
