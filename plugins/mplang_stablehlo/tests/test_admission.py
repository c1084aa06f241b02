"""Admission: code that JAX writes passes, code that crashes an engine does not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_stablehlo.admission import ARITHMETIC, STRUCTURE, Admission
from mplang_stablehlo.custom_calls import CUSTOM_CALLS
from mplang_stablehlo.module import canonical, parse, text_of

ELEMENTS = "i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 f32 f64"
ENGINE = Admission("ENGINE", STRUCTURE | ARITHMETIC, frozenset(ELEMENTS.split()), CUSTOM_CALLS)

X = np.linspace(-0.9, 0.9, 24, dtype=np.float32).reshape(4, 6)
V = np.arange(6, dtype=np.int32)


def lowered(fn, *args) -> str:
    return canonical(jax.jit(fn).lower(*args).as_text())


FUNCTIONS = {
    "sort": (jnp.sort, X),
    "sort unstable": (lambda x: jnp.sort(x, stable=False), X),
    "sort descending": (lambda x: jnp.sort(x, descending=True), V),
    "argsort": (jnp.argsort, X),
    "lexsort": (lambda x: jnp.lexsort((x[0], x[1], x[2])), X),
    "median": (jnp.median, X),
    "percentile": (lambda x: jnp.percentile(x, 30), X),
    "unique": (lambda v: jnp.unique(v, size=3), V),
    "top_k": (lambda x: jax.lax.top_k(x, 2), X),
    "top_k of all": (lambda x: jax.lax.top_k(x, 6), X),
    "erf": (jax.lax.erf, X),
    "arcs": (lambda x: (jnp.arccos(x), jnp.arcsin(x), jnp.sinh(x), jnp.cosh(x)), X),
    "areas": (lambda x: (jnp.arcsinh(x), jnp.arctanh(x), jnp.arccosh(x + 2)), X),
    "random": (lambda x: x + jax.random.normal(jax.random.PRNGKey(0), (4, 6)), X),
    "permutation": (lambda v: jax.random.permutation(jax.random.PRNGKey(0), v), V),
    "cumulative": (lambda x: (jnp.cumsum(x), jnp.cumprod(x), jax.lax.cummax(x)), X),
    "convolve": (lambda x: jnp.convolve(x[0], x[1][:3], mode="same"), X),
    "conv": (
        lambda x: jax.lax.conv_transpose(
            x[None, :, :, None], jnp.ones((3, 3, 1, 1)), (2, 2), "SAME"
        ),
        X,
    ),
    "pooling": (
        lambda x: jax.grad(
            lambda y: jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (2, 2), (2, 2), "SAME").sum()
        )(x),
        X,
    ),
    "crop": (lambda x: jax.lax.pad(x, 0.0, ((-1, -1, 0), (0, -2, 0))), X),
    "gather": (lambda x, v: x[:, v % 4], X, V),
    "scatter": (lambda x, v: x.at[:, v].add(1.0), X, V),
    "loop": (lambda x: jax.lax.fori_loop(0, 5, lambda i, y: y * i, x), X),
    "scan": (lambda x: jax.lax.scan(lambda c, y: (c + y, c), x[0], x), X),
    "switch": (lambda v: jax.lax.switch(v[0], [jnp.sin, jnp.cos, jnp.tan], 1.0), V),
    "cond": (lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), X),
    "checkpoint": (jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)).sum())(x)), X),
    "nested": (lambda x: jax.nn.softmax(jax.nn.gelu(jnp.where(x > 0, x, jnp.log1p(-x)))), X),
    "einsum": (lambda x: jnp.einsum("ij,kj->ik", x, x), X),
    "bits": (lambda v: jax.lax.population_count(v) + jax.lax.clz(v) + (v << 2) ^ (v >> 1), V),
    "bitcast": (lambda x: jax.lax.bitcast_convert_type(x, np.int32), X),
    "histogram": (lambda x: jnp.histogram(x, bins=5)[0], X),
    "interp": (lambda x: jnp.interp(x, jnp.arange(3.0), jnp.arange(3.0)), X),
    "empty": (lambda x: jnp.sort(x[:0]).sum(), X),
    "digamma": (lambda x: jax.scipy.special.digamma(x + 3) + jax.scipy.special.gammaln(x + 3), X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_jax_writes_is_admitted(name):
    fn, *args = FUNCTIONS[name]
    text = lowered(fn, *args)
    assert text_of(ENGINE.admit(text)) == text


def test_canonical_text_has_no_hints_for_partitioning():
    text = lowered(jnp.linalg.cholesky, X[:4, :4])
    assert "lapack_spotrf_ffi" in text
    assert "sdy" not in text
    assert "frontend_attributes" not in text


MAIN = """module @main {{
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
    {}
    return %arg0 : tensor<8xf32>
  }}
}}
"""
F = "tensor<8xf32>"


def sort(*lines: str, kinds: int = 1) -> str:
    names = [f"%{side}{i}: tensor<f32>" for i in range(kinds) for side in "xy"]
    body = "\n      ".join(
        [f"^bb0({', '.join(names)}):", *lines, "stablehlo.return %c : tensor<i1>"]
    )
    operands, types = ", ".join(["%arg0"] * kinds), ", ".join([F] * kinds)
    gives = f"({types})" if kinds > 1 else types
    return MAIN.format(
        f'%s{f":{kinds}" * (kinds > 1)} = "stablehlo.sort"({operands}) <{{dimension = 0 : i64}}> '
        f"({{\n    {body}\n    }}) : ({types}) -> {gives}"
    )


def compare(out: str, direction: str, x: str, y: str, order: str = "TOTALORDER") -> str:
    kinds = "(tensor<f32>, tensor<f32>) -> tensor<i1>"
    return f"%{out} = stablehlo.compare {direction}, %{x}, %{y}, {order} : {kinds}"


def both(out: str, op: str, x: str, y: str) -> str:
    return f"%{out} = stablehlo.{op} %{x}, %{y} : tensor<i1>"


FIRST, SAME, SECOND = (
    compare("lt", "LT", "x0", "y0"),
    compare("eq", "EQ", "x0", "y0"),
    compare("lt1", "LT", "x1", "y1"),
)
REST = (both("a", "and", "eq", "lt1"), both("c", "or", "lt", "a"))
CONSTANT = "%k = stablehlo.constant dense<0.0> : tensor<f32>"


@pytest.mark.parametrize(
    "text",
    [
        sort(compare("c", "LT", "x0", "y0")),
        sort(compare("c", "GT", "x0", "y0", "FLOAT")),
        sort(FIRST, SAME, SECOND, *REST, kinds=2),
        sort(compare("c", "LT", "x1", "y1"), kinds=3),
    ],
)
def test_a_strict_order_sorts(text):
    ENGINE.admit(text)


@pytest.mark.parametrize(
    "text",
    [
        *(sort(compare("c", how, "x0", "y0")) for how in ("LE", "GE", "EQ", "NE")),
        sort(compare("c", "LT", "y0", "x0")),  # it is GT, but nothing that JAX writes
        sort(compare("c", "LT", "x0", "x0")),
        sort(compare("c", "LT", "x0", "y1"), kinds=2),
        sort(compare("c", "LT", "x0", "x1"), kinds=2),
        sort(CONSTANT, compare("c", "LT", "x0", "k")),
        sort("%c = stablehlo.constant dense<true> : tensor<i1>"),
        sort(FIRST, "%c = stablehlo.not %lt : tensor<i1>"),
        sort(FIRST, SAME, both("c", "or", "lt", "eq")),
        sort(
            FIRST, SAME, SECOND, both("a", "or", "eq", "lt1"), both("c", "or", "lt", "a"), kinds=2
        ),
        sort(
            FIRST, compare("eq", "EQ", "x0", "y0", "FLOAT"), SECOND, *REST, kinds=2
        ),  # -0 before +0, and equal
        sort(FIRST, compare("eq", "EQ", "x1", "y1"), SECOND, *REST, kinds=2),
        sort(FIRST, SAME, compare("lt1", "LE", "x1", "y1"), *REST, kinds=2),
        sort(
            "%p = stablehlo.add %x0, %x0 : tensor<f32>",
            "%q = stablehlo.add %y0, %y0 : tensor<f32>",
            compare("c", "LT", "p", "q"),
        ),
        sort(
            CONSTANT,
            "%j = stablehlo.constant dense<1.0> : tensor<f32>",
            compare("e", "GT", "x0", "k"),
            compare("f", "GT", "y0", "k"),
            "%p = stablehlo.select %e, %k, %x0 : tensor<i1>, tensor<f32>",
            "%q = stablehlo.select %f, %j, %y0 : tensor<i1>, tensor<f32>",
            compare("c", "LT", "p", "q"),
        ),
    ],
)
def test_what_is_no_strict_order_does_not_sort(text):
    with pytest.raises(
        ValueError, match="ENGINE cannot run stablehlo.sort: its comparator is not a"
    ):
        ENGINE.admit(text)


def test_a_comparator_of_many_keys_is_refused():
    keys = [compare(f"a{i}", "LT", "x0", "y0") for i in range(500)]
    with pytest.raises(ValueError, match="a comparator takes pairs, and compares a few keys"):
        ENGINE.admit(sort(*keys, compare("c", "LT", "x0", "y0")))


ERF = "%0 = stablehlo.custom_call @mhlo.erf(%arg0) {ATTRS} : (tensor<8xf32>) -> tensor<8xf32>"
GOOD = "mhlo.attributes = {}, mhlo.version = 1 : i64"
TOPK = (
    "%0:2 = stablehlo.custom_call @mhlo.topk(%arg0) {mhlo.attributes = {k = K : i64}, mhlo.version "
    "= 1 : i64} : (tensor<8xf32>) -> (tensor<NxT>, tensor<NxI>)"
)


def topk(k, n, kind="f32", index="i32") -> str:
    text = TOPK.replace("K", str(k)).replace("NxT", f"{n}x{kind}").replace("NxI", f"{n}x{index}")
    return MAIN.format(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MAIN.format(ERF.replace("ATTRS", "")), "its attributes are"),
        (
            MAIN.format(ERF.replace("ATTRS", GOOD + ", has_side_effect = true")),
            "its attributes are",
        ),
        (MAIN.format(ERF.replace("ATTRS", GOOD.replace("1 :", "2 :"))), "its mhlo.version is 2"),
        (
            MAIN.format(ERF.replace("ATTRS", GOOD).replace("-> tensor<8", "-> tensor<4")),
            "its results",
        ),
        (
            MAIN.format(ERF.replace("ATTRS", GOOD).replace("erf", "exp2")),
            "not among the custom calls",
        ),
        (topk(3, 2), "its mhlo.attributes is"),
        (topk(9, 9), "takes 9 elements"),
        (topk(-1, 0), "its mhlo.attributes is"),
        (topk(3, 3, "f64"), "its results are"),
        (topk(3, 3, "f32", "i64"), "its results are"),
        (MAIN.format("%0 = stablehlo.replica_id : tensor<ui32>"), "not among the ops allowed"),
        (
            MAIN.format('%0 = "stablehlo.rng_bit_generator"(%arg0) : (tensor<8xf32>) -> ()'),
            "StableHLO",
        ),
        (MAIN.format("%0 = stablehlo.abs %arg0 {a = 1} : tensor<8xf32>"), r"attributes \['a'\]"),
        (
            MAIN.format('%0 = stablehlo.abs %arg0 {mhlo.sharding = "x"} : tensor<8xf32>'),
            r"attributes \['mhlo.sharding'\]",
        ),
        (
            MAIN.format("%0 = stablehlo.convert %arg0 : (tensor<8xf32>) -> tensor<8xbf16>"),
            "tensors of bf16",
        ),
        (MAIN.format("%0 = stablehlo.iota dim = 0 : tensor<9999999999999xf32>"), "too large"),
        (MAIN.format("%0 = stablehlo.iota dim = 0 : tensor<" + "1x" * 40 + "1xf32>"), "too large"),
        (MAIN.format("") + "module @other {}", "functions with bodies|ENGINE cannot run"),
        (MAIN.format("").replace("}\n}", "}\nfunc.func private @f()\n}"), "functions with bodies"),
        (MAIN.format("call @f() : () -> ()"), "StableHLO|not there"),
        (
            MAIN.format("%0 = stablehlo.abs %arg0 : tensor<8xf32>\n" * 100_001),
            "over 100000 ops|StableHLO",
        ),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        ENGINE.admit(text)


def test_text_that_is_none():
    with pytest.raises(ValueError, match="it is not StableHLO"):
        ENGINE.admit(MAIN.format("return return"))


def test_the_module_stays_as_it_is_parsed():
    """The text printed for an engine is the one that was checked."""
    text = MAIN.format("%0 = stablehlo.abs %arg0 : tensor<8xf32>")
    assert text_of(ENGINE.admit(text)) == text_of(parse(text))


@pytest.mark.parametrize(
    ("element", "most"),
    [("f64", 8), ("i8", 64), ("i1", 512), ("complex<f32>", 8), ("complex<f64>", 4)],
)
def test_the_size_of_a_tensor_is_bounded(element, most):
    elements = frozenset([element, "f32"])
    small = Admission("ENGINE", frozenset({"constant"}), elements, {}, largest=64)
    zero = "(0.0, 0.0)" if element.startswith("complex") else "0.0" if element == "f64" else "false"
    zero = "0" if element == "i8" else zero
    for size, fits in ((most, True), (most + 1, False)):
        text = MAIN.format(f"%0 = stablehlo.constant dense<{zero}> : tensor<{size}x{element}>")
        if fits:
            small.admit(text)
        else:
            with pytest.raises(ValueError, match="is too large; a tensor has at most"):
                small.admit(text)


MIXED = """%z = stablehlo.constant dense<0.0> : tensor<f64>
    %0 = stablehlo.reduce(%arg0 init: %z) across dimensions = [0]
      : (tensor<8xf32>, tensor<f64>) -> tensor<f64>
     reducer(%x: tensor<f64>, %y: tensor<f64>) {
      %s = stablehlo.add %x, %y : tensor<f64>
      stablehlo.return %s : tensor<f64>
    }"""
SCATTERED = """%z = stablehlo.constant dense<0.0> : tensor<f32>
    %o = stablehlo.constant dense<0.0> : tensor<8xf32>
    %0 = "stablehlo.select_and_scatter"(%arg0, %o, %z) <{
        window_dimensions = array<i64: 1>, window_strides = array<i64: 1>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %c = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
    }, {
      ^bb0(%x: tensor<f64>, %y: tensor<f64>):
        %s = stablehlo.add %x, %y : tensor<f64>
        stablehlo.return %s : tensor<f64>
    }) : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf64>"""


@pytest.mark.parametrize("body", [MIXED, SCATTERED])
def test_regions_of_other_element_types(body):
    """The engines return results of another type than the program declares."""
    with pytest.raises(ValueError, match="of different element types|not StableHLO"):
        ENGINE.admit(MAIN.format(body))


def test_reasons_are_short():
    names = ", ".join(f"a{i} = 1" for i in range(100_000))
    with pytest.raises(ValueError, match="the attributes") as error:
        ENGINE.admit(MAIN.format(f"%0 = stablehlo.abs %arg0 {{{names}}} : tensor<8xf32>"))
    assert len(str(error.value)) < 1200
