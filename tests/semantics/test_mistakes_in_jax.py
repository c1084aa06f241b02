"""What users of JAX and NumPy type by mistake in a function of arrays; each remedy runs.

The mistakes are those that people report of JAX: control flow and shapes that depend on data,
elements that are set, NumPy, math and prints in a traced function, methods of pandas.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import TraceError

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

pytestmark = pytest.mark.needs("jax")

X = np.float32([3, 1, 2])
LINE = r"test_mistakes_in_jax\.py:\d+: "


def sets_an_element(x):
    x[0] = 9
    return x


def loops_until(x):
    while x.sum() > 1:
        x = x / 2
    return x


def counts_to(x):
    for i in range(x.argmax() + 2):
        x = x + i
    return x


def prints(x):
    print(f"{x.sum():.2f}")
    return x


def debugs(x):
    jax.debug.print("x is {}", x)
    return x


def appends(x):
    return x.append(4)


def key():
    return jax.random.key(0)


MISTAKES = {
    "if": (
        lambda x: x if x.sum() > 0 else -x,
        "instead of `if` use jnp.where or jax.lax.cond",
        lambda x: jnp.where(x.sum() > 0, x, -x),
        X,
    ),
    "if of elements": (
        lambda x: x if x > 0 else -x,
        "use jnp.where, which chooses for each element",
        lambda x: jnp.where(x > 0, x, -x),
        X,
    ),
    "and": (
        lambda x: (x > 0) and (x < 3),
        "instead of `and`, `or`, `not` use &, |, ~",
        lambda x: (x > 0) & (x < 3),
        [False, True, True],
    ),
    "not": (
        lambda x: not x.all(),
        "instead of `and`, `or`, `not` use &, |, ~",
        lambda x: ~x.all(),
        False,
    ),
    "while": (
        loops_until,
        "instead of `while` use jax.lax.fori_loop with a fixed number of turns",
        lambda x: jax.lax.fori_loop(0, 3, lambda i, x: x / 2, x),
        X / 8,
    ),
    "range": (
        counts_to,
        "jax.lax.fori_loop(0, n, lambda i, x: x + i, x)",
        lambda x: jax.lax.fori_loop(0, x.argmax() + 2, lambda i, x: x + i, x),
        X + 1,
    ),
    "max of Python": (lambda x: max(x), "jnp.maximum(a, b)", lambda x: x.max(), 3),
    "item assignment": (
        sets_an_element,
        "x = x.at[idx].set(y)",
        lambda x: x.at[0].set(9),
        [9, 1, 2],
    ),
    "boolean mask": (
        lambda x: x[x > 1].sum(),
        "keep all elements",
        lambda x: jnp.where(x > 1, x, 0).sum(),
        5,
    ),
    "nonzero": (
        lambda x: jnp.nonzero(x > 1)[0],
        "size=3 and fill_value=0",
        lambda x: jnp.nonzero(x > 1, size=3, fill_value=0)[0],
        [0, 2, 0],
    ),
    "unique": (
        lambda x: jnp.unique(x),
        "size=3 and fill_value=0",
        lambda x: jnp.unique(x, size=3, fill_value=0),
        [1, 2, 3],
    ),
    "shape of data": (
        lambda x: jnp.zeros(x.argmax() + 2),
        "use a Python number",
        lambda x, n=2: jnp.zeros(n),
        [0, 0],
    ),
    "slice of data": (
        lambda x: x[: x.argmax() + 2].sum(),
        "jnp.where(jnp.arange(x.size) < n, x, 0)",
        lambda x: jnp.where(jnp.arange(x.size) < x.argmax() + 2, x, 0).sum(),
        4,
    ),
    "repeat": (
        lambda x: jnp.repeat(x, x.astype(int)),
        "total_repeat_length=",
        lambda x: jnp.repeat(x, x.astype(int), total_repeat_length=6),
        [3, 3, 3, 1, 2, 2],
    ),
    "a list at a computed place": (
        lambda x: [7, 8, 9][x.argmax()],
        "jnp.asarray([1, 2, 3])[i]",
        lambda x: jnp.asarray([7, 8, 9])[x.argmax()],
        7,
    ),
    "np": (lambda x: np.sqrt(x * x), "use jnp instead of np", lambda x: jnp.sqrt(x * x), X),
    "math": (
        lambda x: math.exp(x.min() - 1),
        "use jnp instead of math",
        lambda x: jnp.exp(x.min() - 1),
        1,
    ),
    "item": (lambda x: x.sum().item(), "compute with the array itself", lambda x: x.sum(), 6),
    "int": (lambda x: int(x.sum()), "as x.astype(int)", lambda x: x.sum().astype(int), 6),
    "a format": (prints, "mp.fetch(host, result)", lambda x: x.sum(), 6),
    "jax.debug.print": (debugs, "return from the function what you want to see", lambda x: x, X),
    "no key": (
        lambda x: jax.random.uniform((3,)),
        "jax.random.key(0)",
        lambda x: jax.random.uniform(key(), (3,)) < 1,
        [True] * 3,
    ),
    "gradient of integers": (
        lambda x: jax.grad(lambda w: (w * w).sum())(x.astype(int)),
        "x.astype(jnp.float32)",
        lambda x: jax.grad(lambda w: (w * w).sum())(x.astype(int).astype(jnp.float32)),
        2 * X,
    ),
    "gradient of an array": (
        lambda x: jax.grad(lambda w: w * w)(x),
        "as by .sum(), or use jax.jacobian",
        lambda x: jax.grad(lambda w: (w * w).sum())(x),
        2 * X,
    ),
    "branches of two shapes": (
        lambda x: jax.lax.cond(x.sum() > 0, lambda x: x, lambda x: x.sum(), x),
        "true_fun has type float32[3] but the corresponding output of false_fun has type float32[]",
        lambda x: jax.lax.cond(x.sum() > 0, lambda x: x.max(), lambda x: x.sum(), x),
        3,
    ),
    "a carry of two shapes": (
        lambda x: jax.lax.scan(lambda c, e: (c.sum(), e), x, x)[0],
        "carry c has type float32[3] but the corresponding output",
        lambda x: jax.lax.scan(lambda c, e: (c + e, e), x, x)[0],
        X + 6,
    ),
    "a list of arrays": (
        lambda x: jnp.sum([x, x]),
        "jnp.stack([x, y])",
        lambda x: jnp.sum(jnp.stack([x, x])),
        12,
    ),
    "concatenate without a list": (
        lambda x: jnp.concatenate(x, x),
        "jnp.concatenate([x, y])",
        lambda x: jnp.concatenate([x, x]),
        [*X, *X],
    ),
    "a method of lists": (appends, "jnp.append(x)", lambda x: jnp.append(x, 4), [3, 1, 2, 4]),
    "a method of pandas": (
        lambda x: x.fillna(0),
        "jnp.nan_to_num(x)",
        lambda x: jnp.nan_to_num(x),
        X,
    ),
    "a misspelt method": (lambda x: x.meen(), "did you mean 'mean'?", lambda x: x.mean(), 2),
    "a string": (
        lambda x: x.astype("str"),
        "strings and dates are columns of tables",
        lambda x: x.astype("i4"),
        [3, 1, 2],
    ),
}


@pytest.fixture(scope="module")
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(2)) as made:
        yield made


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_and_its_remedy(sim, name):
    wrong, told, repaired, expected = MISTAKES[name]
    with mp.with_ctx(sim):
        x = mp.put("P0", X)
        with pytest.raises(TraceError, match=LINE + ".*" + re.escape(told)):
            mp.device("P0")(wrong)(x)
        found = mp.device("P0")(repaired)(x)
    np.testing.assert_allclose(mp.fetch(sim, found), expected)


@pytest.mark.needs("spu")
@pytest.mark.parametrize("name", ["if", "and", "boolean mask", "np", "item", "a method of lists"])
def test_a_mistake_on_secrets(sim, name):
    wrong, told, repaired, expected = MISTAKES[name]
    with mp.with_ctx(sim):
        x = mp.seal(mp.put("P0", X))
        with pytest.raises(TraceError, match=LINE + ".*" + re.escape(told)):
            mp.device("SP0")(wrong)(x)
        found = mp.reveal(mp.device("SP0")(repaired)(x), to="P1")
    np.testing.assert_allclose(mp.fetch(sim, found), expected, atol=1e-3)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda x: mp.put(0, X),
        lambda x: mp.put(X, "P0"),
        lambda x: mp.seal(x, to=0),
        lambda x: mp.reveal(x, to=1),
    ],
)
def test_a_device_that_is_no_name(sim, mistake):
    with mp.with_ctx(sim), pytest.raises(TraceError, match=LINE + r"name a device, as .*; got"):
        mistake(mp.put("P0", X))


def test_a_value_in_place_of_a_function(sim):
    with mp.with_ctx(sim):
        x = mp.put("P0", X)
        with pytest.raises(TraceError, match=LINE + r".*mp\.device\('P0'\)\(fn\)\(x\), got <f32"):
            mp.device("P0")(x)
        np.testing.assert_allclose(mp.fetch(sim, mp.device("P0")(jnp.sum)(x)), 6)
