"""SPU's messages over the workers' communicator, memory and BRPC."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest
import spu.libspu as libspu
from mplang_simulator import ThreadCommunicator
from mplang_spu import SpuConfig, engine_pool, link
from mplang_spu.channel import MPLangChannel
from mplang_spu.config import ENV
from mplang_spu.link import LinkCommunicator, choose

import mplang_core as mp
from mplang_core.errors import (
    AbortedError,
    AdmissionError,
    CommError,
    ConfigError,
    PartyError,
    RecvTimeoutError,
)
from mplang_core.simp import WorkerInterpreter

pytestmark = pytest.mark.once  # it is about links, some at ports of their own

PROTOCOLS = [(2, "SEMI2K"), (3, "ABY3"), (2, "CHEETAH")]


def slow(*cases):
    return [pytest.param(*case, marks=pytest.mark.slow) for case in cases]


X = np.float32([3, -1, 4, 1])


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.delenv(ENV, raising=False)


@pytest.fixture
def no_channels(monkeypatch):
    """Simulate an older build of libspu, before the first warning."""
    monkeypatch.delattr(libspu.link, "create_with_channels")
    monkeypatch.setattr(link, "_not_yet_warned", threading.Lock())


def cluster(parties, devices=None, **config):
    ppu = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(parties)}
    spu = devices or {"SP0": {"kind": "SPU", "members": list(range(parties)), "config": config}}
    return mp.ClusterSpec.from_dict({"nodes": [{}] * parties, "devices": {**ppu, **spu}})


def device(members, protocol="SEMI2K"):
    return {"kind": "SPU", "members": members, "config": {"protocol": protocol}}


def addresses(count):
    """Return free ports outside of the ephemeral range: BRPC ends the process at a taken one."""
    found = []
    for port in random.sample(range(15_000, 32_000), 1000):
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
            found.append(f"127.0.0.1:{port}")
            if len(found) == count:
                break
    return found


def program():
    y = mp.device("SP0")(lambda x: x * 2 + 1)(mp.seal(X))
    z = mp.device("SP0")(lambda y: (y > 4, jnp.argmax(y)))(y)
    return mp.reveal(y), mp.reveal(z[0]), mp.reveal(z[1])


def check(sim, mode="launch"):
    results = mp.fetch(sim, mp.evaluate(sim, program, mode=mode))
    for per_party, expected in zip(results, (X * 2 + 1, X * 2 + 1 > 4, 2), strict=True):
        for found in per_party:
            np.testing.assert_allclose(found, expected, atol=1e-3)


def links(sim):
    """Return the names of the links that each party keeps."""
    return [[e.name for e in worker.resources.values()] for worker in sim._parties.workers]


def at_all(parties, job):
    """Run a job at each party, in threads."""
    with ThreadPoolExecutor(parties) as pool:
        return list(pool.map(job, range(parties)))


# -- a channel


@pytest.fixture
def comms():
    made = ThreadCommunicator.connected(3, timeout=5.0)
    for comm in made:
        comm.open("run")
    return made


def channels(comms, a=0, b=2, place="run/1"):
    return MPLangChannel(comms[a], a, b, place), MPLangChannel(comms[b], b, a, place)


def test_a_channel_matches_messages_by_tag(comms):
    a, b = channels(comms)
    a.Send("1", b"one")
    a.SendAsync("2", b"two")
    a.SendAsyncThrottled("3", b"three")
    b.Send("1", b"back")
    assert [b.Recv(tag) for tag in "312"] == [b"three", b"one", b"two"]
    assert a.Recv("1") == b"back"
    a.send("4", b"four")  # as libspu's own binding calls it
    assert b.recv("4") == b"four"


def test_places_are_kept_apart(comms):
    (a, b), (c, d) = channels(comms, place="run/1"), channels(comms, place="run/2")
    a.Send("1", b"of the first")
    c.Send("1", b"of the second")
    assert d.Recv("1") == b"of the second"
    assert b.Recv("1") == b"of the first"


def test_a_duplicate_and_a_late_message_are_dropped(comms):
    a, b = channels(comms)
    a.Send("1", b"first")
    a.Send("1", b"second")
    assert b.Recv("1") == b"first"
    assert not comms[2].has_message(0, "run/1|1")
    comms[2].forget("run/1")
    a.Send("9", b"late")
    assert not comms[2].has_message(0, "run/1|9")


def test_what_was_not_sent_is_told_by_what_is_next_received(comms):
    """CHEETAH also sends from destructors, where an error would end the process."""
    a, b = channels(comms)
    b.Send("1", b"one")
    comms[2].close("run")
    a.Send("10", b"to nobody")
    with pytest.raises(CommError, match="no run"):
        a.Recv("1")


@pytest.mark.parametrize("data", [None, 1, "text", np.zeros(3), [b"x"], b"", memoryview(b"")])
def test_what_is_no_message_of_spu_is_refused(comms, data):
    _, b = channels(comms)
    comms[0].send(2, "run/1|1", data)
    with pytest.raises(CommError, match="party 2 expected bytes of SPU from party 0"):
        b.Recv("1")


@pytest.mark.parametrize("data", [bytearray(b"xy"), memoryview(b"xy")])
def test_bytes_come_in_any_form(comms, data):
    _, b = channels(comms)
    comms[0].send(2, "run/1|1", data)
    assert b.Recv("1") == b"xy"


def test_a_wait_ends_with_the_run(comms):
    _, b = channels(comms)
    threading.Timer(0.1, comms[1].abort, ("run", "party 1 failed")).start()
    begin = time.monotonic()
    with pytest.raises(AbortedError, match="party 1 failed"):
        b.Recv("1")
    assert time.monotonic() - begin < 1


def test_a_wait_has_an_end():
    comms = ThreadCommunicator.connected(2, timeout=0.1)
    comms[1].open("run")
    with pytest.raises(RecvTimeoutError):
        MPLangChannel(comms[1], 1, 0, "run/1").Recv("1")


# -- a link


def test_ranks_in_a_link_are_relative_to_its_members(comms):
    members = mp.Mask.from_ranks([0, 2])
    made = {r: LinkCommunicator(r, comm=comms[r], spu_mask=members, name="run/1") for r in members}
    assert [(m.mode, m.rank, m.world_size) for m in made.values()] == [
        ("channels", 0, 2),
        ("channels", 1, 2),
    ]
    said = at_all(2, lambda i: made[2 * i].lctx.all_gather(f"party {2 * i}"))
    assert said == [["party 0", "party 2"]] * 2


def test_a_link_within_memory_and_over_brpc():
    names = addresses(2)
    for options in ({"mem_link": True}, {}):
        made = at_all(2, lambda i, o=options: LinkCommunicator(i, names, name=f"t{o}", **o))
        assert made[0].mode == ("memory" if options else "brpc")
        assert at_all(2, lambda i, m=made: m[i].lctx.all_gather(str(i))) == [["0", "1"]] * 2
        for one in made:
            one.close()


def test_a_link_needs_members(comms):
    with pytest.raises(ValueError, match="needs addrs"):
        LinkCommunicator(0)
    with pytest.raises(ValueError, match="spu_mask"):
        LinkCommunicator(0, comm=comms[0])
    with pytest.raises(ValueError, match="rank 1 is one of"):
        LinkCommunicator(1, comm=comms[1], spu_mask=mp.Mask.from_ranks([0, 2]))


# -- which way


@pytest.mark.parametrize(
    ("env", "config", "way"),
    [
        (None, {}, "channels"),
        ("", {}, "channels"),
        (None, {"brpc_addresses": ["a:1"]}, "channels"),
        (None, {"use_mplang_channel": True}, "channels"),
        (None, {"use_mplang_channel": False}, "memory"),
        (None, {"use_mplang_channel": False, "brpc_addresses": ["a:1"]}, "brpc"),
        ("1", {"use_mplang_channel": False}, "channels"),
        ("Yes", {"use_mplang_channel": False}, "channels"),
        ("0", {}, "memory"),
        ("false", {"use_mplang_channel": True, "brpc_addresses": ["a:1"]}, "brpc"),
    ],
)
def test_the_environment_goes_before_the_configuration(monkeypatch, env, config, way):
    if env is not None:
        monkeypatch.setenv(ENV, env)
    assert choose(config) == way


def test_a_wrong_environment_is_refused(monkeypatch):
    monkeypatch.setenv(ENV, "maybe")
    with pytest.raises(ConfigError, match="MPLANG_SPU_USE_CHANNELS is 1 or 0, got 'maybe'"):
        choose({})


def test_without_channels_in_libspu_there_is_one_warning(no_channels):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert choose({"use_mplang_channel": False}) == "memory"
        assert not caught
        assert choose({}) == "memory"
        assert choose({"brpc_addresses": ["a:1"]}) == "brpc"
        assert choose({"use_mplang_channel": True}) == "memory"
    (warning,) = caught
    assert "no channels, so SPU takes memory links; pip install" in str(warning.message)


@pytest.mark.filterwarnings("ignore:this build of libspu")
def test_without_channels_in_libspu_programs_run_as_ever(no_channels):
    with mp.Simulator(cluster(2, protocol="SEMI2K"), timeout=10.0) as sim:
        check(sim)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a:1"], "'brpc_addresses': expected one of each of 2 members"),
        (["a:1", "a:1"], "'brpc_addresses': expected one of each"),
        (["a", "b:1"], r"'brpc_addresses\.0'"),
        (["http://a:1", "b:1"], r"'brpc_addresses\.0'"),
    ],
)
def test_wrong_addresses_are_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        cluster(2, protocol="SEMI2K", brpc_addresses=given)


def test_what_is_not_configured_is_not_in_the_program():
    assert set(SpuConfig(protocol="ABY3").attrs()) == {
        "protocol",
        "field",
        "fxp_fraction_bits",
        "sigmoid_mode",
        "exp_mode",
    }


# -- programs


@pytest.mark.parametrize("way", ["channels", "memory"])
@pytest.mark.parametrize("mode", ["standard", "launch"])
@pytest.mark.parametrize(("parties", "protocol"), PROTOCOLS)
def test_each_way_computes(monkeypatch, parties, protocol, mode, way):
    unused = {"channels": ["create_mem", "create_brpc"], "memory": ["create_with_channels"]}[way]
    for name in unused:
        monkeypatch.setattr(libspu.link, name, None)
    config = {"protocol": protocol, "use_mplang_channel": way == "channels"}
    with mp.Simulator(cluster(parties, **config), timeout=20.0) as sim:
        for _ in range(2):
            check(sim, mode)


@pytest.mark.parametrize(
    ("parties", "protocol"), [(2, "SEMI2K"), (3, "ABY3"), *slow((2, "CHEETAH"))]
)
def test_brpc_computes_also_after_a_failure(parties, protocol):
    config = {"protocol": protocol, "use_mplang_channel": False}
    spec = cluster(parties, brpc_addresses=addresses(parties), **config)
    with mp.Simulator(spec, timeout=60.0) as sim:
        check(sim)
        with pytest.raises(PartyError):  # a failure leaves links that still listen
            mp.evaluate(sim, lambda: mp.simp.pcall_static((0,), fails, mp.constant(1)))
        check(sim)


def test_the_environment_decides_what_a_worker_does(monkeypatch):
    monkeypatch.setenv(ENV, "0")
    monkeypatch.setattr(libspu.link, "create_with_channels", None)
    with mp.Simulator(cluster(2, protocol="SEMI2K"), timeout=10.0) as sim:
        check(sim)


def test_a_worker_makes_brpc_links_only_with_its_operators_consent(monkeypatch):
    config = {"protocol": "ABY3", "use_mplang_channel": False}
    with mp.Simulator(cluster(3, brpc_addresses=addresses(3), **config), timeout=10.0) as sim:
        for worker in sim._parties.workers:
            worker.insecure = False
        with pytest.raises(PartyError, match="BRPC links are unencrypted") as error:
            check(sim)
        assert isinstance(error.value.__cause__, AdmissionError)
        monkeypatch.setenv(ENV, "0")
        check(sim)


class PerParty:
    """Value that differs by the party's thread."""

    def __init__(self, *values):
        self.values = values

    def __call__(self, config):
        return self.values[int(threading.current_thread().name[-1])]

    def __format__(self, spec):
        return self(None)


def test_members_that_take_different_ways_are_told(monkeypatch):
    with mp.Simulator(cluster(3, protocol="ABY3"), timeout=10.0) as sim:
        with monkeypatch.context() as patch:
            patch.setattr(engine_pool, "choose", PerParty("channels", "memory", "channels"))
            with pytest.raises(
                PartyError, match=r"link +channels +memory of process \w+ +channels"
            ):
                check(sim)
        with monkeypatch.context() as patch:
            patch.setenv(ENV, "0")
            patch.setattr(engine_pool, "PROCESS", PerParty("a", "b", "a"))
            with pytest.raises(PartyError, match="link  memory of process a  memory of"):
                check(sim)
        check(sim)


def test_members_that_were_sent_different_settings_are_told(monkeypatch):
    """Each member gets its own settings, which the members compare."""
    settings, bits = engine_pool._settings, PerParty("18", "18", "20")
    with mp.Simulator(cluster(3, protocol="ABY3"), timeout=10.0) as sim:
        with monkeypatch.context() as patch:
            patch.setattr(
                engine_pool,
                "_settings",
                lambda *args: settings(*args) | {"fxp_fraction_bits": bits(None)},
            )
            with pytest.raises(PartyError) as error:
                check(sim)
        lines = [line.split() for line in str(error.value).splitlines()]
        head, row = ["party", "0", "party", "1", "party", "2"], ["fxp_fraction_bits", "18", "18"]
        assert lines[1:] == [head, [*row, "20"]]
        check(sim)


# -- links are kept as long as all members are in step


def test_a_link_serves_many_runs(monkeypatch):
    with mp.Simulator(cluster(3, protocol="ABY3"), timeout=10.0) as sim:
        check(sim, "standard")
        first = links(sim)
        assert first == [first[0]] * 3
        monkeypatch.setattr(libspu.link, "create_with_channels", None)
        check(sim, "standard")
        assert links(sim) == first


def test_no_message_is_left_behind():
    with mp.Simulator(cluster(2, protocol="CHEETAH"), timeout=20.0) as sim:
        kept = []
        for comm in sim._parties._comms:
            original = comm.forget

            def forget(place, comm=comm, original=original):
                original(place)
                run = comm._run(place)
                kept.append((len(run.inbox), sum(map(len, run.seen.values()))))

            comm.forget = forget
        check(sim)
        assert len(kept) == 4
        assert max(kept) < (1, 20)  # the messages of the shuffles around


def test_a_member_that_lost_its_link_has_all_make_a_new_one():
    with mp.Simulator(cluster(3, protocol="ABY3"), timeout=10.0) as sim:
        check(sim)
        first = links(sim)
        sim._parties.workers[1].resources.clear()
        check(sim)
        assert links(sim)[0] == links(sim)[1] == links(sim)[2] != first[0]


def test_devices_that_share_members_take_turns_in_two_programs():
    devices = {
        "A": device([0, 1]),
        "B": device([1, 2], "CHEETAH"),
        "C": device([2, 0], "CHEETAH"),
        "D": device([0, 1, 2], "ABY3"),
        "E": device([0, 1], "CHEETAH"),  # of the same members as A
    }
    with mp.Simulator(cluster(3, devices), timeout=20.0) as sim:

        def turns(names):
            values = {name: mp.seal(X, name) for name in names}
            for _ in range(3):
                for name in names:
                    values[name] = mp.device(name)(lambda v: v * v - v)(values[name])
            return tuple(mp.reveal(value) for value in values.values())

        expected = X
        for _ in range(3):
            expected = expected * expected - expected
        for names in ("ABCDE", "EDCBA"):
            for found in mp.fetch(sim, mp.evaluate(sim, lambda n=names: turns(n), mode="launch")):
                np.testing.assert_allclose(found[0], expected, rtol=0.01, atol=0.05)
        assert [len(names) for names in links(sim)] == [4, 4, 3]


@pytest.mark.parametrize("protocol", ["ABY3", "SEMI2K"])
def test_runs_at_the_same_time_have_links_of_their_own(protocol):
    """Each party runs four programs at once, each party starting them in another order."""
    spec = cluster(3, protocol=protocol)
    traced = mp.trace(mp.TraceContext(spec), program).program
    comms = ThreadCommunicator.connected(3, timeout=20.0)
    workers = [WorkerInterpreter(comm, session="s", insecure=True, timeout=20.0) for comm in comms]
    ran = [f"run-{i}" for i in range(4)]
    for comm in comms:
        for run in ran:
            comm.open(run)
    for _ in range(2):
        with ThreadPoolExecutor(12) as pool:
            jobs = [
                pool.submit(worker.evaluate, traced, [], run)
                for worker in workers
                for run in ran[worker.rank :] + ran[: worker.rank]
            ]
            for job in jobs:
                np.testing.assert_allclose(job.result()[0], X * 2 + 1, atol=1e-3)
        ran = [f"{run}-again" for run in ran]
        for comm in comms:
            for run in ran:
                comm.open(run)


# -- failures


@mp.simple_op("outside.fails")
def fails(x: mp.TensorType) -> mp.TensorType:
    """Raise."""
    return x


@mp.kernel("outside.fails")
def _fails(ctx, x):
    raise ValueError("no")


class Trouble(MPLangChannel):
    """Channel that fails at one party, some messages after the start of a job."""

    at: int
    after: int
    pause: float

    def _count(self):
        cls = type(self)
        if self._local_rank == cls.at:
            cls.after -= 1
            if cls.after == 0:
                time.sleep(cls.pause)
                raise OSError("unplugged")

    def Send(self, tag, data):
        self._count()
        super().Send(tag, data)

    SendAsync = SendAsyncThrottled = Send

    def Recv(self, tag):
        self._count()
        return super().Recv(tag)


@pytest.mark.parametrize("mode", ["standard", "launch"])
@pytest.mark.parametrize("after", [1, 3, 40])
@pytest.mark.parametrize(
    ("parties", "protocol"), [(2, "SEMI2K"), (3, "ABY3"), *slow((2, "CHEETAH"), (3, "SEMI2K"))]
)
def test_a_party_that_fails_within_spu_ends_all_at_once(
    monkeypatch, parties, protocol, after, mode
):
    monkeypatch.setattr("mplang_spu.channel.MPLangChannel", Trouble)
    monkeypatch.setattr(Trouble, "pause", 0.3, raising=False)
    monkeypatch.setattr(Trouble, "at", parties - 1, raising=False)
    monkeypatch.setattr(Trouble, "after", 0, raising=False)
    ended = []
    evaluate = WorkerInterpreter.evaluate

    def timed(self, *args):
        try:
            return evaluate(self, *args)
        finally:
            ended.append(time.monotonic())

    monkeypatch.setattr(WorkerInterpreter, "evaluate", timed)
    with mp.Simulator(cluster(parties, protocol=protocol), timeout=60.0) as sim:
        sealed = mp.evaluate(sim, lambda: mp.seal(X))
        compiled = mp.compile(
            lambda x: mp.reveal(mp.device("SP0")(lambda v: v > jnp.sort(v))(x)),
            sealed,
            cluster_spec=cluster(parties, protocol=protocol),
        )
        mp.evaluate(sim, compiled, sealed, mode=mode)
        ended.clear()
        Trouble.after = after
        with pytest.raises(PartyError, match=f"party {parties - 1} failed in spu.run_jax"):
            mp.evaluate(sim, compiled, sealed, mode=mode)
        assert Trouble.after <= 0
        ended = ended[-parties:]
        assert max(ended) - min(ended) < 0.5  # not the 60 s that a link waits
        found = mp.fetch(sim, mp.evaluate(sim, compiled, sealed, mode=mode))
        np.testing.assert_array_equal(found[0], np.sort(X) < X)


def test_messages_that_come_twice_and_in_another_order_do_no_harm(monkeypatch):
    """Transports that retry, or use several routes, may duplicate and reorder."""
    send = ThreadCommunicator.send
    threads = ThreadPoolExecutor(8)

    def unruly(self, to_rank, key, data):
        def later():
            time.sleep(hash(key) % 3 / 1000)
            with contextlib.suppress(CommError):  # the run is over
                send(self, to_rank, key, data)

        if "|" in key:
            threads.submit(later)
            threads.submit(later)
        else:
            send(self, to_rank, key, data)

    monkeypatch.setattr(ThreadCommunicator, "send", unruly)
    with mp.Simulator(cluster(3, protocol="ABY3"), timeout=20.0) as sim:
        for _ in range(2):
            check(sim)
    threads.shutdown()


def test_a_peer_that_sends_rubbish_is_named(monkeypatch):
    send = ThreadCommunicator.send

    def rubbish(self, to_rank, key, data):
        send(self, to_rank, key, 42 if "|" in key and self.rank == 2 else data)

    monkeypatch.setattr(ThreadCommunicator, "send", rubbish)
    with (
        mp.Simulator(cluster(3, protocol="ABY3"), timeout=20.0) as sim,
        pytest.raises(PartyError, match=r"expected bytes of SPU from party 2, got int"),
    ):
        check(sim)


@pytest.mark.parametrize("rubbish", [None, 42, np.zeros(3), b"", b"\xff\xfe", b"channels|x" * 9])
def test_a_peer_that_lies_about_its_link_ends_the_run_in_time(monkeypatch, rubbish):
    send = ThreadCommunicator.send

    def lies(self, to_rank, key, data):
        send(self, to_rank, key, rubbish if key.endswith("?link") and self.rank == 1 else data)

    with mp.Simulator(cluster(2, protocol="SEMI2K"), timeout=2.0) as sim:
        check(sim)
        monkeypatch.setattr(ThreadCommunicator, "send", lies)
        with pytest.raises(PartyError):
            check(sim)
