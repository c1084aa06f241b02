"""Executables: what JAX needs to make one does not stay, and what users compiled does."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
from mplang_stablehlo.ext import compile_for_xla

from mplang_core import TensorType

PROGRAMS = 30
PER_PROGRAM = 500  # KB; it was 1,100
NUMBERS = [TensorType("f32", (8,))]
TEXT = """module @main {{
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
    %0 = stablehlo.constant dense<{factor}.0> : tensor<8xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<8xf32>
    return %1 : tensor<8xf32>
  }}
}}"""


def compiled(factor):
    return compile_for_xla(TEXT.format(factor=factor), NUMBERS, NUMBERS)


def private_memory():
    """Return how much memory this process has for itself, in KB."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))


def test_programs_that_differ_take_no_megabyte_each():
    """An engine grew by 1.1 MB for each new function of arrays, and let go of none of them."""
    x = jnp.ones(8, jnp.float32)
    kept = [compiled(factor) for factor in range(1, 6)]
    before = private_memory()
    for factor in range(6, 6 + PROGRAMS):
        kept.append(compiled(factor))
        kept[-1](x)
    grown = (private_memory() - before) / PROGRAMS
    assert grown < PER_PROGRAM, f"{grown:.0f} KB a program"
    assert [float(each(x)[0][0]) for each in kept[:3]] == [1.0, 2.0, 3.0]


def test_what_a_user_has_compiled_stays_compiled():
    traced = []

    @jax.jit
    def double(x):
        traced.append(x)
        return 2 * x

    x = jnp.ones(8, jnp.float32)
    double(x)
    compiled(100)
    assert float(double(x)[0]) == 2.0
    assert len(traced) == 1
