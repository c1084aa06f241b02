"""Lowering: the text that libspu compiles, and its results."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_spu.lowering import Target, lower as lower_for
from mplang_stablehlo.ext import canonical

import mplang_core as mp


def lower(text: str) -> str:
    return lower_for(text, Target("SEMI2K", "FM128", 40)).text


def lowered(fn, *args) -> str:
    return lower(canonical(jax.jit(fn).lower(*args).as_text()))


def test_barriers_are_erased():
    def fn(x):
        return jax.lax.optimization_barrier((x, x + 1))[1]

    text = lowered(fn, np.zeros(2, np.float32))
    assert "optimization_barrier" not in text
    assert "stablehlo.add" in text


@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (jax.lax.erf_inv, "the constant infinity reaches multiply if it is selected: "),
        (jax.lax.digamma, "the constant NaN reaches the result if it is selected: "),
        (
            lambda x: jax.lax.cond(x.sum() > 2, jnp.sin, lambda x: jnp.full_like(x, jnp.nan), x),
            "the constant NaN reaches the result if it is selected: ",
        ),
        (lambda x: x * jnp.nan, "the constant NaN reaches multiply: "),
        (lambda x: x + jnp.inf, "the constant infinity reaches add: "),
    ],
)
def test_a_constant_that_a_select_may_discard_is_told_as_such(fn, text):
    """JAX discards it for all but a few operands; to say that it is there was a false alarm."""
    code = canonical(jax.jit(fn).lower(np.ones((2, 2), np.float32)).as_text())
    (diagnostic,) = lower_for(code, Target("ABY3", "FM128", 40)).diagnostics
    assert diagnostic.text.startswith(text)


CASE = """module @main {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.case"(%arg0) ({
      %1 = stablehlo.abs %arg1 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }, {
      stablehlo.return %arg1 : tensor<f32>
    }, {
      %1 = stablehlo.negate %arg1 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
"""
NESTED = """module @main {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<f32>) -> tensor<f32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.compare  NE, %arg0, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = stablehlo.convert %0 : (tensor<i1>) -> tensor<i32>
    %2 = "stablehlo.case"(%1) ({
      %3 = stablehlo.abs %arg1 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }, {
      %c_0 = stablehlo.constant dense<1> : tensor<i32>
      %3 = stablehlo.compare  NE, %arg0, %c_0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %4 = stablehlo.convert %3 : (tensor<i1>) -> tensor<i32>
      %5 = "stablehlo.case"(%4) ({
        stablehlo.return %arg1 : tensor<f32>
      }, {
        %6 = stablehlo.negate %arg1 : tensor<f32>
        stablehlo.return %6 : tensor<f32>
      }) : (tensor<i32>) -> tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
"""


def test_a_case_becomes_nested_ones_of_two():
    assert lower(CASE) == NESTED
    assert lower(NESTED) == NESTED


BRANCHES = [
    lambda x: (x + 1, x),
    lambda x: (x * 2, x - 1),
    lambda x: jax.lax.switch(2, [lambda y: (y, y)] * 3, -x),
    lambda x: (jnp.zeros_like(x), x),
]


@pytest.mark.parametrize("secret", [True, False])
@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3, 4, 2**31 - 1])
def test_a_switch_takes_the_branch_of_jax(index, secret):
    x = np.float32([[0.5, -2.0, 1.0, 3.0]])

    def fn(x, i):
        first, second = jax.lax.switch(i, BRANCHES, x)
        return first * 3 + second

    def program(i):
        mine = mp.put("P1", np.int32(index)) if secret else i
        return mp.reveal(mp.device("SP0")(fn)(mp.put("P0", x), mine))

    nodes = [{"name": "a"}, {"name": "b"}]
    devices = {"P0": {"kind": "PPU", "members": [0]}, "P1": {"kind": "PPU", "members": [1]}}
    spu = {"kind": "SPU", "members": [0, 1], "config": {"protocol": "SEMI2K"}}
    cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": {**devices, "SP0": spu}})
    with mp.Simulator(cluster) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, program, np.int32(index)))
    np.testing.assert_allclose(found[0], fn(x, index), atol=1e-3)


def test_a_folded_scalar_has_no_dimensions():
    sine = CASE.replace("stablehlo.return %arg1 ", "stablehlo.return %2 ").replace(
        "    }, {\n      stablehlo.return %2",
        "    }, {\n      %c = stablehlo.constant dense<1.0> : tensor<f32>\n"
        "      %2 = stablehlo.sine %c : tensor<f32>\n      stablehlo.return %2",
    )
    assert "tensor<1xf32>" not in lower(sine)
    assert "dense<0.841470" in lower(sine)


def case_of(branches: int) -> str:
    one = "{\n      stablehlo.return %arg1 : tensor<f32>\n    }"
    head, tail = CASE.split('"stablehlo.case"(%arg0) (')[0], CASE[CASE.index(") : (tensor<i32>)") :]
    return f'{head}"stablehlo.case"(%arg0) ({", ".join([one] * branches)}{tail}'


def test_a_case_of_many_branches_is_refused():
    """They become nested cases, over which libspu's compiler recurses."""
    assert lower(case_of(90)).count("stablehlo.case") == 89
    for branches in (200, 3000):
        with pytest.raises(ValueError, match="nested deeper than 100, or as many branches"):
            lower(case_of(branches))


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: jax.lax.bitcast_convert_type(x, np.int32), "bitcast_convert of floats"),
        (lambda x: jnp.linalg.eigh(jnp.outer(x, x))[0], "real matrices with at most 32"),
        (lambda x: (x + 1j).real, "complex"),
        (lambda x: x.astype(jnp.bfloat16), "tensors of bf16"),
    ],
)
def test_what_spu_cannot_run_is_told_with_a_reason(fn, message):
    with pytest.raises(ValueError, match=f"SPU cannot run .*{message}"):
        lowered(fn, np.zeros(3, np.float32))
