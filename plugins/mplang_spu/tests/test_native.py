"""SPU through its native service: results, and shares that stay where they were computed."""

from __future__ import annotations

import gc
import threading
from hashlib import sha256
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_simulator import ThreadCommunicator
from mplang_spu import ShareType, channel, conversion, engine
from mplang_spu.held_shares import NativeSpu
from mplang_spu.libspu import Io, libspu
from mplang_spu.native import SpuService
from mplang_spu.shares import header
from mplang_testing.waiting import DEADLINE
from native_adapter import calls_of, held_by, native_services, simulator
from spu_links import PROTOCOLS, check, cluster, device

import mplang_core as mp
from mplang_core.errors import AdmissionError, PartyError, RunError
from mplang_core.ext import NativeParty

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


TRANSFERS = pytest.mark.long("CHEETAH sets up oblivious transfers: 8 s")


@pytest.fixture
def natives(monkeypatch):
    with native_services(monkeypatch):
        yield


def revealed(sim, program, *args):
    return [party[0] for party in mp.fetch(sim, mp.evaluate(sim, program, *args, mode="launch"))]


@pytest.mark.parametrize(
    ("parties", "protocol"),
    [pytest.param(*each, marks=[TRANSFERS] if "CHEETAH" in each else []) for each in PROTOCOLS],
)
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


@pytest.mark.once
def test_a_chain_of_ops_sends_no_share(natives):
    many = np.tile(X, 1000)  # small results are sent at once
    with simulator(cluster(3, protocol="ABY3"), timeout=DEADLINE) as sim:
        with mp.with_ctx(sim):
            x = mp.put("P0", many)

        def program(x, turns=10):
            x = mp.seal(x)
            for _ in range(turns):
                x = mp.device("SP0")(lambda x: x + 1)(x)
            return mp.reveal(x, to="P1")

        np.testing.assert_allclose(
            mp.fetch(sim, mp.evaluate(sim, program, x, mode="launch")), many + 10, atol=1e-3
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


@pytest.mark.once
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


# -- the service alone


@pytest.fixture
def service():
    (comm,) = ThreadCommunicator.connected(1, timeout=DEADLINE)
    comm.open("run")
    return SpuService(NativeParty(comm, False, DEADLINE))


def request(**changed):
    config = {"protocol": "ABY3", "field": "FM64", "fxp_fraction_bits": 18}
    whole = {"key": "run/1", "parties": 7, "config": config, "code": sha256(CODE).hexdigest()}
    whole |= {"has_code": True, "operands": [], "results": [], "drop": []}
    return whole | changed


CODE = b"module {}"
SHARE = {"form": "data", "share": 0, "dtype": "f32", "shape": [4], "chunks": 1}
ARRAY = {"form": "public", "dtype": "f32", "shape": [4]}
A = "aby3.AShr<FM64>"


@pytest.mark.parametrize(
    ("changed", "buffers", "message"),
    [
        ({"key": "other/1"}, [CODE], "the op other/1 of another run"),
        ({"parties": 3}, [CODE], "no such SPU.*ABY3 takes 3 members, got 2"),
        ({"config": {"protocol": "XYZ"}}, [CODE], "no such SPU.*'XYZ'"),
        ({"code": "0" * 64}, [CODE], "another digest"),
        ({"code": "no"}, [CODE], "'code'"),
        ({"more": 1}, [CODE], "'more'"),
        ({}, [], "fewer buffers"),
        ({}, [CODE, b"1"], "1 buffers too many"),
        ({"drop": [3]}, [CODE], "no share 3 of this run"),
        ({"operands": [{"form": "reference", "share": 3}]}, [CODE], "no share 3 of this run"),
        ({"operands": [{"form": "pickle"}]}, [CODE], "'pickle'"),
        ({"operands": [ARRAY]}, [CODE, bytes(15)], "15 bytes for f32"),
        ({"operands": [{**ARRAY, "dtype": "object"}]}, [CODE, bytes(16)], "of no type"),
        ({"operands": [{**ARRAY, "shape": [-4]}]}, [CODE, bytes(16)], "shape"),
        ({"operands": [{**SHARE, "storage": A}]}, [CODE, bytes(64)], "is not of 64 bytes"),
        ({"operands": [{**SHARE, "storage": "x"}]}, [CODE, bytes(64)], "'x', which ABY3 in FM64"),
        ({"operands": [{**SHARE, "storage": A, "chunks": 2}]}, [CODE, b""], "fewer buffers"),
        (
            {"results": [{"share": 1, "sent": False, "dtype": "f32", "shape": []}] * 2},
            [CODE],
            "that are used",
        ),
    ],
)
def test_a_wrong_request_is_refused(service, changed, buffers, message):
    with pytest.raises(RunError, match=message):
        service.call("run", "run", request(**changed), list(map(memoryview, buffers)))


def test_other_calls_are_refused(service):
    with pytest.raises(RunError, match="has the methods run and fetch, got 'read'"):
        service.call("run", "read", {}, ())
    with pytest.raises(RunError, match="no share 1 of this run"):
        service.call("run", "fetch", {"share": 1}, ())
    assert service.call("run", "run", request(has_code=False), ())[0] == {"unknown_code": True}
    with pytest.raises(RunError, match="a call of the run other amid the run run"):
        service.call("other", "fetch", {"share": 1}, ())


def test_a_late_fetch_does_not_hinder_the_next_run(service):
    service.call("run", "run", request(has_code=False), ())
    service.end_run()
    with pytest.raises(RunError, match="no share 1 of this run: it was dropped"):
        service.call("run", "fetch", {"share": 1}, ())
    again = request(has_code=False, key="next/1")
    assert service.call("next", "run", again, ())[0] == {"unknown_code": True}


def test_a_party_that_is_not_insecure_runs_no_protocol_for_debugging(service):
    config = {"protocol": "SEMI2K", "field": "FM64", "fxp_fraction_bits": 18}
    with pytest.raises(AdmissionError, match="for debugging only"):
        service.call("run", "run", request(config=config), [memoryview(CODE)])


# -- what the service answers


KIND = ShareType(mp.TensorType("f32", (4,)), mp.Mask(7), "ABY3", "FM64", 18)


SHARE_OF_FOUR = header(64, 0) + bytes(64)


class Answering:
    """Calls that get given answers."""

    def __init__(self, answer, sent=(), fetched=()):
        self.answer, self.sent, self.fetched = answer, sent, fetched

    def call(self, run, method, args, buffers=()):
        return (self.answer, self.sent) if method == "run" else ({}, self.fetched)

    def before_end(self, run, fetch):
        self.fetch = fetch


def ran(calls):
    """Return what an op has for results whose service gives an answer."""
    spu = NativeSpu(calls)
    ctx = SimpleNamespace(run="run", key="run/1", step=SimpleNamespace(checks=[KIND]))
    return spu, spu.run(ctx, mp.Mask(7), {}, engine.Compiled(CODE, "0" * 64, (), ()), [])


@pytest.mark.parametrize(
    ("answer", "sent", "message"),
    [
        ({}, [], "field 'storages'"),
        ({"storages": [], "chunks": []}, [], "expected the storages of 1 results"),
        ({"storages": [A, A], "chunks": [0]}, [], "expected the storages of 1 results"),
        ({"storages": [A], "chunks": []}, [], "expected the storages of 1 results"),
        ({"storages": [A], "chunks": [1]}, [], "and 0 buffers, expected"),
        ({"storages": [A], "chunks": [0]}, [b""], "and 1 buffers, expected"),
        ({"storages": [A], "chunks": [-1]}, [], "chunks"),
        ({"storages": [A], "chunks": [True]}, [], "chunks"),
        ({"storages": [1], "chunks": [0]}, [], "storages"),
        ({"storages": A, "chunks": [0]}, [], "storages"),
        ({"storages": [A], "chunks": [0], "more": 1}, [], "more"),
        ({"storages": ["semi2k.AShr<FM64>"], "chunks": [0]}, [], "has not"),
        ({"unknown_code": True}, [], "unknown_code"),
    ],
)
def test_a_wrong_answer_is_refused(answer, sent, message):
    with pytest.raises(RunError, match=message):
        ran(Answering(answer, sent))


@pytest.mark.parametrize("chunks", [[], [bytes(64)], [header(64, 0) + bytes(63)]])
def test_a_wrong_share_is_refused(chunks):
    _, (share,) = ran(Answering({"storages": [A], "chunks": [0]}, (), chunks))
    with pytest.raises(RunError, match=r"SPU made no share of f32\[4\].*not of 64 bytes"):
        list(share.chunks)


def test_a_wrong_share_that_is_sent_at_once_is_refused():
    with pytest.raises(RunError, match=r"SPU made no share of f32\[4\].*not of 64 bytes"):
        ran(Answering({"storages": [A], "chunks": [1]}, [bytes(64)]))


def test_a_share_that_was_sent_is_there_after_its_run():
    _, (share,) = ran(Answering({"storages": [A], "chunks": [1]}, [memoryview(SHARE_OF_FOUR)]))
    assert list(share.chunks) == [SHARE_OF_FOUR]


def test_a_share_of_a_run_that_failed_is_gone():
    calls = Answering({"storages": [A], "chunks": [0]}, (), [SHARE_OF_FOUR])
    spu, (share,) = ran(calls)
    ctx = SimpleNamespace(run="next", key="next/1", step=SimpleNamespace(checks=[]))
    calls.answer = {"storages": [], "chunks": []}
    spu.run(ctx, mp.Mask(7), {}, engine.Compiled(CODE, "0" * 64, (), ()), [])
    with pytest.raises(RunError, match="the run run failed, and its share of f32.* is gone"):
        list(share.chunks)


def test_a_share_that_lives_at_the_end_of_a_run_is_fetched():
    calls = Answering({"storages": [A], "chunks": [0]}, (), [SHARE_OF_FOUR])
    _, (share,) = ran(calls)
    calls.fetch()
    calls.fetched = ()
    assert list(share.chunks) == [SHARE_OF_FOUR]
