"""What is hidden: keys from messages and folders, what is common from who must not learn it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import resource
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import stopping_matchers
from matching import CLUSTER, PROTOCOLS, matched, table
from mplang_http import LocalCluster
from mplang_simulator.threads import ThreadCommunicator
from mplang_testing.waiting import wait_until

import mplang_core as mp
from mplang_core.errors import RunError

COUNT, TEXT, PAGE = 60, pa.string(), resource.getpagesize()
IDS = [f"customer {i:05d}" for i in range(10_000)]  # all that there may be
HASHES = ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b", "blake2s")


@pytest.fixture
def sent(monkeypatch):
    """Return the messages that are sent: the sender, the receiver, the place and the bytes."""
    found, send = [], ThreadCommunicator.send

    def recorded(comm, to_rank, key, data):
        raw = data.tobytes() if isinstance(data, np.ndarray) else bytes(data)
        found.append((comm.rank, to_rank, key.partition("/")[2], raw))
        send(comm, to_rank, key, data)

    monkeypatch.setattr(ThreadCommunicator, "send", recorded)
    return found


def run(a, b, **arguments):
    with mp.Simulator(
        CLUSTER, data={"bank": {"keys": table(a, TEXT)}, "shop": {"keys": table(b, TEXT)}}
    ) as sim:
        return matched(sim, **arguments)


def told(keys):
    """Return all that a dictionary of possible ids would be looked up for, as bytes."""
    whole = [b"".join(sorted(each.encode() for each in keys))]
    for text in (*(each.encode() for each in IDS), *whole):
        yield text[-8:]
        for name in HASHES:
            digest = hashlib.new(name, text).digest()
            yield digest[:8]
            yield digest.hex()[:16].encode()


def check_hides(blob, keys):
    """Check that nothing of the keys is in some bytes, nor a hash that could be looked up."""
    windows = {length: set() for length in (8, 16)}
    for length, seen in windows.items():
        seen.update(blob[i : i + length] for i in range(len(blob) - length + 1))
    assert [each for each in told(keys) if each in windows[len(each)]] == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("learn", ["bank", "shop"])
def test_who_must_not_learn_gets_the_same_messages_whatever_is_in_common(sent, protocol, learn):
    seen = []
    for common in (0, 1, COUNT // 2, COUNT - 1, COUNT):
        chosen = random.Random(common).sample(IDS, 2 * COUNT - common)
        a, b = chosen[:COUNT], chosen[COUNT - common :]
        (rows,) = run(a, b, protocol=protocol, learn=learn)
        assert len(rows) == common
        receiver = {"bank": 1, "shop": 0}[learn]
        seen.append(Counter((key, len(raw)) for _, to, key, raw in sent if to == receiver))
        sent.clear()
    assert seen[0]
    assert all(each == seen[0] for each in seen)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_padded_sets_of_different_sizes_send_the_same_messages(sent, protocol):
    seen = []
    for count in (0, 1, 50):
        run(IDS[:count], IDS[40:60], protocol=protocol, learn="bank", rows={"bank": 50, "shop": 50})
        seen.append(Counter((to, key, len(raw)) for _, to, key, raw in sent))
        sent.clear()
    assert all(each == seen[0] for each in seen)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_messages_have_no_key_and_no_hash_of_one(sent, protocol):
    chosen = random.Random(5).sample(IDS, COUNT)
    for a, b in ((chosen, chosen[:9]), (chosen[:1], chosen[:1])):
        run(a, b, protocol=protocol)
        blob = b"|".join(raw for *_, raw in sent)
        sent.clear()
        assert len(blob) > 500
        check_hides(blob, a)


def test_two_matches_of_the_same_keys_have_nothing_in_common(sent):
    tokens = []
    for _ in range(2):
        run(IDS[:20], IDS[:20], protocol="RR22")
        found = [raw for *_, key, raw in sent if key.endswith("|common")]
        tokens.append({found[0][i : i + 16] for i in range(0, len(found[0]), 16)})
        sent.clear()
    assert [len(each) for each in tokens] == [20, 20]
    assert not tokens[0] & tokens[1]


# -- on workers, amid a match


class Worker:
    """Processes of a worker, found by their parents.

    Args:
        pid: of its front.
    """

    def __init__(self, pid):
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    *_, stat = (entry / "stat").read_text().rpartition(")")
                    parents[int(entry.name)] = int(stat.split()[1])
        self.pids = {pid}
        while more := {p for p, parent in parents.items() if parent in self.pids} - self.pids:
            self.pids |= more

    def called(self, name):
        """Return its processes of a name."""
        return [p for p in self.pids if Path(f"/proc/{p}/comm").read_text().strip() == name]


def in_memory(pid):
    """Return whether a process works in a folder in memory."""
    return Path(f"/proc/{pid}/cwd").readlink().is_relative_to("/dev/shm")


def memory_has(pid, pattern):
    """Return whether the memory of a process, as far as it is there, has some bytes."""
    areas, start, end = [], 0, 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            start, end = (int(each, 16) for each in line.split()[0].split("-"))
            rights = line.split()[1]
        elif line.startswith("Rss:") and "w" in rights and line.split()[1] != "0":
            areas.append((start, end))
    with open(f"/proc/{pid}/mem", "rb", 0) as memory, open(f"/proc/{pid}/pagemap", "rb", 0) as map:
        for start, end in areas:
            map.seek(start // PAGE * 8)
            pages = np.frombuffer(map.read((end - start) // PAGE * 8), "<u8") >> 63
            edges = np.flatnonzero(np.diff(np.concatenate([[0], pages, [0]]).astype(int)))
            for first, last in edges.reshape(-1, 2):  # that are there
                with contextlib.suppress(OSError):
                    memory.seek(start + int(first) * PAGE)
                    if pattern in memory.read(int(last - first) * PAGE):
                        return True
    return False


@pytest.mark.long("the memory of thirty processes is searched")
@pytest.mark.skipif(os.getuid() != 0, reason="memory of other processes is read by root")
def test_nobody_but_the_two_engines_has_the_key_and_no_folder_a_hash(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    chosen, data, folders = random.Random(7).sample(IDS, COUNT), {}, []
    for party in ("bank", "shop"):
        pa.parquet.write_table(table(chosen), tmp_path / f"{party}.parquet")
        source = f"parquet:{tmp_path}/{party}.parquet"
        data[party] = {"keys": {"source": source, "columns": {"id": "string", "row": "int64"}}}
    imports = ("stopping_matchers", "known_secret")
    with (
        LocalCluster(
            ["bank", "shop", "lab"], data=data, log=str(tmp_path), imports=imports
        ) as made,
        mp.connect("http", made.spec, mode="launch") as host,
        ThreadPoolExecutor(1) as pool,
    ):
        run = pool.submit(matched, host, protocol="RR22:9")
        log = tmp_path / "shop.log"
        wait_until(lambda: "MOMENT" in log.read_text() or run.done(), "the message")
        try:
            bank, shop, lab = (Worker(each.pid) for each in made.workers)
            key = hashlib.sha256(b"the key of the engines").digest()  # as in known_secret
            for each in (bank, shop):
                (engine,) = each.called("mplang-engine")
                matching = next(filter(in_memory, each.called("mplang-mpc")))
                assert memory_has(engine, key)
                assert not memory_has(matching, key)
                folder = Path(f"/proc/{matching}/cwd")
                folders.append(folder.readlink())
                files = [file for file in folder.rglob("*") if file.is_file()]
                assert files
                check_hides(b"|".join(file.read_bytes() for file in files), chosen)
                assert folder.stat().st_mode & 0o077 == 0
            others = (bank.pids | shop.pids | lab.pids) - {
                *bank.called("mplang-engine"), *shop.called("mplang-engine"),
            }  # fmt: skip
            assert not [pid for pid in others if memory_has(pid, key)]
        finally:
            made.signal(stopping_matchers.SHOP, signal.SIGKILL)
        with pytest.raises(RunError):
            run.result()
    logs = b"".join(file.read_bytes() for file in tmp_path.glob("*.log"))
    assert key not in logs
    assert key.hex().encode() not in logs
    assert not folders[0].exists()  # what a killed worker leaves, the next one removes
