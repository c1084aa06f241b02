"""Dishonest parties and handwritten programs, on workers with TLS.

See ``unharmed_engines`` for the postcondition of each test.
"""

from __future__ import annotations

import hostile_peer
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from log_reading import LogReader
from mplang_spu import ShareType, SpuConfig

import mplang_core as mp
from mplang_core.errors import PartyError

pytestmark = pytest.mark.usefixtures("unharmed_engines")

# -- shares


PROTOCOLS = {"SEMI2K": 2, "CHEETAH": 2, "ABY3": 3}


def with_corrupted_share(protocol: str, seed: int):
    """Return a program in which the last party sends party 0 a corrupted share."""
    members = mp.Mask.all(PROTOCOLS[protocol])
    config = SpuConfig(protocol=protocol, field="FM64", parties=tuple(members))
    plain = mp.TensorType("f32", (100,))
    share = ShareType.of(plain, config)
    last = len(members) - 1
    fe = mp.registry.get("spu.run_jax")(
        lambda x: jnp.concatenate([x, x])[-4:], mp.FeSignature((share,)), config=config
    )

    def program():
        x = mp.constant(np.linspace(-1, 1, 100, dtype=np.float32), parties=last)
        make = mp.PFunction("spu.make_shares", (plain,), (share,) * len(members), {"share": share})
        pieces = mp.peval(make, [x], rmask=mp.Mask.of(last))
        bend = mp.PFunction("evil.bend", (share,), (share,), {"seed": seed})
        (corrupted,) = mp.peval(bend, [pieces[0]], rmask=mp.Mask.of(last))
        sent = [mp.pshfl_s(corrupted, mp.Mask.of(0), [last])]
        sent += [mp.pshfl_s(piece, mp.Mask.of(i + 1), [last]) for i, piece in enumerate(pieces[1:])]
        return mp.peval(fe.pfunc, [mp.pconv(sent)], rmask=members)[0]

    return program


SENT = (
    r"party alice failed in simp\.shuffle_static at \S+: "
    r"party 0 cannot read what party \d sent; the reason"
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "count", [8, pytest.param(200, marks=pytest.mark.slow("200 runs, each with a broken share"))]
)
def test_a_share_that_is_none_of_its_type(tls_host, tls_logs, protocol, count):
    """The receiver rejects it before libspu reads it; its log tells what is wrong with it."""
    for seed in range(count):
        log = LogReader(tls_logs / "alice.log")
        with pytest.raises(PartyError, match=SENT):
            mp.evaluate(tls_host, with_corrupted_share(protocol, seed), mode="launch")
        log.wait_for(r"what came is not of type spu\.share<.*: it")


MIXES = [
    (("aby3.BShr<PT_U8,1>", 12), ("aby3.BShr<PT_U8,1>", 12), ("aby3.BShr<PT_U8,8>", 12)),
    (("aby3.BShr<PT_U64,1>", 96), ("aby3.BShr<PT_U8,1>", 12), ("aby3.BShr<PT_U8,8>", 12)),
    (("aby3.AShr<FM64>", 96), ("aby3.BShr<PT_U64,64>", 96), ("aby3.AShr<FM64>", 96)),
]


@pytest.mark.parametrize("mix", MIXES)
def test_shares_in_other_storages_at_each_party(tls_host, tls_logs, mix):
    """Each share matches its type, but libspu ends the process if storage types differ."""
    members = mp.Mask.all(3)
    config = SpuConfig(protocol="ABY3", field="FM64", parties=(0, 1, 2))
    plain = mp.TensorType("i32", (6,))
    share = ShareType.of(plain, config)
    fe = mp.registry.get("spu.run_jax")(jnp.sort, mp.FeSignature((share,)), config=config)

    def program():
        x = mp.constant(np.arange(6, dtype=np.int32), parties=2)
        make = mp.PFunction("spu.make_shares", (plain,), (share,) * 3, {"share": share})
        pieces = mp.peval(make, [x], rmask=mp.Mask.of(2))
        sent = []
        for rank, (storage, size) in enumerate(mix):
            attrs = {"storage": storage, "size": size}
            stored = mp.PFunction("evil.store", (share,), (share,), attrs)
            (piece,) = mp.peval(stored, [pieces[rank]], rmask=mp.Mask.of(2))
            sent.append(mp.pshfl_s(piece, mp.Mask.of(rank), [2]))
        return mp.peval(fe.pfunc, [mp.pconv(sent)], rmask=members)[0]

    log = LogReader(*sorted(tls_logs.glob("*.log")))
    with pytest.raises(PartyError, match=r"failed in spu\.run_jax at \S+: the reason"):
        mp.evaluate(tls_host, program, mode="launch")
    log.wait_for(r"members of this SPU do not fit together(.|\n)*storages")


# -- shuffles by an index


def test_a_party_without_the_index_asks_in_vain(tls_host):
    """P1 holds the index. P2 requests the value from P0, too: it gets nothing, P1 gets its own."""
    with mp.with_ctx(tls_host):
        private = mp.put("P0", np.float64([98.6, 1.5]))
        index = mp.put("P1", np.int64(0))

    def program(private, index):
        mine = mp.constant(np.float64([-1, -1]), parties=2)
        asked = mp.simp.pcall_static((2,), hostile_peer.ask, mine)
        moved = mp.pshfl(private, index)
        taken = mp.simp.pcall_static((2,), hostile_peer.take, asked)
        return (
            moved,
            taken,
            mp.pshfl_s(taken, mp.Mask.of(0), [2]),
        )  # so that P0 does not end earlier

    moved, taken, _ = mp.evaluate(tls_host, program, private, index, mode="launch")
    np.testing.assert_array_equal(mp.fetch(tls_host, taken)[2], [-1, -1])
    np.testing.assert_array_equal(mp.fetch(tls_host, moved)[1], [98.6, 1.5])


def test_who_may_ask_is_known_to_all_where_the_index_is(tls_host):
    """With an index whose holders are known at run time only, all parties send requests."""

    def program(values):
        rank = mp.constant(np.int64(1), parties=[0, 2])
        flag = mp.simp.pcall_static((0, 1, 2), lambda x: x > 0, values)
        index = mp.uniform_cond(flag, lambda i: i, lambda i: i, rank)
        return mp.pshfl(values, index)

    found = mp.fetch(tls_host, mp.evaluate(tls_host, program, np.float64(5), mode="launch"))
    assert [None if x is None else float(x) for x in found] == [5.0, None, 5.0]


# -- code of JAX that libspu cannot compile


def test_the_gradient_of_a_checkpoint_on_spu(tls_host):
    """JAX emits an optimization barrier, at which libspu's compiler ended the process."""
    x = np.float32([0.5, -1.0, 2.0])

    def gradient(x):
        return jax.grad(lambda v: jax.checkpoint(lambda u: (u * u * u).sum())(v))(x)

    def program():
        return mp.reveal(mp.device("SP0")(gradient)(mp.put("P0", x)))

    for found in mp.fetch(tls_host, mp.evaluate(tls_host, program)):
        np.testing.assert_allclose(found, 3 * x * x, atol=1e-2)


@pytest.mark.parametrize("at", [-3, 0, 1, 2, 3, 99])
def test_a_switch_by_a_public_index_on_spu(tls_host, at):
    """libspu's compiler ended the process at three branches or more."""
    x = np.float32([0.5, -1.0, 2.0])

    def choose(x, index):
        return jax.lax.switch(
            index, [lambda v: v, lambda v: v + 1, lambda v: v * 2, lambda v: -v], x
        )

    def program(index):
        return mp.reveal(mp.device("SP0")(choose)(mp.put("P0", x), index))

    expected = [x, x + 1, x * 2, -x][min(max(at, 0), 3)]
    for found in mp.fetch(tls_host, mp.evaluate(tls_host, program, np.int32(at))):
        np.testing.assert_allclose(found, expected, atol=1e-3)
