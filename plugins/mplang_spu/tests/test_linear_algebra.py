"""Linear algebra on secrets, against float64 NumPy: residuals relative to the matrix."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
import spu_runner
from linear_algebra_samples import (
    FUNCTIONS,
    INPUTS,
    POSITIVE,
    SQUARE,
    orthonormal,
    relative,
    symmetric,
)

import mplang_core as mp
from mplang_core.ext import TraceError

LARGE = 1e4  # condition number


def check(name, n, condition, protocol="ABY3"):
    fn, kind, error, allowed = FUNCTIONS[name]
    a = INPUTS[kind](n, condition)
    found = jax.tree.map(np.float64, spu_runner.run(fn, a, protocol=protocol))
    assert error(found, a.astype(np.float64)) <= allowed


ELSEWHERE = {"inv", "cholesky", "cho_solve", "solve_triangular", "lu", "qr complete", "svd of wide",
             "pinv", "lstsq", "matrix_rank", "det", "norm"}  # fmt: skip
"""Functions that are in other tests of this file, or made as others are."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long("12 functions more")] * (name in ELSEWHERE))
        for name in FUNCTIONS
    ],
)
def test_a_function_is_right(name):
    check(name, 4, LARGE)


@pytest.mark.slow("22 functions of matrices of up to 32 rows, again on CHEETAH")
@pytest.mark.parametrize(
    ("protocol", "n"),
    [*(("ABY3", n) for n in (1, 2, 3, 10, 32)), ("SEMI2K", 7), ("CHEETAH", 4), ("CHEETAH", 10)],
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_right_for_each_size_and_protocol(name, n, protocol):
    check(name, n, LARGE if n > 1 else 1, protocol)


GRADIENTS = {
    "inv": (lambda a: jnp.linalg.inv(a)[0].sum(), SQUARE),
    "solve": (lambda a: jnp.linalg.solve(a, a[0])[0], SQUARE),
    "cholesky": (lambda a: jnp.linalg.cholesky(a)[-1].sum(), POSITIVE),
    "slogdet": (lambda a: jnp.linalg.slogdet(a)[1], SQUARE),
}
LU = {"solve", "slogdet"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long("through LU, as inv")] * (name in LU))
        for name in GRADIENTS
    ],
)
def test_a_gradient_is_right(name):
    fn, kind = GRADIENTS[name]
    a = INPUTS[kind](4, 100)
    found = spu_runner.run(jax.grad(fn), a)
    assert spu_runner.off(found, spu_runner.float64_of(jax.grad(fn), a)) < 1e-3


@pytest.mark.slow("gradients of matrices of 32 rows")
@pytest.mark.parametrize(
    ("name", "protocol", "n"),
    [(name, *how) for name in GRADIENTS for how in [("ABY3", 32), ("CHEETAH", 6)]],
)
def test_a_gradient_is_right_for_large_matrices(name, protocol, n):
    fn, kind = GRADIENTS[name]
    a = INPUTS[kind](n, 100)
    found = spu_runner.run(jax.grad(fn), a, protocol=protocol)
    assert spu_runner.off(found, spu_runner.float64_of(jax.grad(fn), a)) < 1e-3


def test_matrices_come_in_batches():
    a = np.stack([symmetric(3, 10, seed=i) for i in range(4)]).reshape(2, 2, 3, 3)

    def fn(a):
        w, v = jnp.linalg.eigh(a)
        u, s, vt = jax.vmap(jnp.linalg.svd)(a)
        built = v * w[..., None, :] @ v.mT, u * s[..., None, :] @ vt
        low = jax.vmap(jnp.linalg.cholesky)(a)
        return *built, low @ low.mT, jnp.linalg.qr(a).Q @ jnp.linalg.qr(a).R, jnp.linalg.inv(a) @ a

    *same, one = spu_runner.run(fn, a)
    assert max(relative(found, a) for found in same) < 1e-5
    assert np.abs(one - np.eye(3)).max() < 1e-5


def test_equal_pivots_are_chosen_as_lapack_does():
    a = np.array([[1, 2, 3], [-2, 1, 1], [2, 1, 1]], np.float32)
    assert (
        spu_runner.off(
            spu_runner.run(jax.lax.linalg.lu, a), spu_runner.numpy_of(jax.lax.linalg.lu, a)
        )
        < 1e-6
    )


def test_a_matrix_that_is_singular_has_its_rank_and_orthonormal_vectors():
    a = np.outer([1, 2, 3, 4], [1, -1, 2]).astype(np.float32)
    a[0, 0] += 1  # rank 2

    def fn(a):
        u, s, vt = jnp.linalg.svd(a)
        square = a[:3] @ a[:3].T
        known = jnp.linalg.matrix_rank(a), jnp.linalg.det(square)
        return u, s, vt, jnp.linalg.pinv(a), jnp.linalg.lstsq(a, a[:, 1])[0], *known

    u, s, vt, pinv, x, rank, det = spu_runner.run(fn, a)
    assert rank == 2
    assert abs(det) < 1e-6
    assert orthonormal(u) + orthonormal(vt) < 1e-6
    assert relative(u[:, :3] * s @ vt, a) < 1e-6
    assert relative(pinv, np.linalg.pinv(a)) < 1e-5
    assert relative(x, np.linalg.lstsq(a, a[:, 1])[0]) < 1e-5


def test_equal_eigenvalues_have_orthonormal_vectors():
    a = np.kron(np.eye(2), [[2, 1], [1, 2]]).astype(np.float32)
    values, vectors = spu_runner.run(jnp.linalg.eigh, a)
    assert np.abs(values - [1, 1, 3, 3]).max() < 1e-6
    assert orthonormal(vectors) < 1e-6
    assert relative(vectors * values @ vectors.T, a) < 1e-6


def test_columns_of_different_units_cost_no_precision():
    """Ages, and salaries, whose squares are 10^10."""
    rng = np.random.default_rng(0)
    x = (rng.uniform(0.5, 1, (20, 3)) * [1e-2, 50, 1e5]).astype(np.float32)
    y = (x @ np.array([100, 1, 1e-3])).astype(np.float32)

    def fn(x, y):
        gram = x.T @ x / len(x)
        solved = jsl.cho_solve(jsl.cho_factor(gram), x.T @ y / len(x))
        q, r = jnp.linalg.qr(x)
        return solved, jsl.solve_triangular(r, q.T @ y)

    for found in spu_runner.run(fn, x, y):
        assert np.abs(found / [100, 1, 1e-3] - 1).max() < 1e-2


def cluster(**config):
    devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(3)}
    devices["SP0"] = {"kind": "SPU", "members": [0, 1, 2], "config": {"protocol": "ABY3", **config}}
    return mp.ClusterSpec.from_dict({"nodes": [{}] * 3, "devices": devices})


@pytest.fixture(scope="module")
def simulator():
    with mp.Simulator(cluster()) as sim:
        yield sim


def computed(sim, device, fn, x):
    program = lambda x: mp.reveal(mp.device(device)(fn)(mp.put("P0", x)), to="P0")  # noqa: E731
    return mp.fetch(sim, mp.evaluate(sim, program, x))


@pytest.mark.parametrize(
    ("fn", "config", "n"),
    [
        (lambda a: jnp.linalg.eigvals(a).real, {}, 3),
        (lambda a: jnp.linalg.inv(a), {}, 33),
        (lambda a: jnp.linalg.eigh(a)[0], {"field": "FM64"}, 3),
        (lambda a: jnp.linalg.cholesky(a), {"fxp_fraction_bits": 24}, 3),
    ],
)
def test_what_cannot_be_exact_is_refused_with_line_and_remedy(fn, config, n):
    with mp.Simulator(cluster(**config)) as sim, pytest.raises(TraceError) as error:
        computed(sim, "SP0", fn, np.eye(n, dtype=np.float32))
    assert f"test_linear_algebra.py:{fn.__code__.co_firstlineno}:" in str(error.value)
    assert "take field FM128" in str(error.value)


@pytest.mark.parametrize("order", [("SP0", "P0"), ("P0", "SP0")])
def test_a_function_for_both_devices_is_lowered_for_each(simulator, order):
    """A party has LAPACK, whose code an SPU cannot run, and nothing is said about it."""
    fn = lambda a: jnp.linalg.inv(jnp.linalg.cholesky(a))  # noqa: E731
    a = symmetric(3, 10)
    for device in order:
        found = computed(simulator, device, fn, a)
        assert relative(found, spu_runner.float64_of(fn, a)) < 1e-5


def test_plain_functions_keep_lapack():
    from mplang_jax import jax_compile
    from mplang_stablehlo import read

    signature = mp.FeSignature((mp.TensorType("f32", (4, 4)),))
    for fn, routine in [
        (jnp.linalg.cholesky, "potrf"),
        (jnp.linalg.eigh, "syevd"),
        (jnp.linalg.svd, "gesdd"),
        (jnp.linalg.qr, "orgqr"),
        (jnp.linalg.det, "getrf"),
    ]:
        spu_runner.stablehlo(fn, np.eye(4, dtype=np.float32))
        assert routine in read(jax_compile(fn, signature).pfunc.attrs["code"])
