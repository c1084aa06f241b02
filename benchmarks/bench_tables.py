"""Benchmark of queries where the data is: TPC-H 1 and 6 at scale 1, beside bare DuckDB, in turn.

The queries run on a worker over Parquet files that tpchgen-cli makes, and in bare DuckDB on these
files. What a query costs beside DuckDB's own time is told in milliseconds, too.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from ibis.backends.tests.tpc import conftest
from mplang_http import LocalCluster
from mplang_tables import arrow
from mplang_worker.base.allowed_plugins import installed_plugins
from rich.console import Console
from rich.table import Table

import mplang_core as mp

TIMES = 10
SQL = Path(conftest.__file__).parent / "queries/duckdb/h"
QUERIES = ("01", "06")


def generate(folder: Path) -> Path:
    """Make the table ``lineitem`` of scale 1, and return where it is."""
    program = shutil.which("tpchgen-cli", path=Path(sys.executable).parent)
    assert program is not None, "needs tpchgen-cli, of the extra `dev`"
    arguments = ["parquet", "--scale-factor", "1", "--tables=lineitem", f"--output-dir={folder}"]
    subprocess.run([program, *arguments], check=True, capture_output=True)
    return folder / "lineitem.parquet"


def measure(path: Path, number: str, threads: int | None) -> list[tuple[float, float]]:
    """Return seconds of a query in bare DuckDB and on a worker, with so many threads, in turn."""
    text = (SQL / f"{number}.sql").read_text()
    bare = text.replace("lineitem", f"read_parquet('{path}')")
    columns = dict(arrow.type_of(arrow.plain(pq.read_schema(path).empty_table())).columns)
    data = {"node0": {"lineitem": {"source": f"parquet:{path}", "columns": columns}}}
    plugins = dict(installed_plugins())
    if threads:
        version = plugins["mplang-ibis"]
        plugins["mplang-ibis"] = {"version": version, "settings": {"threads": threads}}

    def program():
        table = mp.dataset("node0", "lineitem")
        return mp.sql("node0", text.replace("lineitem", "{lineitem}"), lineitem=table)

    measured = []
    with (
        LocalCluster(1, data=data, mode="production", plugins=plugins) as workers,
        mp.connect("http", workers.spec) as host,
    ):
        compiled = mp.CompiledFunction(program, None)
        for _ in range(TIMES + 1):
            begin = time.perf_counter()
            config = {"threads": threads} if threads else {}
            expected = duckdb.connect(config=config).sql(bare).to_arrow_table()
            between = time.perf_counter()
            result = mp.fetch(host, mp.evaluate(host, compiled))
            end = time.perf_counter()
            assert result.num_rows == expected.num_rows
            measured.append((between - begin, end - between))
    return measured[1:]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = generate(Path(folder))
        table = Table("TPC-H, scale 1", "threads", "DuckDB, ms", "ratio", "beside DuckDB, ms")
        for number in QUERIES:
            for threads in (1, None):
                measured = measure(path, number, threads)
                bare = 1e3 * statistics.median(each for each, _ in measured)
                ratio = statistics.median(ours / theirs for theirs, ours in measured)
                beside = 1e3 * statistics.median(ours - theirs for theirs, ours in measured)
                shown = str(threads or "all")
                table.add_row(number, shown, f"{bare:.0f}", f"{ratio:.2f}", f"{beside:+.0f}")
        Console().print(table)


if __name__ == "__main__":
    main()
