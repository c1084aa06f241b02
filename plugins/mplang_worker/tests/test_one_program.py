"""One program for all: one digest everywhere, and values that remember from program to program."""

from __future__ import annotations

import collections
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from http_raw import RawWorker, open_at_all
from mplang_http import LocalCluster
from mplang_http.coordinator.remote_worker import RemoteWorker
from mplang_http.wire.versions import versions
from mplang_testing import dialect
from mplang_testing.waiting import wait_until

import mplang_core as mp
from mplang_core.errors import AdmissionError, DisclosureError, PartyError
from mplang_core.ext import passes

NAMES = ("alice", "bob", "carol")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def cluster(logs):
    options = {"imports": ("mplang_testing.dialect",), "log_level": "debug", "mode": "production"}
    with LocalCluster(NAMES, log=str(logs), **options) as made:
        yield made


@pytest.fixture
def host(cluster):
    with mp.connect("http", cluster.spec) as made:
        yield made


def log_of(logs, name, pattern):
    """Return what matches in a worker's log, which stands there before its job has ended."""
    return re.findall(pattern, (logs / f"{name}.log").read_text())


def wasteful(x):
    """The passes drop what is not used, and fuse what is left: they change it, not its digest."""
    for _ in range(3):
        mp.invoke(dialect.add, x, x)
        x = mp.invoke(dialect.add, x, x)
    return mp.pshfl_s(x, [0, 1, 2], [1, 2, 0])


PACK = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, mplang_core as mp
from test_one_program import wasteful
cluster = mp.ClusterSpec.from_dict({"nodes": [{"name": n} for n in ("alice", "bob", "carol")]})
made = mp.compile(wasteful, np.int64(0), cluster_spec=cluster)
open(sys.argv[2], "wb").write(mp.artifact.pack(made))
print(made.program.digest)
"""


def test_the_digest_is_the_same_text_everywhere(cluster, host, logs, tmp_path):
    """Of the artifact, of inspect, of the jobs and of each log; made in three processes."""
    path = tmp_path / "wasteful.mpl"
    here = str(__import__("pathlib").Path(__file__).parent)
    packed = subprocess.run(
        [sys.executable, "-c", PACK, here, str(path)], capture_output=True, text=True, check=True
    )
    digest = packed.stdout.strip()
    command = [sys.executable, "-m", "mplang_cli.cli", "inspect", str(path), "--json"]
    inspected = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(inspected.stdout)["digest"] == digest
    artifact = mp.artifact.load(path)
    assert artifact.program.digest == digest
    assert len(passes.known()) >= 2
    before = {name: len((logs / f"{name}.log").read_text()) for name in NAMES}
    assert mp.fetch(host, artifact.run(host, np.int64(1))) == [8, 8, 8]
    assert mp.fetch(host, mp.evaluate(host, wasteful, np.int64(1))) == [8, 8, 8]
    for rank, name in enumerate(NAMES):
        told = log_of(logs, name, r"begins, program ([0-9a-f]{64})")
        assert told[-2:] == [digest] * 2, before
        client = host._workers[rank].client
        told = client.request("GET", "v1", "sessions", host.session, "jobs")
        assert {job["program"] for job in told["jobs"]} == {digest}


def put(host, device, x):
    with mp.with_ctx(host):
        return mp.put(device, x)


def rows_of(logs, name, before):
    """Return what a party is told of who gets its data, since a place in its log."""
    text = (logs / f"{name}.log").read_text()[before:]
    return re.findall(r"DisclosureRow\(what='(\w+)', sender=(\S+), receiver=(\S+),", text)


def test_a_value_that_came_from_another_party_is_still_its_own_in_the_next_programs(host, logs):
    """Bob's datum goes to alice, through shares to all, and to carol: bob is told each time."""
    x = put(host, "P1", np.int64([1, 2]))
    before = {name: len((logs / f"{name}.log").read_text()) for name in NAMES}
    moved = mp.evaluate(host, lambda x: mp.keep(mp.put("P0", x)), x)
    sealed = mp.evaluate(host, lambda x: mp.keep(mp.seal(x)), moved)
    told = mp.evaluate(host, lambda x: mp.reveal(x, to="P2"), sealed)
    np.testing.assert_array_equal(mp.fetch(host, told), [1, 2])
    found = rows_of(logs, "bob", before["bob"])
    assert ("move", "1", "0") in found  # the first program
    assert ("reveal", "None", "2") in found  # the third, of alice's shares
    assert ("result", "2", "'host'") in found
    assert not any(row[1] == "0" for row in rows_of(logs, "alice", before["alice"]))
    assert [
        sorted(source.party for source in label.sources) for label in told.value.labels.values()
    ]


def test_what_is_kept_is_not_fetched_and_its_program_tells_the_host_nothing(host, logs):
    x = put(host, "P1", np.int64(7))
    before = len((logs / "bob.log").read_text())
    kept = mp.evaluate(host, lambda x: mp.keep(mp.invoke(dialect.add, x, x)), x)
    with pytest.raises(DisclosureError, match=r"kept by mp\.keep"):
        mp.fetch(host, kept)
    with pytest.raises(Exception, match=r"kept by mp\.keep, and is not a result"):
        host._fetch(1, kept.value.values[1])  # by a host that does not look
    assert not any(receiver == "'host'" for _, _, receiver in rows_of(logs, "bob", before))
    assert mp.fetch(host, mp.evaluate(host, lambda x: x, kept)) == 14


def test_a_failed_run_is_no_way_to_forget(host, logs):
    """What the parties got in a run that failed counts in the next one."""
    x = put(host, "P1", np.int64(7))
    before = len((logs / "bob.log").read_text())

    def fails(x):
        moved = mp.put("P0", x)
        return mp.keep(mp.simp.pcall_static((0,), dialect.fail_at, moved, party=0))

    with pytest.raises(PartyError, match="party alice failed in kit.fail_at"):
        mp.evaluate(host, fails, x)
    assert ("move", "1", "0") in rows_of(logs, "bob", before)


def test_equal_literals_are_one_value_until_the_last_of_them_goes(host, monkeypatch):
    data = np.arange(40_000)
    kind = mp.MPType(mp.TensorType("i64", data.shape), mp.Mask.all(3))
    double = mp.compile(
        lambda x: mp.invoke(dialect.add, x, x), kind, cluster_spec=host.cluster_spec
    ).program
    one, two = host.lift(data), host.lift(data.copy())
    host.evaluate(double, [one])
    host.evaluate(double, [two])
    del one
    released = collections.Counter()

    def renew(worker):
        renewed(worker)
        released[worker.name] += 1

    renewed = RemoteWorker.renew
    monkeypatch.setattr(RemoteWorker, "renew", renew)
    # what is not referred to any more is released with the next renewal, another may be under way
    wait_until(lambda: all(released[name] > 1 for name in NAMES))
    (result,) = host.evaluate(double, [two])
    np.testing.assert_array_equal(host.fetch(result)[0], data * 2)


def test_a_party_that_missed_runs_takes_others_to_have_had_anything(cluster, logs):
    """Its session was closed and opened anew, by a coordinator that would have it forget."""
    crypto = pytest.importorskip("mplang_crypto")

    def offer():
        private, public = mp.device("P0")(crypto.keypair)()
        return mp.keep(private), mp.keep(mp.put("P1", public))

    def seal(public, x):
        private, mine = mp.device("P1")(crypto.keypair)()
        key = mp.device("P1")(crypto.agree)(private, public, info="test")
        sealed = mp.device("P1")(crypto.encrypt)(x, key)
        return mp.keep(mp.put("P2", sealed)), mp.keep(mp.put("P0", mine))

    def told(before):
        rows = rows_of(logs, "bob", before)
        return [row for row in rows if row[0] == "move"]

    def reopen(host):
        workers = [RawWorker(cluster, rank) for rank in range(3)]
        workers[1].ask("DELETE", f"/v1/sessions/{host.session}")
        asked = {"versions": [versions()] * 3, "native": [["spu"]] * 3}  # as the host has
        found = open_at_all(workers, host.session, **asked)
        assert [each.status for each in found] == [200] * 3

    with mp.connect("http", cluster.spec) as host:
        with mp.with_ctx(host):
            public = mp.evaluate(host, offer)[1]
            x = mp.put("P1", np.int64(7))
        before = (logs / "bob.log").stat().st_size
        mp.evaluate(host, seal, public, x)
        assert not told(before)  # carol has no key
    with mp.connect("http", cluster.spec) as host:
        mp.evaluate(host, offer)
        reopen(host)

        def again(x):
            private, public = mp.device("P1")(crypto.keypair)()
            key = mp.device("P1")(crypto.agree)(private, public, info="test")
            return mp.keep(mp.put("P2", mp.device("P1")(crypto.encrypt)(x, key)))

        with mp.with_ctx(host):
            x = mp.put("P1", np.int64(7))
        before = (logs / "bob.log").stat().st_size
        mp.evaluate(host, again, x)
        assert ("move", "1", "2") in told(before)  # for all that bob knows, carol has a key


@pytest.mark.long("analyzes loops in loops up to a bound of its work")
def test_loops_in_loops_that_never_settle_are_refused_in_words():
    """Each loop passes its states on in a circle, so one more around it multiplies the work."""

    def circle(depth, xs):
        def body(s):
            i, *rest = s
            if depth:
                circle(depth - 1, xs)
            return (mp.invoke(dialect.add, i, mp.constant(1)), *rest[1:], rest[0])

        below = lambda s: mp.invoke(dialect.less, s[0], mp.constant(1))  # noqa: E731
        return mp.while_loop(below, body, (mp.constant(0), *xs))

    kinds = [mp.MPType(mp.TensorType("i64"), mp.Mask.all(3))] * 9
    cluster = mp.ClusterSpec.simple(3)
    made = mp.compile(lambda *xs: circle(6, xs), *kinds, cluster_spec=cluster)
    with pytest.raises(AdmissionError, match="too complex to compute"):
        mp.analysis.disclosure(made)
