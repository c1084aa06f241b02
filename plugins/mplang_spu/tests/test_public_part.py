"""What depends on public operands only is computed in plain: random draws, hashes, checksums."""

from __future__ import annotations

import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_spu.ops import RUN_JAX

import mplang_core as mp

X = np.array([3, 1, 3, 2, 5, 5, 1, 5], np.float32)
KEY = np.asarray(jax.random.PRNGKey(5))
F32 = mp.TensorType("f32", (8,))

LITERAL = {
    "randint": lambda x, k: x + jax.random.randint(jax.random.key(0), (8,), 0, 5),
    "bits": lambda x, k: jax.random.bits(jax.random.key(0), (8,)) + x.astype("uint32"),
    "choice": lambda x, k: jax.random.choice(jax.random.PRNGKey(3), x, (4,), replace=False),
    "permutation": lambda x, k: jax.random.permutation(jax.random.key(1), x),
    "order": lambda x, k: x[jax.random.permutation(jax.random.key(1), 8)],
    "normal": lambda x, k: x * jax.random.normal(jax.random.key(1), (8,)),
    "hash": lambda x, k: x + ((jnp.arange(8, dtype=jnp.uint32) * jnp.uint32(2654435761)) >> 16),
    "small": lambda x, k: x + (jnp.arange(8, dtype=jnp.int8) * jnp.int8(50) // 3),
}
KEYED = {
    "randint": lambda x, k: x + jax.random.randint(k, (8,), 0, 5),
    "bits": lambda x, k: jax.random.bits(k, (8,)) + x.astype("uint32"),
    "choice": lambda x, k: jax.random.choice(k, x, (4,), replace=False),
    "permutation": lambda x, k: jax.random.permutation(k, x),
    "split": lambda x, k: x + jax.random.randint(jax.random.split(k, 3)[1], (8,), 0, 99),
    "uniform": lambda x, k: x * jax.random.uniform(k, (8,), minval=-3, maxval=3),
    "scan": lambda x, k: jax.lax.scan(
        lambda c, s: (c + jax.random.randint(s, (8,), 0, 9), c.sum()), x, jax.random.split(k, 3)
    ),
    "fori": lambda x, k: jax.lax.fori_loop(0, 3, _turn, (x, k))[0],
    "vmap": lambda x, k: jax.vmap(lambda a, s: a + jax.random.randint(s, (), 0, 9))(
        x, jax.random.split(k, 8)
    ),
    "jit": jax.jit(lambda x, k: x + jax.random.randint(k, (8,), 0, 9)),
    "checkpoint": lambda x, k: jax.checkpoint(lambda x: x + jax.random.randint(k, (8,), 0, 9))(x),
    "dropout": lambda x, k: _dropout(x, k),
    "gradient": lambda x, k: jax.grad(lambda x: (_dropout(x, k) ** 2).sum())(x),
    "training": lambda x, k: _trained(x, k),
    "rarely": lambda x, k: jnp.where(jax.random.bernoulli(k, 0.3, (8,)), x / 0.7, 0),
    "loop": lambda x, k: jax.lax.while_loop(lambda s: s[2] < 3, _step, (x, k, 0))[0],
    "branch": lambda x, k: jax.lax.cond(x[0] > 1, lambda: x + jax.random.bits(k, (8,)), lambda: x),
    "checksum": lambda x, k: x + ((k.sum() * jnp.uint32(2654435761)) >> 16),
}


def _turn(i, state):
    x, key = state
    drawn = jax.random.randint(jax.random.fold_in(key, i), (8,), 0, 9)
    return x + drawn, jax.random.split(key)[0]


def _step(state):
    x, key, turn = state
    return x + jax.random.randint(key, (8,), 0, 9), jax.random.split(key)[0], turn + 1


def _trained(x, key):
    def step(i, state):
        w, key = state
        key, order, kept = jax.random.split(key, 3)
        batch = x.reshape(8, 1)[jax.random.permutation(order, 8)[:4]]

        def loss(w):
            hidden = jax.nn.relu(batch @ w)
            return (jnp.where(jax.random.bernoulli(kept, 0.5, hidden.shape), hidden * 2, 0)).mean()

        return w - 0.01 * jax.grad(jax.checkpoint(loss))(w), key

    return jax.lax.fori_loop(0, 3, step, (jnp.ones((1, 3)) * 0.5, key))[0]


def _dropout(x, key):
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x * 2, 0)


CHEETAH = pytest.param(2, id="CHEETAH", marks=pytest.mark.long("22 functions on CHEETAH"))


@pytest.fixture(scope="module", params=[pytest.param(3, id="ABY3"), CHEETAH])
def sim(request):
    with mp.Simulator(mp.ClusterSpec.simple(request.param)) as made:
        yield made


def on_spu(host, fn, x=X, key=KEY):
    """Return the result of a function of a secret and of a public key."""
    with mp.with_ctx(host):
        secret = mp.put("P0", x)

    def program(secret):
        return mp.reveal(mp.device("SP0")(fn)(mp.seal(secret, to="SP0"), key), to="P0")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return mp.fetch(host, mp.evaluate(host, program, secret))


@pytest.mark.parametrize("draws", [LITERAL, KEYED], ids=["a literal key", "a public key"])
def test_what_is_drawn_is_what_jax_draws(sim, draws):
    def fn(x, k):
        return {name: draw(x, k) for name, draw in draws.items()}

    found, wanted = on_spu(sim, fn), jax.jit(fn)(X, KEY)
    for name in draws:
        for mine, exact in zip(*map(jax.tree.leaves, (found[name], wanted[name])), strict=True):
            assert mine.dtype == exact.dtype, name
            np.testing.assert_allclose(mine, exact, atol=1e-3, err_msg=name)


def test_parties_draw_what_jax_draws(sim):
    """Also numbers of 32 bits beside a Python float that has no such value."""
    draws = {
        "rarely": lambda x, k: jax.random.bernoulli(k, 0.3, (8,)),
        "small": lambda x, k: x + 0.1 * jax.random.normal(jax.random.key(0), (8,)),
    }

    def program():
        x, key = mp.put("P0", X), mp.put("P0", KEY)
        return [mp.device("P0")(draw)(x, key) for draw in draws.values()]

    found = mp.fetch(sim, mp.evaluate(sim, program))
    for mine, draw in zip(found, draws.values(), strict=True):
        np.testing.assert_allclose(mine, jax.jit(draw)(X, KEY), rtol=1e-6)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, k: (
            jax.lax.while_loop(
                lambda s: s[1] < 3,
                lambda s: (s[0] + jax.random.uniform(k) * s[1], s[1] + 1),
                (x, 0),
            )[0]
            + jax.random.gamma(k, 2.0)
        ),
        lambda x, k: jax.lax.cond(x[0] > 1, lambda: x + jax.random.uniform(k), lambda: x),
        lambda x, k: x + jax.random.gamma(k, 2.0),
    ],
)
def test_bits_of_floats_that_cannot_be_taken_out_are_refused_with_the_line(fn):
    with pytest.raises(mp.errors.TraceError, match="bitcast_convert of floats") as error:
        compiled(fn, F32)
    assert "test_public_part.py:" in str(error.value)


def compiled(fn, *types, parties=3):
    kinds = [mp.MPType(kind, mp.Mask.of(0)) for kind in types]
    cluster = mp.ClusterSpec.simple(parties)
    return mp.compile(
        lambda x: mp.reveal(mp.device("SP0")(fn)(x, KEY), to="P0"), *kinds, cluster_spec=cluster
    )


def op_of(program):
    return next(op for op in program.program.graph.walk() if op.opcode == "spu.run_jax")


def test_an_ordinary_function_stays_as_it_is():
    assert "public" not in op_of(compiled(lambda x, k: jnp.arange(8) * 2 + x + k[0], F32)).attrs


def test_a_program_tells_what_members_compute_in_plain():
    attrs = op_of(compiled(lambda x, k: x + jax.random.randint(k, (8,), 0, 5), F32)).attrs
    assert attrs["public"]["takes"] == (1,)
    assert set(attrs["public"]) == {"takes", "program"}


@pytest.mark.parametrize(
    ("public", "message"),
    [
        ({"takes": (0,)}, "takes operand 0, which is spu.share"),
        ({"takes": (7,)}, "takes operand 7 of 2"),
        ({"program": 3}, "has a program of jax.run"),
        ({"program": {}}, "missing"),
    ],
)
def test_a_public_part_takes_what_is_public(public, message):
    op = op_of(compiled(lambda x, k: x + jax.random.randint(k, (8,), 0, 5), F32))
    attrs = {**op.attrs, "public": {**op.attrs["public"], **public}}
    with pytest.raises(TypeError, match=message):
        RUN_JAX.infer(replace(op, attrs=attrs), mp.Mask.of(0))


@pytest.mark.long("workers of two parties")
def test_workers_draw_what_jax_draws():
    from mplang_http import LocalCluster

    with LocalCluster(2) as workers, mp.connect("http", workers.spec) as host:
        for draw in (KEYED["randint"], KEYED["dropout"], LITERAL["normal"]):
            np.testing.assert_allclose(on_spu(host, draw), jax.jit(draw)(X, KEY), atol=1e-3)


def test_a_literal_draw_is_made_while_tracing():
    made = compiled(lambda x, k: x + jax.random.randint(jax.random.key(0), (8,), 0, 5), F32)
    assert "public" not in op_of(made).attrs
