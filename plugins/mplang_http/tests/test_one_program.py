"""One program for all: one digest everywhere, and values that remember from program to program."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_testing import dialect

import mplang_core as mp
from mplang_core.errors import DisclosureError, PartyError
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
    """Wait for a line of a worker's log; return all lines of it that match."""
    deadline = time.monotonic() + 30
    while not (found := re.findall(pattern, (logs / f"{name}.log").read_text())):
        assert time.monotonic() < deadline, f"{pattern} is not in the log of {name}"
        time.sleep(0.05)
    return found


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
        jobs = host._clients[rank].request("GET", "v1", "sessions", host.session, "jobs")["jobs"]
        assert {job["program"] for job in jobs} == {digest}


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
    with pytest.raises(Exception, match=r"mp\.keep keeps it for the next program"):
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

    with pytest.raises(PartyError, match="party 0 failed in kit.fail_at"):
        mp.evaluate(host, fails, x)
    assert ("move", "1", "0") in rows_of(logs, "bob", before)
