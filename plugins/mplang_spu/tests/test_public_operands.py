"""What is public to an SPU is the same at all members, or the run ends."""

from __future__ import annotations

import numpy as np
import pytest
import spu_links
from mplang_spu import SpuConfig, run_jax
from mplang_spu.config import resolve_config
from mplang_spu.public import digest_of

import mplang_core as mp
from mplang_core.edsl.peval import peval
from mplang_core.errors import PartyError

X, ONE = np.float32([1, 2, 3]), np.float32(1)
ULP = np.nextafter(ONE, np.float32(2))


def program(*public, members, protocol):
    """Return a program that multiplies a secret by what is public, as no device does it."""

    def run():
        parties = mp.Mask.from_ranks(range(members))
        config = resolve_config(SpuConfig(protocol=protocol), parties)
        copies = [mp.constant(value, parties=rank) for rank, value in enumerate(public)]
        secret, known = mp.seal(mp.put("P0", X), to="SP0"), mp.pconv(copies)
        made = run_jax(
            lambda x, y: x * y, mp.FeSignature((secret.base_type, known.base_type)), config=config
        )
        return mp.keep(peval(made.pfunc, [secret, known], parties)[0])

    return run


OTHERS = {"one step": ULP, "a sign of zero": None, "another number": np.float32(7)}


@pytest.mark.parametrize("protocol", ["ABY3", "SEMI2K"])
@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("channel", [True, False])
def test_operands_that_differ_at_one_member_end_the_run(protocol, what, channel):
    members = 3 if protocol == "ABY3" else 2
    other = OTHERS[what]
    values = [np.float32(0.0) if other is None else ONE] * members
    values[-1] = np.float32(-0.0) if other is None else other
    cluster = spu_links.cluster(members, protocol=protocol, use_mplang_channel=channel)
    with mp.Simulator(cluster) as sim:
        with pytest.raises(
            PartyError, match=r"spu\.run_jax at test_public_operands\.py:\d+"
        ) as told:
            mp.evaluate(sim, program(*values, members=members, protocol=protocol))
        assert "have different values of a public input" in str(told.value)
        assert "public operands" in str(told.value)
        assert told.value.code == "R015"
        mp.evaluate(sim, program(*[ONE] * members, members=members, protocol=protocol))


def test_arrays_have_one_digest_if_types_shapes_and_bits_are_the_same():
    same = [np.arange(6), np.arange(6, dtype=np.int32), np.arange(6).reshape(2, 3), np.arange(7)]
    assert len({digest_of([each]) for each in same}) == len(same)
    assert digest_of([np.arange(6)[::2]]) == digest_of([np.array([0, 2, 4])])
    assert digest_of([np.float32(0)]) != digest_of([np.float32(-0.0)])


def test_everyone_is_told_whether_members_have_the_same():
    """They compare their operands, so a run that fails tells the host of them."""

    cluster = spu_links.cluster(2, protocol="CHEETAH")

    def failures(fn, *args):
        table = mp.analysis.disclosure(mp.compile(fn, *args, cluster_spec=cluster))
        return {(row.sender, row.receiver) for row in table.rows if row.what == "failure"}

    def guessed(x):
        members = mp.Mask.all(2)
        config = resolve_config(SpuConfig(protocol="CHEETAH"), members)
        known = mp.pconv([x, mp.constant(ONE, parties=1)])
        secret = mp.seal(mp.put("P1", X), to="SP0")
        signature = mp.FeSignature((secret.base_type, known.base_type))
        made = run_jax(lambda x, y: x * y, signature, config=config)
        return mp.keep(peval(made.pfunc, [secret, known], members)[0])

    assert failures(program(ONE, ONE, members=2, protocol="CHEETAH")) == set()
    with mp.Simulator(cluster) as sim, mp.with_ctx(sim):
        private = mp.put("P0", ONE)
    assert failures(guessed, private) == {(0, "everyone"), (1, "everyone")}
