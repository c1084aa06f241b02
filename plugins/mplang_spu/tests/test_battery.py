"""Battery of data-science functions, over numbers of rows, sizes of values, and protocols."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import spu_runner

import mplang_core as mp
from mplang_core.errors import PrecisionWarning


def histogram(x, y, size):
    return jnp.histogram(x, bins=5, range=(0, size))[0]


def softmax(x, y, size):
    return jax.nn.softmax(x / x.max())


def regression_step(x, y, size):
    rows, label = (x / x.max()).reshape(-1, 2), (y > y.mean())[: len(x) // 2]
    error = jax.nn.sigmoid(rows @ jnp.array([0.3, -0.2], x.dtype)) - label
    return 0.1 * rows.T @ error / len(rows)


def means_step(x, y, size):
    """One iteration of k-means: three centers, each the mean of its nearest points."""
    centres = jnp.array([0.2, 0.5, 0.8], x.dtype) * size
    near = jax.nn.one_hot(jnp.argmin(jnp.abs(x[:, None] - centres), axis=1), 3, dtype=x.dtype)
    return (near * x[:, None]).sum(0) / jnp.maximum(near.sum(0), 1)


def ridge(x, y, size):
    """Ridge regression on two columns, by Gauss-Jordan elimination."""
    rows = jnp.stack([x / x.max(), y / y.max()], axis=1)
    system = jnp.column_stack(
        [rows.T @ rows / len(x) + 0.1 * jnp.eye(2), rows.T @ rows[:, 0] / len(x)]
    )
    for i in range(2):
        pivot = system[i] / system[i, i]
        system = (system - jnp.outer(system[:, i], pivot)).at[i].set(pivot)
    return system[:, -1]


BATTERY = {
    "mean": lambda x, y, size: x.mean(),
    "var": lambda x, y, size: x.var(),
    "std": lambda x, y, size: x.std(),
    "median": lambda x, y, size: jnp.median(x),
    "percentile": lambda x, y, size: jnp.percentile(x, 90),
    "histogram": histogram,
    "corrcoef": lambda x, y, size: jnp.corrcoef(x, y)[0, 1:],
    "norm": lambda x, y, size: jnp.linalg.norm(x),
    "product of means": lambda x, y, size: x.mean() * y.mean(),
    "ratio of means": lambda x, y, size: x.mean() / y.mean(),
    "softmax": softmax,
    "step of logistic regression": regression_step,
    "step of k-means": means_step,
    "ridge": ridge,
}
LARGE_PRODUCTS = {"corrcoef", "norm"}  # sums of squares that are not cut off one by one
SIZES = [1e-3, 1.0, 1e3, 1e7]
EXTREMES = (1e-3, 1e7)
ROWS = [100, 1_000, 10_000, 100_000, 1_000_000]
CASES = [
    pytest.param(
        name,
        rows,
        size,
        marks=[pytest.mark.slow(f"14 statistics of {rows:,} rows on SPU")]
        * (rows > 100 or size != EXTREMES[i % 2])
        + [pytest.mark.million] * (rows == 1_000_000),
    )
    for rows in ROWS
    for size in SIZES
    for i, name in enumerate(BATTERY)
]
PROTOCOLS = [
    "ABY3",
    *(
        pytest.param(p, marks=pytest.mark.slow("14 statistics of 20 inputs, again"))
        for p in ("SEMI2K", "CHEETAH")
    ),
]


@pytest.fixture(scope="module")
def simulators():
    made = {}

    def make(protocol):
        if protocol not in made:
            members = spu_runner.MEMBERS[protocol]
            devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(members)}
            config = {"protocol": protocol}
            devices["SP0"] = {"kind": "SPU", "members": list(range(members)), "config": config}
            spec = {"nodes": [{} for _ in range(members)], "devices": devices}
            made[protocol] = mp.Simulator(mp.ClusterSpec.from_dict(spec), timeout=600)
        return made[protocol]

    yield make
    for sim in made.values():
        sim.close()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("name", "rows", "size"), CASES)
def test_a_statistic_is_right_for_small_and_large_values(simulators, name, rows, size, protocol):
    rng = np.random.default_rng(rows)
    x, y = rng.uniform(0.05, 1, (2, rows)) * size
    x, y = x.astype(np.float32), ((x + y) / 2).astype(np.float32)  # correlated

    def fn(x, y):
        return BATTERY[name](x, y, size)

    def program():
        return mp.reveal(mp.device("SP0")(fn)(mp.put("P0", x), mp.put("P1", y)), to="P0")

    sim = simulators(protocol)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        found = mp.fetch(sim, mp.evaluate(sim, program))
    told = [str(each.message) for each in shown if each.category is PrecisionWarning]
    if not told:
        assert spu_runner.off(found, spu_runner.float64_of(fn, x, y)) < 1e-3
    assert not told or (name in LARGE_PRODUCTS and size == 1e7), told
