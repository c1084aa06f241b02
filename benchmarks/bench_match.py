"""Time of a match between two workers, as a ratio to libpsi over its own links, BRPC.

Both sets have as many keys, half of them in common. libpsi gets tokens of the same form in files,
at two processes on this machine; the workers link by TLS, read Parquet, hash, match and give their
rows, of which the host gets the numbers. All in one run, in turn.

    python benchmarks/bench_match.py            # 10^5 and 10^6 keys
    python benchmarks/bench_match.py 10000 3    # as many keys, as many times
"""

from __future__ import annotations

import multiprocessing
import os
import re
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from mplang_http import LocalCluster
from rich.console import Console
from rich.table import Table

import mplang_core as mp

SIZES = (10**5, 10**6)
TIMED = re.compile(r"matched in ([\d.]+) s")
_SPAWN = multiprocessing.get_context("spawn")


def libpsi(n: int, low_comm: bool) -> float:
    """Return how long libpsi takes over BRPC, from its input file to its output file."""
    ports = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as sock:
            ports.append(sock.getsockname()[1])
    pipes = [_SPAWN.Pipe() for _ in range(2)]
    processes = [
        _SPAWN.Process(target=_party, args=(rank, n, low_comm, ports, pipes[rank][1]), daemon=True)
        for rank in range(2)
    ]
    for each in processes:
        each.start()
    for mine, _ in pipes:
        assert mine.recv() == "ready"
    for mine, _ in pipes:
        mine.send("go")
    took = max(mine.recv() for mine, _ in pipes)
    for each in processes:
        each.join()
    return took


def _party(rank: int, n: int, low_comm: bool, ports: list[int], pipe) -> None:
    import spu.libpsi as psi
    import spu.libspu as spu

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        os.chdir(folder)
        os.environ["TMPDIR"] = folder
        tokens = np.random.default_rng(7).permutation(2 * n)[rank * (n // 2) :][:n]
        Path("in.csv").write_text("id\n" + "".join(f"{each:032x}\n" for each in np.sort(tokens)))
        description = spu.link.Desc()
        for i, port in enumerate(ports):
            description.add_party(f"P{i}", f"127.0.0.1:{port}")
        link = spu.link.create_brpc(description, rank)
        config = psi.PsiExecuteConfig(
            protocol_conf=psi.PsiProtocolConfig(
                protocol=psi.PsiProtocol.PROTOCOL_RR22,
                receiver_rank=0,
                rr22_params=psi.Rr22Rarams(low_comm_mode=low_comm),
            ),
            input_params=psi.InputParams(
                path=f"{folder}/in.csv", selected_keys=["id"], keys_unique=True
            ),
            output_params=psi.OutputParams(path=f"{folder}/out.csv", disable_alignment=True),
        )
        pipe.send("ready")
        pipe.recv()
        begin = time.perf_counter()
        psi.psi_execute(config, link)
        pipe.send(time.perf_counter() - begin)


def count_matched():
    """Match two data sets, and count what is in common."""
    a, b = mp.dataset("bank", "keys"), mp.dataset("shop", "keys")
    rows = mp.match(a, b, on="id", learn="bank")
    return mp.device("P0")(lambda t: t.agg(n=t.count()))(rows)


class Workers:
    """Two workers with a data set of so many keys each."""

    def __init__(self, n: int, folder: Path) -> None:
        data = {}
        keys = np.random.default_rng(7).permutation(2 * n)
        for rank, name in enumerate(("bank", "shop")):
            ids = [f"customer {each:09d}" for each in keys[rank * (n // 2) :][:n]]
            table = pa.table({"id": ids, "row": np.arange(n)})
            pq.write_table(table, folder / f"{name}.parquet")
            source = f"parquet:{folder}/{name}.parquet"
            data[name] = {"keys": {"source": source, "columns": {"id": "string", "row": "int64"}}}
        os.environ["PYTHONPATH"] = str(Path(__file__).parent)
        self.cluster = LocalCluster(
            ["bank", "shop"], data=data, tls=True, log=str(folder), imports=("timed_matchers",)
        )
        self.folder = folder
        self.host = mp.connect("http", self.cluster.spec, tls=self.cluster.tls, mode="launch")
        self.n = n

    def match(self) -> tuple[float, float]:
        """Return how long a match takes, and how long libpsi does in it."""
        begin = time.perf_counter()
        counted = mp.fetch(self.host, mp.evaluate(self.host, count_matched))
        took = time.perf_counter() - begin
        assert counted.to_pylist() == [{"n": self.n // 2}]
        logs = [(self.folder / f"{name}.log").read_text() for name in ("bank", "shop")]
        return took, max(float(TIMED.findall(text)[-1]) for text in logs)

    def close(self) -> None:
        """End the workers."""
        self.host.close()
        self.cluster.close()


def main() -> None:
    sizes = [int(sys.argv[1])] if len(sys.argv) > 1 else SIZES
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    table = Table("keys", "libpsi, s", "low_comm, s", "libpsi at workers ×", "match ×")
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            workers = Workers(n, Path(folder))
            workers.match()  # starts what is started once
            rounds = [(libpsi(n, False), libpsi(n, True), *workers.match()) for _ in range(times)]
            workers.close()
        usual, low, took, there = (statistics.median(each) for each in zip(*rounds, strict=True))
        base = min(usual, low)
        table.add_row(
            f"{n:,}", f"{usual:.2f}", f"{low:.2f}", f"{there / base:.2f}", f"{took / base:.2f}"
        )
    Console(width=100 if not sys.stdout.isatty() else None).print(table)


if __name__ == "__main__":
    main()
