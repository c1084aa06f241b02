"""Functions of matrices, their inputs, and the errors of their results, relative to the matrix."""

from __future__ import annotations

import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import spu_runner


def made(rows, columns, condition, seed=0):
    """Return a matrix with singular values from 1 down to 1 / condition."""
    rng = np.random.default_rng(seed)
    u, v = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (rows, columns))
    k = min(rows, columns)
    return (u[:, :k] * np.geomspace(1, 1 / condition, k) @ v[:k]).astype(np.float32)


def symmetric(n, condition, seed=0, signs=False):
    q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    values = np.geomspace(1, 1 / condition, n)
    if signs:
        values = values * np.where(np.arange(n) % 2, -1, 1)
    whole = q * values @ q.T
    return ((whole + whole.T) / 2).astype(np.float32)


def size(*arrays):
    return float(np.linalg.norm(np.concatenate([np.ravel(array) for array in arrays])))


def relative(found, expected):
    return size(found - expected) / size(expected)


def orthonormal(q):
    return size(q.mT @ q - np.eye(q.shape[-1])) / q.shape[-1]


def of_eigh(found, a):
    values, vectors = found
    assert (np.diff(values) >= 0).all()
    expected = np.linalg.eigvalsh(a)
    return max(
        relative(values, expected),
        relative(vectors * values[..., None, :], a @ vectors),
        orthonormal(vectors),
    )


def of_svd(found, a):
    u, s, vt = found
    assert (np.diff(s) <= 0).all()
    assert (s >= 0).all()
    k = s.shape[-1]
    built = u[..., :k] * s[..., None, :] @ vt[..., :k, :]
    s_off = relative(s, np.linalg.svd(a, compute_uv=False))
    return max(relative(built, a), s_off, orthonormal(u), orthonormal(vt.mT))


def of_qr(found, a):
    q, r = found
    assert np.array_equal(r, np.triu(r))
    return max(relative(q @ r, a), orthonormal(q))


def of_lu(found, a):
    p, low, up = found
    assert np.array_equal(low, np.tril(low))
    assert np.abs(low).max() <= 1 + 1e-6
    return relative(p @ low @ up, a)


def of_solution(x, a, b):
    return size(a @ x - b) / (np.linalg.norm(a, 2) * size(x) + size(b))


SQUARE, TALL, POSITIVE = "square", "tall", "positive"

FUNCTIONS = {
    "inv": (jnp.linalg.inv, SQUARE, lambda x, a: size(a @ x - np.eye(len(a))) / size(a, x), 1e-4),
    "solve": (lambda a: jnp.linalg.solve(a, a[:, :2] + 1), SQUARE,
              lambda x, a: of_solution(x, a, a[:, :2] + 1), 1e-4),
    "cholesky": (jnp.linalg.cholesky, POSITIVE, lambda x, a: relative(x @ x.T, a), 1e-4),
    "cho_solve": (lambda a: jsl.cho_solve(jsl.cho_factor(a), a[0] + 1), POSITIVE,
                  lambda x, a: of_solution(x, a, a[0] + 1), 1e-4),
    "solve_triangular": (lambda a: jsl.solve_triangular(a, a[0] + 1, lower=True, trans=1), SQUARE,
                         lambda x, a: of_solution(x, np.tril(a).T, a[0] + 1), 1e-4),
    "lu": (jsl.lu, SQUARE, of_lu, 1e-4),
    "lu_solve": (lambda a: jsl.lu_solve(jsl.lu_factor(a), a[0] + 1, trans=1), SQUARE,
                 lambda x, a: of_solution(x, a.T, a[0] + 1), 1e-4),
    "slogdet": (jnp.linalg.slogdet, SQUARE,
                lambda x, a: relative(np.array(x), np.array(np.linalg.slogdet(a))), 1e-3),
    "qr": (jnp.linalg.qr, TALL, of_qr, 1e-3),
    "qr complete": (lambda a: jnp.linalg.qr(a, mode="complete"), TALL, of_qr, 1e-3),
    "eigh": (jnp.linalg.eigh, "signs", of_eigh, 1e-3),
    "eigvalsh": (jnp.linalg.eigvalsh, POSITIVE,
                 lambda x, a: relative(x, np.linalg.eigvalsh(a)), 1e-3),
    "svd": (jnp.linalg.svd, TALL, of_svd, 1e-3),
    "svd of wide": (lambda a: jnp.linalg.svd(a, full_matrices=False), "wide", of_svd, 1e-3),
    "lstsq": (lambda a: jnp.linalg.lstsq(a, a[:, 0] ** 2)[0], TALL,
              lambda x, a: size(a.T @ (a @ x - a[:, 0] ** 2)) / size(x), 1e-3),
    "pinv": (jnp.linalg.pinv, TALL, lambda x, a: relative(a @ x @ a, a), 1e-3),
    "matrix_power": (lambda a: jnp.linalg.matrix_power(a, -2), "good",
                     lambda x, a: relative(x, np.linalg.matrix_power(a, -2)), 1e-3),
    "det": (lambda a: jnp.linalg.det(2 * a), "good",
            lambda x, a: relative(x, np.linalg.det(2 * a)), 1e-3),
    "norm": (lambda a: jnp.stack([jnp.linalg.norm(a, 2), jnp.linalg.norm(a, "nuc")]), SQUARE,
             lambda x, a: relative(x, [np.linalg.norm(a, 2), np.linalg.norm(a, "nuc")]), 1e-3),
    "cond": (jnp.linalg.cond, SQUARE, lambda x, a: relative(x, np.linalg.cond(a)), 1e-3),
    "matrix_rank": (jnp.linalg.matrix_rank, SQUARE, lambda x, a: abs(x - len(a)), 0),
    "expm": (jsl.expm, SQUARE,
             lambda x, a: relative(x, spu_runner.float64_of(jsl.expm, a)), 1e-3),
}  # fmt: skip
INPUTS = {
    SQUARE: lambda n, c: made(n, n, c),
    TALL: lambda n, c: made(n + 5, n, c),
    "wide": lambda n, c: made(n, n + 3, c),
    POSITIVE: symmetric,
    "signs": lambda n, c: symmetric(n, c, signs=True),
    "good": lambda n, c: made(n, n, 3),
}
