"""Executables: what stays of making one, what users compiled, and how long XLA may take."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_stablehlo import executable
from mplang_stablehlo.executable import is_quick
from mplang_stablehlo.ext import compile_for_xla, parse
from mplang_stablehlo.module import RENEWED, parse_alone

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


# -- contexts


def test_modules_of_a_thread_share_a_context_which_is_renewed():
    contexts = [parse(TEXT.format(factor=i)).context for i in range(3 * RENEWED)]
    changes = [i for i, (a, b) in enumerate(itertools.pairwise(contexts)) if a != b]
    assert 2 <= len(changes) <= 3
    assert all(b - a == RENEWED for a, b in itertools.pairwise(changes))
    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(lambda: parse(TEXT.format(factor=1)).context).result()
    assert elsewhere not in contexts[-RENEWED:]


def test_what_runs_without_the_gil_has_a_context_of_its_own():
    texts = [TEXT.format(factor=i) for i in range(2)]
    assert parse_alone(texts[0]).context != parse_alone(texts[1]).context
    assert parse_alone(texts[0]).context != parse(texts[1]).context
    lowered = [jax.jit(lambda x: x + 1).lower(np.float32(1)).compiler_ir() for _ in range(2)]
    assert lowered[0].context != parse(texts[0]).context


def test_many_threads_compile_functions_of_one_signature():
    def first(factor):
        return float(compiled(factor)(np.ones(8, np.float32))[0][0])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(first, range(64))) == list(range(64))


def test_functions_with_and_without_64_bits_are_kept_apart():
    for wide in (False, True, False):
        with jax.enable_x64(wide):
            (found,) = compiled(3)(np.ones(8, np.float32))
        assert (found.dtype, float(found[0])) == (np.float32, 3.0)


# -- how long XLA may take


def text_of(fn, *args) -> str:
    return jax.jit(fn).lower(*args).as_text()


@pytest.mark.parametrize(
    ("fn", "size", "quick"),
    [
        (lambda x: jnp.sin(x) * x + 1, 30, True),
        (lambda x: x / x.max(), 16_384, True),
        (lambda x: x + 1, 16_385, False),
        (lambda x: jnp.zeros((200, 100)) + x[0], 3, False),
        (lambda x: x @ x, 30, False),
        (lambda x: jax.lax.fori_loop(0, 100, lambda i, y: y * x, x), 3, False),
        (lambda x: x.at[jnp.array([0])].add(1.0), 30, False),
    ],
)
def test_small_functions_without_loops_are_compiled_quickly(fn, size, quick):
    assert is_quick(text_of(fn, np.ones(size, np.float32))) is quick


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jnp.sin(x) * x + jnp.exp(-x) / (1 + x * x),
        lambda x: (x - x.mean()) / x.std(),
        lambda x: jnp.sort(jax.nn.softmax(x)),
        lambda x: (x * 1000).astype("int32") // 7 % 5,
    ],
)
def test_what_is_compiled_quickly_is_as_exact(fn, monkeypatch):
    x = np.random.default_rng(0).uniform(-3, 3, 1000).astype(np.float32)
    with jax.enable_x64(True):
        (exact,) = jax.tree.leaves(fn(jnp.asarray(x, "float64")))
    kind = TensorType("i32" if exact.dtype.kind == "i" else "f32", (1000,))
    results = []
    for quick in (True, False):
        monkeypatch.setattr(executable, "is_quick", lambda text, quick=quick: quick)
        compiled = compile_for_xla(text_of(fn, x), [TensorType("f32", (1000,))], [kind])
        results.append(np.asarray(compiled(x)[0]))
    for each in results:
        np.testing.assert_allclose(each, exact, rtol=3e-6, atol=3e-7)
    np.testing.assert_allclose(*results, rtol=1e-6, atol=1e-7)
