"""What nobody can compare is tried before a run: on data that were put, and on usual numbers."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
import pytest
from mplang_analysis import precision_losses
from mplang_spu.reference_check.tolerance import compare

import mplang_core as mp
from mplang_core.errors import PrecisionWarning

STEP = 2.0**-40
THREE = mp.ClusterSpec.simple(3)
F32 = mp.TensorType("f32", (20,))
I32 = mp.TensorType("i32", (20,))
SCALAR = mp.TensorType("f32")
TABLE = mp.TensorType("f32", (20, 3))


def losses(fn, *kinds):
    """Return what is told of a function of data of which nothing is known."""

    def program(*args):
        return mp.reveal(mp.device("SP0")(fn)(*map(mp.seal, args)), to="P0")

    return losses_of(program, *kinds)


def losses_of(program, *kinds):
    args = [mp.MPType(kind, mp.Mask.of(i % 2)) for i, kind in enumerate(kinds)]
    return precision_losses(mp.compile(program, *args, cluster_spec=THREE).program, {})


UNDEFINED = {
    "reciprocal": (lambda x: 1 / x, F32),
    "of integers": (lambda x: 1 / x, I32),
    "quotient": (lambda x, y: x / y, F32, F32),
    "of scalars": (lambda x, y: x / y, SCALAR, SCALAR),
    "of a difference": (lambda x, y: 1 / (x - y), F32, F32),
    "by a shifted number": (lambda x: 1 / (x - 2), F32),
    "remainder": (lambda x, y: x % y, F32, F32),
    "log": (jnp.log, F32),
    "log1p": (jnp.log1p, F32),
    "divergence": (lambda x, y: (x * jnp.log(x / y)).sum(), F32, F32),
    "logit": (jsp.special.logit, F32),
    "sqrt": (jnp.sqrt, F32),
    "rsqrt": (jax.lax.rsqrt, F32),
    "root": (lambda x: x**0.5, F32),
    "power": (lambda x, y: x**y, F32, F32),
    "arcsin": (jnp.arcsin, F32),
    "arccosh": (jnp.arccosh, F32),
    "arctanh": (jnp.arctanh, F32),
    "gammaln": (jsp.special.gammaln, F32),
    "spread of one": (lambda x: (x - x.mean()) / x.std(), SCALAR),
    "mean of none": (lambda x, y: jnp.where(y == 50, x, 0).sum() / (y == 50).sum(), F32, I32),
}


def some(names, *quick):
    """Return all names, those that are not quick for the long tests."""
    return [
        name if name in quick else pytest.param(name, marks=pytest.mark.long("30 programs on XLA"))
        for name in names
    ]


@pytest.mark.parametrize("name", some(UNDEFINED, "reciprocal", "of scalars", "remainder", "log"))
def test_what_may_be_no_number_is_told_with_line_and_remedy(name):
    (loss,) = losses(*UNDEFINED[name])
    assert str(loss.line).startswith("test_losses_of_data.py:")
    assert "SPU has neither NaN nor infinity" in loss.text
    assert "as no range is declared" in loss.text
    assert "jnp.where" in loss.text
    assert "mp.seal(x, range=" in loss.text


def test_each_line_is_told_once():
    def several(x, y):
        first = 1 / x + 1 / y
        return first + jnp.log(x), jnp.sqrt(y)

    found = losses(several, F32, F32)
    assert len({loss.line for loss in found}) == len(found) == 2


def regression(x, y):
    w = jnp.zeros(3)
    for _ in range(3):
        w = w - 0.1 * x.T @ (jax.nn.sigmoid(x @ w) - y) / 20
    return w


QUIET = {
    "standardized": (lambda x: (x - x.mean()) / x.std(), F32),
    "scaled": (lambda x: (x - x.min()) / (x.max() - x.min()), F32),
    "of length 1": (lambda x: x / jnp.linalg.norm(x), F32),
    "softmax": (jax.nn.softmax, F32),
    "regression": (regression, TABLE, F32),
    "correlation": (jnp.corrcoef, F32, F32),
    "weighted": (lambda x, y: (x * y).sum() / y.sum(), F32, F32),
    "t": (lambda x, y: (x.mean() - y.mean()) / jnp.sqrt(x.var() + y.var()), F32, F32),
    "layer": (lambda x: (x - x.mean(1)[:, None]) / jnp.sqrt(x.var(1) + 1e-5)[:, None], TABLE),
    "chosen": (lambda x: jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), 0), F32),
    "chosen after": (lambda x: jnp.where(x > 0, jnp.log(x), 0), F32),
    "clipped": (lambda x: jnp.log(jnp.clip(x, 1e-3)), F32),
    "never 0": (lambda x, y: x / (jnp.abs(y) + 1e-6), F32, F32),
    "large": (lambda x: jnp.exp(x) + x**5, F32),
    "median": (jnp.median, F32),
}


@pytest.mark.parametrize("name", some(QUIET, "standardized", "softmax", "regression", "chosen"))
def test_ordinary_programs_raise_no_alarm(name):
    assert losses(*QUIET[name]) == []


KEY = np.uint32([0, 7])
DRAWN = {
    "told": lambda x, k: jnp.log(x) + jax.random.uniform(k, (20,)),
    "of a draw": lambda x, k: x / jax.random.randint(k, (20,), 0, 2),
    "dropout": lambda x, k: jnp.where(jax.random.bernoulli(k, 0.3, (20,)), x / 0.7, 0),
    "noise": lambda x, k: x + jax.random.normal(k, (20,)),
    "shuffled": lambda x, k: x[jax.random.permutation(k, 20)],
    "by a draw": lambda x, k: x / (1 + jax.random.uniform(k, (20,))),
}


@pytest.mark.parametrize("name", some(DRAWN, "told", "noise"))
def test_functions_that_draw_are_tried_with_what_they_draw(name):
    def program(x):
        key = mp.constant(KEY)
        return mp.reveal(mp.device("SP0")(DRAWN[name])(mp.seal(x), key), to="P0")

    found = losses_of(program, F32)
    assert len(found) == (name in ("told", "of a draw"))
    for loss in found:
        assert str(loss.line).startswith("test_losses_of_data.py:")
        assert "infinity" in loss.text


def test_what_was_computed_before_is_followed():
    def standardized(x):
        x = mp.seal(x)
        mean, std = mp.device("SP0")(lambda x: (x.mean(), x.std()))(x)
        return mp.reveal(mp.device("SP0")(lambda x, m, s: (x - m) / s)(x, mean, std), to="P0")

    def inverse(x, y):
        difference = mp.device("SP0")(lambda x, y: x - y)(mp.seal(x), mp.seal(y))
        return mp.reveal(mp.device("SP0")(lambda d: 1 / d)(difference), to="P0")

    assert losses_of(standardized, F32) == []
    assert len(losses_of(inverse, F32, F32)) == 1


def test_a_declared_range_that_leaves_it_out_is_the_remedy():
    def program(x):
        return mp.reveal(mp.device("SP0")(jnp.log)(mp.seal(x, range=(0.1, 5))), to="P0")

    assert losses_of(program, F32) == []


# -- on workers

PUT = {
    "small": np.float32([1e-13, 1, 2, 3, 1, 1, 1, 1]),
    "ordinary": np.float32([-3, -2.5, -1, 0.3, 0.7, 1, 2, 3]),
    "positive": np.float32([0.5, 2.5, 1, 0.3, 0.7, 1.5, 2, 3]),
    "ties": np.float32([0, 1, 1, 0, 2, 2, 0, 1]),
    "edges": np.float32([-0.0, 1e-45, -300.7, 0.0, 2.0**31, -(2.0**-30), 1e7, -(2.0**33)]),
}
FUNCTIONS = {
    "square": jnp.square,
    "reciprocal": lambda x: 1 / x,
    "log": jnp.log,
    "arcsin": jnp.arcsin,
    "exp": jnp.exp,
    "gammaln": jsp.special.gammaln,
    "variance": jnp.nanvar,
    "standardized": lambda x: (x - x.mean()) / x.std(),
    "chosen": lambda x: jnp.where(x > 0, jnp.log(x), 0.0),
    "sigmoid": jax.nn.sigmoid,
    "cast": lambda x: x.astype("uint8"),
    "sum": jnp.sum,
}


@pytest.fixture(scope="module")
def workers():
    http = pytest.importorskip("mplang_http")
    with http.LocalCluster(3) as cluster, mp.connect("http", cluster.spec) as host:
        yield host


def run(host, compiled, x):
    """Return the result, and the lines of the warnings."""
    with mp.with_ctx(host):
        given = mp.put("P0", x)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrecisionWarning)
        found = mp.fetch(host, mp.evaluate(host, compiled, given))
    return np.asarray(found), [each.filename for each in told]


@pytest.mark.parametrize("name", some(FUNCTIONS, "square", "log"))
def test_workers_give_jax_s_number_or_it_is_told_for_each_of_the_data(workers, name):
    """Nothing was told of squares of 2^33 and logarithms of 0."""
    fn = FUNCTIONS[name]

    def program(x):
        return mp.reveal(mp.device("SP0")(fn)(mp.seal(x)), to="P0")

    compiled = mp.compile(program, cluster_spec=workers.cluster_spec)
    for kind, x in PUT.items():
        found, told = run(workers, compiled, x)
        with jax.enable_x64(True):  # a number below the smallest step is 0
            wide = np.asarray(jax.jit(fn)(np.where(abs(x) < STEP, 0, x.astype(np.float64))))
        off = not np.isfinite(wide).all() or compare(found, wide, STEP).is_wrong
        assert bool(told) == off, (kind, found, wide)
        assert all(file == __file__ or "jax" in file for file in told)
