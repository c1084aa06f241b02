"""What an MPC process has amid a run: shares, and neither plain data nor a key of its party."""

from __future__ import annotations

import mmap
import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from fault_testbed import FOREVER, KIT, FaultTestbed, works
from mplang_http import LocalCluster
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, NEVER
from mplang_worker.tls.keygen import make_certificates
from processes import mpc_process_of

import mplang_core as mp
from mplang_core.errors import PartyError

NAMES = ["node0", "node1", "node2"]
ROWS = 16
SEALED = "simp.while_loop", "spu.run_jax", "kit.less", "kit.add"  # ops after the rows are sealed
FILES = "socket:", "/memfd:", "anon_inode:[eventfd]"  # of the last, threads wake one another
MARKER = 64  # bytes of a marker: of a text, and of eight numbers in turn
pytestmark = pytest.mark.needs("tables", "data")


@pytest.fixture(scope="module")
def columns():
    """Return the columns of the data set: one is shared, one is offered, one is not.

    The rows of a column are the same, so that one search finds any of them.
    """
    number = random.SystemRandom().randrange(1 << 56, 1 << 62)
    offered, hidden = (os.urandom(MARKER // 2).hex() for _ in range(2))
    return {"shared": [number] * ROWS, "offered": [offered] * ROWS, "hidden": [hidden] * ROWS}


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Return the certificates of three workers, and of the coordinator."""
    return make_certificates(tmp_path_factory.mktemp("keys"), [*NAMES, "host"])


@pytest.fixture(scope="module")
def workers(columns, keys, tmp_path_factory):
    """Return workers with TLS, the first of which has the data set."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path_factory.mktemp("data") / "people.parquet"
    pq.write_table(pa.table(columns), path, compression="none", use_dictionary=False)
    assert all(each in path.read_bytes() for each in markers(columns).values())
    offered = {"shared": "int64", "offered": "string"}
    data = {"people": {"source": f"parquet:{path}", "columns": offered, "readers": ["host"]}}
    with LocalCluster(NAMES, tls=keys, imports=KIT, data={"node0": data}) as cluster:
        yield cluster


@pytest.fixture
def host(workers):
    with mp.connect("http", workers.spec, tls=workers.tls, patience=NEVER) as host:
        works(host)
        yield host


def markers(columns):
    """Return what is looked for of the rows of each column; of numbers each one, in any form."""
    number = np.int64(columns["shared"][0])
    return {
        "shared": number.tobytes(),  # an eighth of the marker
        "offered": columns["offered"][0].encode(),
        "hidden": columns["hidden"][0].encode(),
    }


def forms(path):
    """Return what is looked for of a key: a line of PEM, and the private number, as DER has it."""
    text = Path(path).read_bytes()
    number = load_pem_private_key(text, None).private_numbers().private_value.to_bytes(32, "big")
    return {
        "PEM": text.splitlines()[2],
        "DER": number,
        "number": number[::-1],  # as OpenSSL has it, in little-endian words
    }


def memory(pid):
    """Return the pages of a process that no file on disk has, those which it shares included."""
    found, span = [], None
    with (
        open(f"/proc/{pid}/smaps") as maps,
        open(f"/proc/{pid}/pagemap", "rb") as pages,
        open(f"/proc/{pid}/mem", "rb") as mem,
    ):
        for line in maps:
            first, second, *rest = line.split()
            if "-" in first and not first.endswith(":"):
                of_file = rest[3:] and rest[3][0] == "/" and not rest[3].startswith("/memfd:")
                special = rest[3:] and rest[3].startswith("[v")  # of the kernel: no page is read
                readable = second[0] == "r" and not special
                span = first if readable and (second[1] == "w" or not of_file) else None
            elif first == "Rss:" and span is not None and int(second):  # others are reserved only
                begin, end = (int(each, 16) // mmap.PAGESIZE for each in span.split("-"))
                pages.seek(begin * 8)
                entries = np.frombuffer(pages.read((end - begin) * 8), "<u8")
                there = np.flatnonzero(entries >> np.uint64(62))  # in memory, or swapped out
                for run in np.split(there, np.flatnonzero(np.diff(there) > 1) + 1):
                    if len(run):
                        mem.seek((begin + int(run[0])) * mmap.PAGESIZE)
                        found.append(mem.read(len(run) * mmap.PAGESIZE))
    return b"".join(found)


def found_in(pid, looked_for):
    """Return which of the things that are looked for are in the memory of a process."""
    there = memory(pid)
    return {name for name, each in looked_for.items() if each in there}


def files_of(pid):
    """Return what the file descriptors of a process are, by their numbers."""
    folder = f"/proc/{pid}/fd"
    return {int(each): os.readlink(f"{folder}/{each}") for each in os.listdir(folder)}


def people():
    return mp.dataset("node0", "people", ["shared", "offered"])


def multiply(state):
    """Multiply what is shared by shared ones: it stays as it is, and goes through the protocol."""
    i, a, ones = state
    a = mp.device("SP0")(lambda a, b: a * b)(a, ones)
    return mp.invoke(dialect.add, i, mp.constant(np.int64(1))), a, ones


def endless():
    from mplang_tables import to_tensor

    numbers = mp.device("P0")(lambda t: t.select("shared"))(people())
    numbers = mp.device("P0")(lambda x: x[:, 0])(mp.device("P0")(to_tensor)(numbers, rows=ROWS))
    ones = mp.seal(mp.put("P1", np.ones(ROWS, np.int64)))
    below = lambda state: mp.invoke(dialect.less, state[0], mp.constant(np.int64(FOREVER)))  # noqa: E731
    begin = mp.constant(np.int64(0)), mp.seal(numbers), ones
    _, a, _ = mp.while_loop(below, multiply, begin)
    return mp.reveal(a, to="P0")


@pytest.mark.long("searches the memory of five processes")
def test_an_mpc_process_has_shares_only(workers, host, columns, keys):
    """It has no row of a column, shared, offered or neither, and no key; its files are sockets.

    Nor has it a file of the owner, or a pipe but that to the log.
    """
    kept = mp.evaluate(host, people)
    testbed = FaultTestbed(workers, host, random.Random(0))
    rows, secrets = markers(columns), [forms(keys[name].key) for name in NAMES]
    pids = [mpc_process_of(worker.pid) for worker in workers.workers]
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(mp.evaluate, host, endless)
        try:
            testbed.wait_at(SEALED)
            found = [found_in(pid, rows | each) for pid, each in zip(pids, secrets, strict=True)]
            files = [files_of(pid) for pid in pids]
            of_engine = found_in(testbed.engine(0), rows | secrets[0])
            of_front = found_in(workers.workers[0].pid, secrets[0])
        finally:
            os.kill(testbed.engine(0), signal.SIGKILL)
        with pytest.raises(PartyError):
            running.result(DEADLINE)
    assert found == [set()] * 3
    assert of_engine == set(rows), "what is looked for can be found"
    assert of_front, "so can a key"
    for each in files:
        log = each.pop(1), each.pop(2)
        assert each.pop(0) == "/dev/null"
        assert all(what.startswith("pipe:") for what in log)
        assert all(what.startswith(FILES) for what in each.values()), each
    del kept
