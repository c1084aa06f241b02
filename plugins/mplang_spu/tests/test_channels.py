"""SPU's messages over the workers' communicator: a channel, and a link of several."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from brpc_processes import gathers, in_a_process
from mplang_simulator import ThreadCommunicator
from mplang_spu.channel import MPLangChannel
from mplang_spu.link import LinkCommunicator
from mplang_testing.waiting import DEADLINE, NEVER, wait_until
from spu_links import at_all

import mplang_core as mp
from mplang_core.errors import AbortedError, CommError, RecvTimeoutError

pytestmark = [
    pytest.mark.once,  # it is about links, some at ports of their own
    pytest.mark.usefixtures("environment"),
]


# -- a channel


@pytest.fixture
def comms():
    made = ThreadCommunicator.connected(3, timeout=DEADLINE)
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
    comms[2].timeout = NEVER
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(b.Recv, "1")
        wait_until(lambda: comms[2]._runs["run"].waiters)
        comms[1].abort("run", "party 1 failed")
        with pytest.raises(AbortedError, match="party 1 failed"):
            received.result(DEADLINE)


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
    in_a_process(gathers)


def test_a_link_needs_members(comms):
    with pytest.raises(ValueError, match="needs addrs"):
        LinkCommunicator(0)
    with pytest.raises(ValueError, match="spu_mask"):
        LinkCommunicator(0, comm=comms[0])
    with pytest.raises(ValueError, match="rank 1 is one of"):
        LinkCommunicator(1, comm=comms[1], spu_mask=mp.Mask.from_ranks([0, 2]))
