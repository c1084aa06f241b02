"""Benchmark of data sets: a query over a gigabyte of Parquet, and a tensor of ten million rows.

The query runs on a worker, and in bare DuckDB on the file itself; figures are ratios of times in
turn. Memory is what a process has of its own, without what it maps of the files.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from mplang_http import LocalCluster
from mplang_tables import to_tensor
from rich.console import Console
from rich.table import Table

import mplang_core as mp

ROWS, PARTS, COLUMNS, TIMES = 10_000_000, 10, 10, 8
FLOATS = {f"x{i}": "float64" for i in range(COLUMNS)}
MB = 1 << 20


def write(path: Path) -> None:
    """Write ten columns of floats, and two of integers."""
    random, writer = np.random.default_rng(0), None
    for _ in range(PARTS):
        columns = {name: random.normal(size=ROWS // PARTS) for name in FLOATS}
        columns["g"] = random.integers(0, 100, ROWS // PARTS)
        columns["k"] = random.integers(0, 1 << 40, ROWS // PARTS)
        part = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    writer.close()


def of_its_own() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


def query(by: str):
    """Return a program that filters by a column, and sums another one in groups."""

    def program():
        t = mp.dataset("node0", "big", [by, "x1", "g"] if by != "g" else ["x1", "g"])
        return mp.device("P0")(
            lambda t: t.filter(t[by] > (0.5 if by == "x0" else 50)).group_by("g").agg(s=t.x1.sum())
        )(t)

    return mp.CompiledFunction(program, None)


def ratios(path: Path, by: str, threads: int | None) -> list[float]:
    """Return times on a worker as ratios to those of DuckDB, with so many threads, in turn."""
    above = 0.5 if by == "x0" else 50
    sql = f"SELECT g, SUM(x1) FROM read_parquet('{path}') WHERE {by} > {above} GROUP BY g"
    columns = {**FLOATS, "g": "int64", "k": "int64"}
    data = {"node0": {"big": {"source": f"parquet:{path}", "columns": columns, "rows": ROWS}}}
    found = []
    with (
        LocalCluster(1, data=data, mode="production") as workers,
        mp.connect("http", workers.spec) as host,
    ):
        program = query(by)
        for _ in range(TIMES + 1):
            begin = time.perf_counter()
            config = {} if threads is None else {"threads": threads}
            bare = duckdb.connect(config=config).sql(sql).to_arrow_table()
            between = time.perf_counter()
            ours = mp.fetch(host, mp.evaluate(host, program))
            end = time.perf_counter()
            assert ours.num_rows == bare.num_rows
            found.append((end - between) / (between - begin))
    return found[1:]


def tensor(path: Path) -> tuple[int, int, float]:
    """Return the bytes of a tensor of the data set, those beside it at the peak, and seconds."""
    data = {"node0": {"big": {"source": f"parquet:{path}", "columns": FLOATS, "rows": ROWS}}}
    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, of_its_own())

    def program():
        return mp.keep(mp.device("P0")(to_tensor)(mp.dataset("node0", "big"), rows=ROWS))

    with mp.Simulator(mp.ClusterSpec.simple(1), data=data) as sim:
        before, watching = of_its_own(), threading.Thread(target=watch)
        watching.start()
        begin = time.perf_counter()
        mp.evaluate(sim, program)
        took = time.perf_counter() - begin
        done.set()
        watching.join()
    size = ROWS * COLUMNS * 8
    return size, peak - before - size, took


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.parquet"
        write(path)
        table = Table("what", "figure", title=f"{path.stat().st_size / 1e9:.2f} GB of Parquet")
        for threads, to in ((None, "DuckDB's"), (1, "DuckDB's with one thread, as here")):
            for by, what in (("x0", "a float"), ("g", "an integer")):
                found = ratios(path, by, threads)
                figure = f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"
                table.add_row(f"filter by {what} and group, as a ratio to {to}", figure)
        size, beside, took = tensor(path)
        table.add_row(
            f"a tensor of {size / MB:.0f} MB: beside it at the peak", f"{beside / MB:.0f} MB"
        )
        table.add_row("… seconds", f"{took:.1f}")
        Console().print(table)


if __name__ == "__main__":
    main()
