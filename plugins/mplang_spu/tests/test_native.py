"""SPU through its native service: results, and shares that stay where they were computed."""

from __future__ import annotations

import gc
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_spu import channel, conversion, engine
from mplang_spu.libspu import Io, libspu
from mplang_spu.native import SpuService
from mplang_testing.waiting import DEADLINE
from native_adapter import calls_of, held_by, native_services, simulator
from spu_links import PROTOCOLS, check, cluster, device

import mplang_core as mp
from mplang_core.errors import PartyError

X, Y = np.float32([3, -1, 4, 1]), np.float32([2, 7, -1, 8])

PROGRAMS = {
    "arithmetic": lambda x, y: x * y - x / (jnp.abs(y) + 1),
    "comparison": lambda x, y: (x > y, jnp.where(x > y, x, y)),
    "sort": lambda x, y: (jnp.sort(x + y), jnp.argsort(y)),
    "position": lambda x, y: (jnp.argmax(x), jnp.int32(3), x),
    "product": lambda x, y: x.reshape(2, 2) @ y.reshape(2, 2),
    "loop": lambda x, y: jax.lax.fori_loop(0, 3, lambda i, s: s * y, x),
    "functions": lambda x, y: (jnp.exp(x), jnp.sqrt(jnp.abs(y)), jax.nn.sigmoid(x)),
    "bools": lambda x, y: ((x > 0) & (y > 0), ~(x > 0), (x > 0).any()),
    "reduction": lambda x, y: (x.mean(), y.max(), (x * y).sum()),
    "constant": lambda x, y: (jnp.zeros_like(x), x),
}


@pytest.fixture
def natives(monkeypatch):
    with native_services(monkeypatch):
        yield


def revealed(sim, program, *args):
    return [party[0] for party in mp.fetch(sim, mp.evaluate(sim, program, *args, mode="launch"))]


@pytest.mark.parametrize(("parties", "protocol"), PROTOCOLS)
def test_results_are_those_of_a_simulator(monkeypatch, parties, protocol):
    def run(fn):
        x, y = mp.put("P0", X), mp.put("P1", Y)
        x, y = mp.seal(x), mp.seal(y)
        found = mp.device("SP0")(fn)(x, y)
        return tuple(map(mp.reveal, found if isinstance(found, tuple) else (found,)))

    spec = cluster(parties, protocol=protocol)
    with native_services(monkeypatch):
        apart = simulator(spec, timeout=DEADLINE)
    with apart, simulator(spec, timeout=DEADLINE) as here:
        for name, fn in PROGRAMS.items():
            if protocol == "CHEETAH" and name in ("functions", "sort"):
                continue  # each takes seconds
            expected = revealed(here, lambda fn=fn: run(fn))
            found = revealed(apart, lambda fn=fn: run(fn))
            for a, b in zip(found, expected, strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape), name
                np.testing.assert_allclose(a, b, atol=1e-3, rtol=1e-3, err_msg=name)
        assert held_by(apart) == [0] * parties


def test_a_chain_of_ops_sends_no_share(natives):
    with simulator(cluster(3, protocol="ABY3"), timeout=DEADLINE) as sim:

        def program(turns=10):
            x = mp.seal(mp.put("P0", X))
            for _ in range(turns):
                x = mp.device("SP0")(lambda x: x + 1)(x)
            return mp.reveal(x, to="P1")

        np.testing.assert_allclose(
            mp.fetch(sim, mp.evaluate(sim, program, mode="launch")), X + 10, atol=1e-3
        )
        for calls in calls_of(sim):
            runs = [(args, sizes) for method, args, sizes in calls.said if method == "run"]
            fetches = [args for method, args, _ in calls.said if method == "fetch"]
            assert len(runs) == 10
            assert len(fetches) == 1  # what is revealed
            for args, sizes in runs[1:]:
                assert args["operands"][0]["form"] == "reference"
                assert sizes == []  # no code, and no share
            assert sum(len(args["drop"]) for args, _ in runs) == 8


def test_a_share_of_an_earlier_run_is_sent_once(natives):
    with simulator(cluster(3, protocol="ABY3"), timeout=DEADLINE) as sim:
        kept = mp.evaluate(sim, lambda: mp.seal(mp.put("P0", X)), mode="launch")
        calls = calls_of(sim)[1]
        calls.said.clear()

        def program(kept):
            x = mp.device("SP0")(lambda x, y: x + y)(kept, kept)
            for _ in range(3):
                x = mp.device("SP0")(lambda x, y: x + y)(x, kept)
            return mp.reveal(x, to="P1")

        for _ in range(2):
            found = mp.evaluate(sim, program, kept, mode="launch")
            np.testing.assert_allclose(mp.fetch(sim, found), X * 5, atol=1e-3)
        runs = [args for method, args, _ in calls.said if method == "run"]
        forms = [[operand["form"] for operand in args["operands"]] for args in runs]
        first, other = ["data", "reference"], ["reference", "reference"]
        assert forms == [first, other, other, other] * 2


def test_shares_are_dropped_in_the_run_once_nothing_needs_them(natives, monkeypatch):
    most = []
    original = engine.Engine.run_on_variables

    def counting(self, code, ins, outs):
        original(self, code, ins, outs)
        most.append(max(held_by(sim)))

    monkeypatch.setattr(engine.Engine, "run_on_variables", counting)
    with simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:

        def program():
            x = mp.seal(mp.put("P0", X))
            below = lambda x: mp.reveal(mp.device("SP0")(lambda x: x.sum() < 1000)(x))  # noqa: E731
            return mp.reveal(mp.while_loop(below, mp.device("SP0")(lambda x: x * 2), x))

        (found,) = {tuple(each) for each in mp.fetch(sim, mp.evaluate(sim, program, mode="launch"))}
        np.testing.assert_allclose(found, X * 256, atol=1e-2)
        assert len(most) > 2 * 16
        assert max(most) <= 4
        assert held_by(sim) == [0, 0]


def test_kept_shares_are_at_the_worker_after_the_run(natives):
    with simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:

        def first():
            x = mp.device("SP0")(lambda x: x * 2)(mp.seal(mp.put("P0", X)))
            return x, mp.device("SP0")(lambda x: x + 1)(x)

        kept, other = mp.evaluate(sim, first, mode="launch")
        assert held_by(sim) == [0, 0]
        del other
        again = mp.evaluate(sim, lambda x: mp.device("SP0")(lambda x: -x)(x), kept, mode="launch")
        for value, expected in ((kept, X * 2), (again, -X * 2)):
            found = mp.evaluate(sim, lambda x: mp.reveal(x, to="P1"), value, mode="launch")
            np.testing.assert_allclose(mp.fetch(sim, found), expected, atol=1e-3)


def test_devices_of_the_same_and_of_other_members_pass_shares_on(natives):
    modes = {"protocol": "ABY3", "sigmoid_mode": "real"}
    devices = {
        "A": device([0, 1, 2], "ABY3"),
        "B": {"kind": "SPU", "members": [0, 1, 2], "config": modes},  # another runtime
        "C": device([2, 1]),
    }
    with simulator(cluster(3, devices), timeout=DEADLINE) as sim:

        def program():
            x = mp.device("A")(lambda x: x * 2)(mp.seal(mp.put("P0", X), "A"))
            y = mp.device("B")(lambda x: x + 1)(mp.seal(mp.put("P0", X), "B"))
            z = mp.device("C")(lambda x: x - 1)(mp.seal(mp.reveal(x, to="P2"), "C"))
            return tuple(mp.reveal(value, to="P1") for value in (x, y, z))

        results = mp.fetch(sim, mp.evaluate(sim, program, mode="launch"))
        for found, expected in zip(results, (X * 2, X + 1, X * 2 - 1), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-3)


def test_a_service_that_lost_the_code_gets_it_again(natives):
    with simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:
        check(sim)
        calls_of(sim)[1].service._codes.clear()
        check(sim)


def test_after_a_failure_the_next_run_computes(natives):
    with simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:
        kept = mp.evaluate(
            sim, lambda: mp.device("SP0")(lambda x: x + 1)(mp.seal(mp.put("P0", X))), mode="launch"
        )

        def fails():
            y = mp.device("SP0")(lambda x: x * 3)(mp.seal(mp.put("P0", X)))
            huge = mp.seal(mp.put("P0", np.float32([1e30])))
            return y, huge

        with pytest.raises(PartyError, match="a number is NaN, or not below"):
            mp.evaluate(sim, fails, mode="launch")
        gc.collect()
        check(sim)
        found = mp.evaluate(sim, lambda x: mp.reveal(x, to="P1"), kept, mode="launch")
        np.testing.assert_allclose(mp.fetch(sim, found), X + 1, atol=1e-3)


def test_a_session_without_the_service_is_told(natives):
    with simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:
        for worker in sim._parties.workers:
            worker.natives = {}
        with pytest.raises(PartyError, match=r'opened without native: \["spu"\]'):
            check(sim)


def test_libspu_of_the_engine_gets_plain_data_alone(natives, monkeypatch):
    """What of libspu reads shares or messages is called by the service, which is a process."""
    inside, called = set(), set()

    def marking(of):
        def marked(self, *args):
            inside.add(threading.get_ident())
            try:
                return of(self, *args)
            finally:
                inside.remove(threading.get_ident())

        return marked

    def guard(owner, name):
        of = getattr(owner, name)

        def guarded(*args, **kwargs):
            assert threading.get_ident() in inside, f"{name} is called in the engine"
            called.add(name)
            return of(*args, **kwargs)

        monkeypatch.setattr(owner, name, guarded)

    for name in ("call", "end_run"):
        monkeypatch.setattr(SpuService, name, marking(getattr(SpuService, name)))
    for name in ("create_mem", "create_brpc", "create_with_channels"):
        guard(libspu.link, name)
    for name in ("set", "get", "describe", "run_on_variables", "drop"):
        guard(engine.Engine, name)
    guard(libspu, "RuntimeWrapper")
    guard(conversion, "raw_share")
    guard(Io, "reconstruct")
    guard(channel.MPLangChannel, "Recv")
    with simulator(cluster(3, protocol="ABY3"), timeout=DEADLINE) as sim:
        kept = mp.evaluate(sim, lambda: mp.seal(mp.put("P0", X)), mode="launch")
        check(sim)
        again = lambda x: mp.device("SP0")(lambda x, y: jnp.sort(x * y))(x, mp.constant(Y))  # noqa: E731
        kept = mp.evaluate(sim, again, kept, mode="launch")
        found = mp.evaluate(sim, lambda x: mp.reveal(x, to="P1"), kept, mode="launch")
        np.testing.assert_allclose(mp.fetch(sim, found), np.sort(X * Y), atol=1e-3)
    expected = {"create_with_channels", "RuntimeWrapper", "raw_share", "Recv"}
    assert called == expected | {"set", "get", "describe", "run_on_variables", "drop"}
