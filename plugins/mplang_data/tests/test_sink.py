"""Sinks: whole versions whatever happens, one at all members, for nobody else."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import signal
import sys
import threading

import numpy as np
import pytest
from mplang_analysis import PUBLIC
from mplang_data.stored import (
    Entry,
    Held,
    NotStoredError,
    Sink,
    SinkConfig,
    StoreError,
    agree,
    values,
)
from mplang_data.stored.disk import size_of
from mplang_data.stored.run import encode_versions
from mplang_data.stored.sink import MAX_VERSIONS
from mplang_data.stored.sink_config import read_sink
from mplang_testing.waiting import DEADLINE

import mplang_core as mp
from mplang_core.errors import ConfigError

PARTIES = ("alice", "bob", "carol")
VECTOR = mp.TensorType("f64", (1000,))


def entry(number, previous=None, members=(0, 1), kind=VECTOR, nest="0", **fields):
    return Entry(
        **{
            "name": "model", "version": f"{number:064x}", "run": f"s-{number}",
            "previous": None if previous is None else f"{previous:064x}", "program": "0" * 64,
            "time": 1e9, "parties": PARTIES, "members": members, "kinds": (str(kind),),
            "nest": nest, "labels": (PUBLIC.encode(),) * len(members), **fields,
        }
    )  # fmt: skip


def write(sink, made, content, owner="host", by="session"):
    file = values.write(VECTOR, np.full(1000, float(content)))
    try:
        sink.begin(owner, by, made.name, [made.parties[rank] for rank in made.members])
        sink.stage(owner, by, made, [file])
    finally:
        os.close(file)


def read(sink, version, owner="host"):
    _, (opened,) = sink.open(owner, "model", version)
    found = values.read(VECTOR, opened.file)
    os.close(opened.file)
    assert (found == found[0]).all()
    return int(found[0])


def new_sink(folder, **fields):
    key = folder.parent / "key"
    key.write_bytes(bytes(range(32)))
    return Sink(SinkConfig(folder=str(folder), key_file=str(key), **fields))


@pytest.fixture
def sink(tmp_path):
    with contextlib.closing(new_sink(tmp_path / "sink")) as made:
        yield made


# -- members that agree


def states(*, members=2, stores=2):
    """Yield what members may hold after stores that were interrupted, one after another."""

    def after(state, number):
        """Yield each way in which members of a state may end up, and what was committed."""
        for steps in itertools.product(range(4), repeat=members):  # none, staged, current, alone
            if (max(steps) > 1 and min(steps) < 1) or (max(steps) > 2 and min(steps) < 2):
                continue  # it waits for the others
            made = []
            for (held, current), step in zip(state, steps, strict=True):
                held = dict(held)
                if step:
                    held[number] = current
                made.append(
                    ({number: held[number]} if step == 3 else held, number if step > 1 else current)
                )
            yield tuple(made), max(steps) > 1

    def all_of(state, number, committed):
        yield state, committed
        if number <= stores:
            for made, is_committed in after(state, number):
                yield from all_of(made, number + 1, number if is_committed else committed)

    yield from all_of((({0: None}, 0),) * members, 1, 0)


@pytest.mark.parametrize("members", [2, 3])
def test_members_agree_on_what_was_committed_last_wherever_they_were_killed(members):
    count = 0
    for state, committed in states(members=members, stores=5 - members):
        ranks = tuple(range(members))
        held = {
            rank: [
                Held(entry(version, previous, ranks).card(), version == current)
                for version, previous in versions.items()
            ]
            for rank, (versions, current) in zip(ranks, state, strict=True)
        }
        assert agree("model", ranks, PARTIES, held).version == f"{committed:064x}", state
        count += 1
    assert count > 100


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({0: [(2, 1, True)], 1: [(1, 0, True)]}, "alice has run 00000000; bob has run 00000000"),
        ({0: [(1, 0, False), (2, 1, True)], 1: [(1, 0, True)]}, "from different runs"),  # a backup
        ({0: [(1, 0, True)], 1: []}, "bob has none"),  # removed at one
        ({0: [(1, 0, True)], 1: [(1, None, False), (5, None, True)]}, "from different runs"),
    ],
)
def test_members_with_different_runs_are_told(held, told):
    found = {r: [Held(entry(v, p).card(), c) for v, p, c in each] for r, each in held.items()}
    with pytest.raises(StoreError, match=told):
        agree("model", (0, 1), PARTIES, found)


def test_members_do_not_tell_one_another_when_they_stored_a_version():
    """It would tell when an op of a run ended, which may depend on private data."""
    told = [encode_versions([Held(entry(1, time=when).card(), True)]) for when in (1e9, 1.5e9)]
    assert told[0] == told[1]


def test_members_of_another_session_are_told():
    held = {rank: [Held(shares(1).card(), True)] for rank in (0, 1)}
    with pytest.raises(StoreError, match="stored by alice, bob, in this order, and is loaded by b"):
        agree("model", (0, 1), ("bob", "alice"), held)
    with pytest.raises(StoreError, match="in a session of alice, bob, carol, in this order; this"):
        agree("model", (1, 2), ("x", "alice", "bob"), {r + 1: each for r, each in held.items()})
    with pytest.raises(NotStoredError, match="nothing is stored as 'model' at carol"):
        agree("model", (2,), PARTIES, held)


# -- a sink that is killed


@pytest.mark.long("forks a process to be killed at each of its writes")
def test_whoever_is_killed_has_what_was_before_or_what_is_new(tmp_path):
    folders, before, seen = [tmp_path / "a", tmp_path / "b"], 0, set()
    for number in itertools.count(1):
        if number % 20 == 1:  # and whoever stores next, whatever they left, has that
            store_at(folders, entry(1000 + number, before))
            before = 1000 + number
        child = os.fork()
        if not child:
            try:
                die_at_the_disk(number)
                store_at(folders, entry(number, before))
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        sinks = [new_sink(folder) for folder in folders]
        held = {rank: sink.held("host", "model") for rank, sink in enumerate(sinks)}
        version = agree("model", (0, 1), PARTIES, held).version
        for sink in sinks:
            assert read(sink, version) == int(version, 16)
            sink.close()
        assert int(version, 16) in (before, number)
        seen.add(int(version, 16) == number)
        before = int(version, 16)
        if not os.WIFSIGNALED(status):  # it has come to its end
            assert status == 0
            break
    assert number > 50
    assert before == number
    assert seen == {True, False}


def store_at(folders, made):
    """Store a value at all of them, phase by phase, as members do."""
    with contextlib.ExitStack() as stack:
        sinks = [stack.enter_context(contextlib.closing(new_sink(each))) for each in folders]
        for sink in sinks:
            write(sink, made, int(made.version, 16))
        for sink in sinks:
            sink.commit("host", "session", "model", made.version)
        for sink in sinks:
            sink.settle("host", "session", "model", made.version)


def die_at_the_disk(times):
    """Have this process killed before it asks the file system for the given time."""
    left = itertools.count(times, -1)

    def watch(event, _):
        if event.startswith(("os.", "open", "shutil.")) and next(left) == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def test_what_an_interrupted_write_left_is_removed(sink, tmp_path):
    write(sink, entry(1), 1)
    folder = tmp_path / "sink" / "host" / "model"
    (folder / ".new-dead").mkdir()
    (folder / ".new-link").symlink_to("nowhere")
    write(sink, entry(2), 2)
    assert sorted(os.listdir(folder)) == [f"{1:064x}", f"{2:064x}"]


def test_versions_of_interrupted_runs_are_few(sink):
    for number in range(MAX_VERSIONS):
        write(sink, entry(number), number)
    with pytest.raises(StoreError, match="32 versions of runs that were interrupted"):
        write(sink, entry(99), 99)
    sink.remove("host", "session", "model", PARTIES[:2])
    write(sink, entry(99), 99)


# -- who stores what


def test_coordinators_have_values_of_their_own(sink):
    for number, owner in enumerate(["host", "other", "..", "a/b", ".", "%2E", "分" * 60]):
        write(sink, entry(number), number, owner=owner, by=owner)
        sink.commit(owner, owner, "model", f"{number:064x}")
        sink.settle(owner, owner, "model", f"{number:064x}")
    assert read(sink, f"{0:064x}") == 0
    for owner in ("other", "..", "a/b"):
        with pytest.raises(StoreError):
            sink.open(owner, "model", f"{0:064x}")
        sink.remove(owner, owner, "model", PARTIES[:2])
    assert [each.card.version for each in sink.held("host", "model")] == [f"{0:064x}"]


@pytest.mark.parametrize("version", ["../../other/model/current", "current", "0" * 63, "", None])
def test_a_version_is_no_path(sink, version):
    for owner in ("host", "other"):
        write(sink, entry(1), 1, owner=owner)
        sink.commit(owner, "session", "model", f"{1:064x}")
    for use in (sink.open, lambda *what: sink.commit("host", "session", *what[1:])):
        with pytest.raises(StoreError, match="not here any more"):
            use("host", "model", version)


def test_a_session_stores_a_name_at_a_time(sink):
    write(sink, entry(1), 1, by="one")
    with pytest.raises(StoreError, match="another session stores 'model' now"):
        write(sink, entry(2), 2, by="two")
    with pytest.raises(StoreError, match="another session stores"):
        sink.remove("host", "two", "model", PARTIES[:2])
    for use in (sink.commit, sink.settle):
        with pytest.raises(StoreError, match="this session does not store 'model' now"):
            use("host", "two", "model", f"{1:064x}")
    sink.release("one")
    with pytest.raises(StoreError, match="the session has ended"):  # its question came late
        write(sink, entry(1), 1, by="one")
    write(sink, entry(2), 2, by="two")
    sink.commit("host", "two", "model", f"{2:064x}")
    sink.settle("host", "two", "model", f"{2:064x}")
    write(sink, entry(3), 3, by="three")


@pytest.mark.parametrize("told", [False, True])
def test_a_store_that_fails_elsewhere_lets_others_store(sink, told):
    write(sink, entry(1), 1, by="one")
    sink.abandon("host", "one", "model", f"{1:064x}", told=told)
    # another member that was told may have committed it
    assert [each.card.version for each in sink.held("host", "model")] == [f"{1:064x}"] * told
    write(sink, entry(2), 2, by="two")


def test_what_a_run_may_load_stays_while_another_stores(sink):
    for number in (1, 2, 3):
        write(sink, entry(number), number)
        sink.commit("host", "session", "model", f"{number:064x}")
        sink.settle("host", "session", "model", f"{number:064x}")
        if number == 1:
            (held,) = sink.held("host", "model", by="reader")
            assert held.card.version == f"{1:064x}"
    assert read(sink, f"{1:064x}") == 1
    sink.done("reader")
    write(sink, entry(4), 4)
    sink.commit("host", "session", "model", f"{4:064x}")
    sink.settle("host", "session", "model", f"{4:064x}")
    assert [each.card.version for each in sink.held("host", "model")] == [f"{4:064x}"]


def test_a_name_is_not_taken_from_those_who_hold_it_together(sink):
    write(sink, entry(1), 1)
    sink.commit("host", "session", "model", f"{1:064x}")
    sink.settle("host", "session", "model", f"{1:064x}")
    with pytest.raises(StoreError, match="stored by alice, bob together, and would be lost"):
        write(sink, entry(2, members=(0,)), 2)
    with pytest.raises(StoreError, match="stored by alice, bob together, and would be lost"):
        sink.remove("host", "session", "model", PARTIES[:1])
    write(sink, entry(2), 2)


def test_a_file_that_another_process_reads_from_is_read_whole_and_once(sink, tmp_path):
    file = values.write(VECTOR, np.full(1000, 5.0))
    os.lseek(file, 1234, os.SEEK_SET)
    sink.begin("host", "session", "model", PARTIES[:2])
    sink.stage("host", "session", entry(1), [file])
    os.close(file)
    assert read(sink, f"{1:064x}") == 5


def test_a_coordinator_stores_as_much_as_it_may(tmp_path):
    with contextlib.closing(new_sink(tmp_path / "sink", size=20_000)) as sink:
        write(sink, entry(1), 1)
        write(sink, entry(2), 2)
        with pytest.raises(StoreError, match="stores 20000 bytes at this party at most"):
            write(sink, entry(3), 3)


def test_sessions_that_store_at_once_together_store_no_more(tmp_path):
    start, refused = threading.Barrier(8), []

    def store(sink, number):
        name, by = f"model{number}", f"session{number}"
        sink.begin("host", by, name, PARTIES[:2])
        file = values.write(VECTOR, np.full(1000, 5.0))
        start.wait(DEADLINE)
        try:
            sink.stage("host", by, entry(1).model_copy(update={"name": name}), [file])
        except StoreError as error:
            refused.append(str(error))
        os.close(file)

    with contextlib.closing(new_sink(tmp_path / "sink", size=20_000)) as sink:
        threads = [threading.Thread(target=store, args=(sink, i)) for i in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(DEADLINE)
        assert size_of(tmp_path / "sink" / "host") <= 20_000
    assert len(refused) >= 6
    assert all("stores 20000 bytes at this party at most" in each for each in refused)


def test_what_is_kept_beside_a_value_counts(tmp_path):
    long = entry(1, kind=mp.TableType([("x" * 20_000, "int64")]))
    with contextlib.closing(new_sink(tmp_path / "sink", size=20_000)) as sink:
        sink.begin("host", "session", "model", PARTIES[:2])
        file = values.write(VECTOR, np.full(1, 5.0))
        with pytest.raises(StoreError, match="stores 20000 bytes at this party at most"):
            sink.stage("host", "session", long, [file])
        os.close(file)


def test_a_full_disk_is_told_and_leaves_what_was(sink, tmp_path, monkeypatch):
    write(sink, entry(1), 1)
    sink.commit("host", "session", "model", f"{1:064x}")

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="cannot be written: No space left on device"):
        write(sink, entry(2), 2)
    monkeypatch.undo()
    assert read(sink, f"{1:064x}") == 1
    assert not list((tmp_path / "sink" / "host" / "model").glob(".new-*"))
    write(sink, entry(3), 3)  # it can be tried again


# -- what is encrypted


def shares(number, previous=None, members=(0, 1)):
    return entry(number, previous, members, kind="crypto.symmetric_key<>")


def secret(sink, version):
    _, (opened,) = sink.open("host", "model", version)
    found = io.BytesIO()
    try:
        opened.unseal(found)
    finally:
        os.close(opened.file)
    return found.getvalue()


def store_key(sink, content=b"k" * 32):
    from mplang_crypto.types import SymmetricKey, SymmetricKeyType

    file = values.write(SymmetricKeyType(), SymmetricKey(content))
    made = shares(1, members=(0,))
    sink.begin("host", "session", "model", PARTIES[:1])
    sink.stage("host", "session", made, [file])
    os.close(file)
    return made


def test_keys_are_encrypted_and_authenticated(sink, tmp_path):
    made = store_key(sink)
    folder = tmp_path / "sink" / "host" / "model" / made.version
    sealed = folder / "value.sealed"
    assert b"k" * 8 not in sealed.read_bytes()
    assert b"k" * 32 in secret(sink, made.version)
    kept = (folder / "entry.json").read_text()
    # an entry that says something else, with the right sums
    found = json.loads(kept)
    found["entry"]["program"] = "1" * 64
    (folder / "entry.json").write_text(json.dumps(found))
    with pytest.raises(StoreError, match="damaged, or the sink has another key"):
        secret(sink, made.version)
    (folder / "entry.json").write_text(kept)
    sealed.write_bytes(sealed.read_bytes()[:-1])
    with pytest.raises(StoreError, match="was changed since it was stored"):
        sink.open("host", "model", made.version)


def test_a_sink_with_another_key_or_none_says_so(sink, tmp_path):
    made = store_key(sink)
    sink.close()
    (tmp_path / "other").write_bytes(bytes(32))
    folder = str(tmp_path / "sink")
    for fields in ({"key_file": str(tmp_path / "other")}, {}):
        again = Sink(SinkConfig(folder=folder, **fields))
        with contextlib.closing(again), pytest.raises(StoreError, match="no key|another key"):
            secret(again, made.version)
    sink._lock_file = os.open(os.devnull, os.O_RDONLY)


def test_without_a_key_shares_and_keys_are_not_stored(tmp_path):
    with contextlib.closing(Sink(SinkConfig(folder=str(tmp_path / "sink")))) as sink:
        with pytest.raises(StoreError, match="this party's sink has no key"):
            store_key(sink)
        write(sink, entry(1), 1)  # of plain values it needs none


# -- configurations


def test_a_key_may_be_printed_by_a_command(tmp_path):
    config = read_sink({"folder": "sink", "key_command": ["printf", "%032d", "7"]}, str(tmp_path))
    assert config.key() == b"0" * 31 + b"7"
    assert config.folder == str(tmp_path / "sink")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"folder": "s", "key_file": "k", "key_command": ["x"]}, "not both"),
        ({"folder": "s", "key_file": "s/key"}, "must be outside of"),
        ({"folder": "s", "key_file": "missing"}, "sink.key_file.*No such file"),
        ({"folder": "s", "key_file": "short"}, "has 5 bytes, of 32 or more"),
        ({"folder": "s", "key_command": ["false"]}, "does not print a key"),
        ({"folder": "s", "key_command": ["no-such-program"]}, "does not print a key"),
        ({"folder": "short/x"}, "sink.folder.*Not a directory"),
        ({"folder": 7}, "folder"),
        ({}, "folder"),
        ({"folder": "s", "colour": "red"}, "colour"),
        (7, "expected a folder"),
    ],
)
def test_wrong_sinks_are_told(tmp_path, fields, told):
    (tmp_path / "short").write_bytes(b"12345")
    with pytest.raises(ConfigError, match=f"(?s){told}"):
        Sink(read_sink(fields, str(tmp_path)))


def test_a_folder_has_one_worker(sink, tmp_path):
    with pytest.raises(ConfigError, match="another process stores in"):
        new_sink(tmp_path / "sink")


# -- what its owner sees


def test_an_owner_lists_what_lies_in_a_sink(sink, tmp_path, capsys, monkeypatch):
    from mplang_analysis import own
    from mplang_data.commands import Action, data

    labels = [own(2, "data set people.age").encode(), own(0, "put").encode()]
    write(sink, entry(1, labels=labels), 1, owner="An Analyst")
    sink.commit("An Analyst", "session", "model", f"{1:064x}")
    (tmp_path / "worker.yaml").write_text("name: alice\nsink: sink\n")
    data(Action.STORED, config=str(tmp_path / "worker.yaml"), as_json=True)
    (told,) = json.loads(capsys.readouterr().out)
    assert told["coordinator"] == "An Analyst"
    assert told["parties"] == ["alice", "bob"]
    assert told["data"] == {"carol/people": ["age"], "alice/put": []}
    monkeypatch.setenv("COLUMNS", "200")
    data(Action.STORED, config=str(tmp_path / "worker.yaml"))
    assert "alice/put; carol/people: age" in capsys.readouterr().out
