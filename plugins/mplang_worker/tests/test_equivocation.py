"""A coordinator that shows parties different things: refused by all of them, in words."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from http_raw import MB, RawWorker, open_at_all, program, sha
from mplang_http import LocalCluster
from mplang_http.wire.requests import Public, Stored, Uploaded
from mplang_http.wire.values import join_frame, pack
from mplang_testing import dialect

import mplang_core as mp

PARTIES = [0, 1, 2]
KIND = mp.TensorType("i64")


def swap(x):
    """What the honest program does: party 0 gets party 1's datum, and so on."""
    return mp.pshfl_s(x, [0, 1, 2], [1, 2, 0])


def alone(x):
    """No party sends anything: nobody would notice by a message that does not come."""
    return mp.invoke(dialect.add, x, x)


def leak(x):
    """The same types at the same places, but party 1 sends its datum to party 2."""
    return mp.pshfl_s(x, [0, 1, 2], [2, 0, 1])


SWAP, ALONE, LEAK = (program(fn, np.int64(0), parties=3) for fn in (swap, alone, leak))
ONE, TWO = (Public(join_frame(*pack(np.int64(n)))) for n in (1, 2))


@pytest.fixture(scope="module")
def workers():
    with LocalCluster(3, imports=("mplang_testing.dialect",), mode="production") as cluster:
        yield [RawWorker(cluster, rank) for rank in PARTIES]


@pytest.fixture
def session(workers):
    parties = [worker.party() for worker in workers]
    name = open_at(workers, [parties] * 3)
    yield name
    close(workers, name)


def open_at(workers, parties, **fields):
    """Open a session, perhaps with other parties at each worker."""
    name = f"equivocal{np.random.default_rng().integers(1 << 60)}"
    found = open_at_all(workers, name, parties=parties, **fields)
    assert [each.status for each in found] == [200] * 3, found
    return name


def close(workers, name):
    for worker in workers:
        worker.ask("DELETE", f"/v1/sessions/{name}")


def run(workers, name, shown, number=1):
    """Start a run with other data, inputs and fields at each worker; return how each ends."""

    def at(rank):
        data, inputs, fields = shown[rank]
        assert workers[rank].put_program(data, name).status == 200
        given = {"inputs": inputs, "parties": PARTIES, **fields}
        found = workers[rank].submit(name, data, run=f"{name}-{number}", wait=30, **given)
        return found.json

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(at, PARTIES))


def refused_by_all(found, words):
    """Tell whether all refuse, each for what it was shown, before an op has run."""
    assert [status["state"] for status in found] == ["failed"] * 3, found
    for status in found:
        error = status["error"]
        assert error["kind"] in ("AdmissionError", "AbortedError")  # by itself, or told by a peer
        assert words in error["text"], error["text"]
        assert error["op"] is None


def test_what_is_the_same_for_all_runs(workers, session):
    for number, data in enumerate((SWAP, ALONE)):
        found = run(workers, session, [(data, [ONE], {})] * 3, number)
        assert [status["state"] for status in found] == ["done"] * 3
    found = run(workers, session, [(SWAP, [Stored([f"{session}-0.0"] * 3)], {})] * 3, 2)
    assert [status["state"] for status in found] == ["done"] * 3


@pytest.mark.parametrize("honest", [SWAP, ALONE], ids=["messages", "no message"])
@pytest.mark.parametrize("odd", PARTIES)
def test_another_program_for_one(workers, session, honest, odd):
    shown = [(LEAK if rank == odd else honest, [ONE], {}) for rank in PARTIES]
    refused_by_all(run(workers, session, shown), "was shown another program")


def test_the_same_program_with_other_lines_for_its_reader(workers, session):
    other = SWAP.replace(b"test_equivocation.py", b"best_equivocation.py")
    assert sha(other) != sha(SWAP)
    shown = [(SWAP, [ONE], {}), (other, [ONE], {}), (SWAP, [ONE], {})]
    refused_by_all(run(workers, session, shown), "was shown another program")


def test_another_public_input_for_one(workers, session):
    shown = [(SWAP, [TWO if rank == 1 else ONE], {}) for rank in PARTIES]
    refused_by_all(run(workers, session, shown), "was shown other inputs")


def test_another_large_public_input_for_one(workers, session):
    digests = []
    for n in (1, 2):
        data = join_frame(*pack(np.full(MB, n)))
        digests.append(sha(data))
        for worker in workers:
            path = f"/v1/sessions/{session}/inputs/{sha(data)}"
            assert worker.ask("PUT", path, data).status == 200
    big = program(alone, np.zeros(MB, np.int64), parties=3)
    shown = [(big, [Uploaded(digests[rank == 2])], {}) for rank in PARTIES]
    refused_by_all(run(workers, session, shown), "was shown other inputs")
    lie = workers[0].ask("PUT", f"/v1/sessions/{session}/inputs/{sha(b'')}", data)
    assert lie.error == (400, "forged")


def test_another_value_named_for_one(workers, session):
    """What party 1 is to use is named to all, so it cannot be told of two."""
    for number in (1, 2):
        run(workers, session, [(SWAP, [ONE], {})] * 3, number)
    names = [[f"{session}-{1 + (rank == 1)}.0"] * 3 for rank in PARTIES]
    shown = [(SWAP, [Stored(names[rank])], {}) for rank in PARTIES]
    refused_by_all(run(workers, session, shown, 3), "was shown other inputs")


def test_other_parties_for_one(workers):
    """Worker 1 is told another order: it has no such rank."""
    parties = [worker.party() for worker in workers]
    name = open_at(workers, [parties] * 3)
    with pytest.raises(AssertionError, match="another-worker"):
        open_at(workers, [parties, [parties[0], parties[2], parties[1]], parties])
    close(workers, name)


@pytest.mark.long("a worker waits 10 s for a link that does not come")
def test_a_party_more_for_one(workers):
    """Party 0 is told that the parties are three, party 1 that they are two."""
    three = [worker.party() for worker in workers]
    found = open_at_all(workers, "two", parties=[three, three[:2], three])
    assert [each.status for each in found[1:]] == [200, 503]
    assert found[2].error == (503, "CommError")  # party 1 does not link to it
    close(workers, "two")


def test_other_settings_for_one(workers):
    parties = [worker.party() for worker in workers]
    versions = [{"a coordinator's own": str(int(rank == 2))} for rank in PARTIES]
    name = open_at(workers, [parties] * 3, versions=versions)
    found = run(workers, name, [(SWAP, [ONE], {})] * 3)
    refused_by_all(found, "was shown other settings")
    close(workers, name)


def test_a_program_for_some_parties_is_no_program(workers, session):
    """Each party gets the whole; a part, or a run that leaves a party out, is refused."""
    part = program(lambda x: mp.invoke(dialect.add, x, x), np.int64(0), parties=1)
    assert workers[0].put_program(part, session).status == 200
    found = workers[0].submit(session, part, inputs=[ONE], parties=PARTIES)
    assert found.error == (422, "forged")
    assert "a program is sent whole" in found.text
    workers[0].put_program(SWAP, session)
    for parties in ([0, 1], [1, 2], [0, 1, 2, 3]):
        found = workers[0].submit(session, SWAP, inputs=[ONE], parties=parties)
        assert found.error == (422, "forged")


STOLEN = program(lambda x: mp.keep(mp.put("P0", x)), mp.MPType(KIND, mp.Mask.of(1)), parties=3)
SHOWN = program(lambda x: mp.pconv([x]), mp.MPType(KIND, mp.Mask.of(0)), parties=3)


def put_at_one(workers, session):
    data = join_frame(*pack(np.int64(98)))
    assert workers[1].ask("PUT", f"/v1/sessions/{session}/values/x", data).status == 200
    inputs = [Stored([None, "x", None])]
    found = run(workers, session, [(STOLEN, inputs, {})] * 3)
    assert [status["state"] for status in found] == ["done"] * 3


@pytest.mark.parametrize("parties", [[0, 0, 0], [0, 1, 1], [0], [2, 1, 0], []])
def test_a_run_that_leaves_a_party_out(workers, session, parties):
    """Else party 0 would tell the host of party 1's data, and party 1 would not know."""
    put_at_one(workers, session)
    workers[0].put_program(SHOWN, session)
    for step in (False, True):
        fields = {"inputs": [Stored([f"{session}-1.0", None, None])], "parties": parties}
        found = workers[0].submit(session, SHOWN, run=f"{session}-2", step=step, **fields)
        assert found.status in (400, 403, 422), found
    found = workers[0].ask("GET", f"/v1/sessions/{session}/values/{session}-1.0")
    assert found.error == (403, "protected")


def test_a_party_that_is_cancelled_while_others_run_has_not_opened_the_run(workers, session):
    """Its queue is blocked by another run, so it has not followed this one: nobody may run it."""
    put_at_one(workers, session)
    for worker in workers:
        worker.put_program(SHOWN, session)
    fields = {"inputs": [Stored([f"{session}-1.0", None, None])], "parties": PARTIES, "wait": 0}
    workers[1].submit(session, SHOWN, run=f"{session}-2", **fields)  # waits for the others
    for worker in workers:
        worker.submit(session, SHOWN, run=f"{session}-3", **fields)
    found = workers[0].ask("GET", f"/v1/sessions/{session}/jobs/{session}-3?wait=1")
    assert found.json["state"] == "running"
    for number in (3, 2):
        workers[1].ask("DELETE", f"/v1/sessions/{session}/jobs/{session}-{number}")
    found = workers[0].ask("GET", f"/v1/sessions/{session}/values/{session}-3.0")
    assert found.error == (404, "unknown-value")


def test_a_run_is_not_run_twice_whatever_came_between(workers, session):
    put_at_one(workers, session)
    fields = {"inputs": [Stored([None, "x", None])], "parties": PARTIES, "wait": 0}
    workers[1].submit(session, STOLEN, run=f"{session}-7", **fields)
    for number in (1, 3, 7):
        found = workers[1].submit(session, STOLEN, run=f"{session}-{number}", **fields)
        assert found.error == (409, "replayed")
    for name in (f"{session}-x", f"{session}-", "another-8", f"{session}--8"):
        found = workers[1].submit(session, STOLEN, run=name, **fields)
        assert found.error == (403, "forged")
