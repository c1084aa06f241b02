"""Oblivious transfers of CHEETAH: the way is chosen alike by all members, and may change."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import spu_runner
from mplang_analysis import Network, network_of
from mplang_spu import engine, engine_pool, oblivious_transfer
from mplang_spu.config import SpuConfig
from mplang_spu.lowering import Target, lower
from mplang_spu.oblivious_transfer import cheapest_way, comparisons_of
from mplang_testing.waiting import DEADLINE
from spu_links import X, cluster

import mplang_core as mp
from mplang_core.errors import ConfigError

CHEETAH = Target("CHEETAH", "FM128", 40)


def code_of(fn, *args):
    lowered = lower(spu_runner.stablehlo(fn, *args, target=CHEETAH), CHEETAH)
    return engine.build(lowered, [True] * len(args)).code


def compared(fn, *args):
    return comparisons_of(code_of(fn, *args), {"protocol": "CHEETAH", "field": "FM128"})


def ways(sim):
    """Return how each party's links make oblivious transfers."""
    return [[e.ot for e in worker.resources.values()] for worker in sim._parties.workers]


# -- what is estimated


def test_comparisons_are_counted_by_elements_bits_and_turns():
    x = np.ones((4, 5), np.float32)
    one = compared(lambda x: x > 0, x)
    assert one == 20
    code = code_of(lambda x: x > 0, x)
    assert comparisons_of(code, {"protocol": "CHEETAH", "field": "FM64"}) == 10
    assert comparisons_of(code, {"protocol": "ABY3", "field": "FM64"}) == 0
    assert compared(lambda x: x * x + x, x) == 0
    assert compared(lambda x: x.max(axis=1), x) == 20
    assert compared(lambda x: jnp.sqrt(x), x) > 10 * one
    turns = compared(lambda x: jax.lax.fori_loop(0, 9, lambda i, s: jnp.maximum(s, x), x * 0), x)
    assert turns == oblivious_transfer.TURNS * one
    assert compared(jnp.sort, np.ones(1000, np.float32)) > 10_000


def test_a_slower_link_takes_ferret_sooner():
    counts = [2**n for n in range(10, 28)]
    first = [
        next((n for n in counts if cheapest_way(network_of(link), n) == "ferret"), None)
        for link in ("lan", "wan", Network(rtt=40, rate=5))
    ]
    assert first[0] > first[1] > first[2] > 1024
    assert cheapest_way(Network(rtt=0.1, rate=100_000), 1e12) == "softspoken"  # it never pays


# -- what members do


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_auto_goes_on_by_ferret_once_that_pays(monkeypatch, mode):
    with mp.Simulator(cluster(2, protocol="CHEETAH"), timeout=DEADLINE) as sim:

        def program():
            x = mp.device("SP0")(lambda x: (x > 1) * x)(mp.seal(X))
            return mp.reveal(mp.device("SP0")(lambda x: jnp.maximum(x, 2))(x), to="P0")

        def run():
            found = mp.fetch(sim, mp.evaluate(sim, program, mode=mode))
            np.testing.assert_allclose(found, np.maximum(np.where(X > 1, X, 0), 2), atol=1e-6)
            return ways(sim)

        assert run() == [["softspoken"]] * 2
        monkeypatch.setattr(oblivious_transfer, "SET_UP", -1.0)
        monkeypatch.setattr(oblivious_transfer, "SET_UP_BYTES", 0)
        assert run() == [["ferret"]] * 2
        monkeypatch.undo()
        assert run() == [["ferret"]] * 2  # it is set up


@pytest.mark.parametrize("ot", ["softspoken", "ferret"])
def test_the_way_that_is_asked_for_is_taken(ot):
    with mp.Simulator(cluster(2, protocol="CHEETAH", ot=ot), timeout=DEADLINE) as sim:
        program = lambda: mp.reveal(mp.device("SP0")(lambda x: x > 1)(mp.seal(X)), to="P0")  # noqa: E731
        np.testing.assert_array_equal(mp.fetch(sim, mp.evaluate(sim, program)), X > 1)
        assert ways(sim) == [[ot]] * 2


def test_who_counted_more_decides_for_all(monkeypatch):
    """A member that lost its link counts anew; all go by who has compared most."""
    with mp.Simulator(cluster(2, protocol="CHEETAH"), timeout=DEADLINE) as sim:
        program = lambda: mp.reveal(mp.device("SP0")(lambda x: x > 1)(mp.seal(X)), to="P0")  # noqa: E731
        mp.evaluate(sim, program)
        (kept,) = sim._parties.workers[0].resources.values()
        kept.compared = 1e12
        sim._parties.workers[1].resources.clear()
        mp.evaluate(sim, program)
        assert ways(sim) == [["ferret"]] * 2


@pytest.mark.parametrize(
    "message",
    [
        b"", b"{}", b"[1, 2]", b'["a", "b", {}]', b'["a", 1e999, {}]', b'["a", NaN, {}]',
        b'["a", -5, []]', b'["a", 1' + b"0" * 5000 + b", {}]", b"[" * 100_000, None, 7,
    ],
)  # fmt: skip
def test_whatever_a_peer_offers_is_read_or_named(message):
    offer = engine_pool._parse_offer(message)
    assert isinstance(offer.link, str)
    assert 0 <= offer.compared <= engine_pool.MANY
    assert all(isinstance(each, str) for each in offer.settings.values())


# -- what is configured


def test_a_way_that_this_libspu_does_not_know_is_an_error():
    with pytest.raises(RuntimeError, match="does not know oblivious transfers by nobody"):
        engine.runtime_config(SpuConfig(protocol="CHEETAH").attrs(), "nobody")


def test_other_protocols_have_none():
    with pytest.raises(ConfigError, match="'ot': ABY3 has no oblivious transfers; CHEETAH has"):
        cluster(3, protocol="ABY3", ot="ferret")


def test_a_link_is_described_by_its_figures():
    spec = cluster(2, protocol="CHEETAH", link={"rtt": 20, "rate": 100})
    config = json.loads(json.dumps(spec.device("SP0").config.attrs()))
    assert config["link"] == {"rtt": 20, "rate": 100}
    assert engine_pool._way(config, 1e7, "memory", None) == "ferret"
    with pytest.raises(ConfigError, match="rate"):
        cluster(2, protocol="CHEETAH", link={"rtt": 20, "rate": 0})
