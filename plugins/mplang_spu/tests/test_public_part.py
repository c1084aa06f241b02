"""What depends on public operands only is computed in plain: random draws, hashes, checksums."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mplang_core as mp

X = np.array([3, 1, 3, 2, 5, 5, 1, 5], np.float32)
KEY = np.asarray(jax.random.PRNGKey(5))

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
    "checksum": lambda x, k: x + ((k.sum() * jnp.uint32(2654435761)) >> 16),
}


def _turn(i, state):
    x, key = state
    drawn = jax.random.randint(jax.random.fold_in(key, i), (8,), 0, 9)
    return x + drawn, jax.random.split(key)[0]


def _dropout(x, key):
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x * 2, 0)


@pytest.fixture(scope="module", params=[3, 2], ids=["ABY3", "CHEETAH"])
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


def compiled(fn, *types, parties=3):
    kinds = [mp.MPType(kind, mp.Mask.of(0)) for kind in types]
    cluster = mp.ClusterSpec.simple(parties)
    return mp.compile(
        lambda x: mp.reveal(mp.device("SP0")(fn)(x, KEY), to="P0"), *kinds, cluster_spec=cluster
    )


def op_of(program):
    return next(op for op in program.program.graph.walk() if op.opcode == "spu.run_jax")


F32 = mp.TensorType("f32", (8,))


def test_an_ordinary_function_stays_as_it_is():
    assert "public" not in op_of(compiled(lambda x, k: jnp.arange(8) * 2 + x + k[0], F32)).attrs


def test_a_program_tells_what_members_compute_in_plain():
    attrs = op_of(compiled(lambda x, k: x + jax.random.randint(k, (8,), 0, 5), F32)).attrs
    assert attrs["public"]["takes"] == (1,)
    assert set(attrs["public"]) == {"takes", "program"}


def test_a_literal_draw_is_made_while_tracing():
    made = compiled(lambda x, k: x + jax.random.randint(jax.random.key(0), (8,), 0, 5), F32)
    assert "public" not in op_of(made).attrs
