"""Benchmark of queries where the data is, beside bare DuckDB, in turn.

TPC-H 1 and 6 at scale 1, and 0.9 GB of Parquet with filter and group, run on a worker, and in bare
DuckDB on the same files. What a query costs beside DuckDB's own time is told in milliseconds, too,
and what a program of one constant takes that is run in turn with DuckDB: no query can take less,
and where a machine takes long to wake processes up that is most of it.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
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
ROWS = 25_000_000
GROUPED = (
    "SELECT town, count(*) AS n, sum(age) AS ages FROM people WHERE pay > 0.4 GROUP BY 1 ORDER BY 1"
)


@dataclass(frozen=True)
class Query:
    """A query over one file.

    Attributes:
        name: what the table calls it.
        table: the name of the file in the SQL.
        path: the file.
        sql: the SQL.
    """

    name: str
    table: str
    path: Path
    sql: str


@dataclass(frozen=True)
class Measured:
    """Seconds of a run in bare DuckDB, of one on a worker, and of a program of one constant."""

    bare: float
    worker: float
    least: float


def queries(folder: Path) -> list[Query]:
    """Make the files, and return the queries."""
    program = shutil.which("tpchgen-cli", path=Path(sys.executable).parent)
    assert program is not None, "needs tpchgen-cli, of the extra `dev`"
    arguments = ["parquet", "--scale-factor", "1", "--tables=lineitem", f"--output-dir={folder}"]
    subprocess.run([program, *arguments], check=True, capture_output=True)
    people = folder / "people.parquet"
    duckdb.sql(
        "SELECT hash(i) AS id, random() AS pay, random() AS rate, random() AS share, "
        "(hash(i + 1) % 90)::INTEGER AS age, (hash(i + 2) % 1000)::INTEGER AS town "
        f"FROM range({ROWS}) AS t(i)"
    ).write_parquet(str(people), compression="uncompressed")
    tpch = folder / "lineitem.parquet"
    asked = [
        Query(f"TPC-H {each}", "lineitem", tpch, (SQL / f"{each}.sql").read_text())
        for each in ("01", "06")
    ]
    size = people.stat().st_size / 1e9
    return [*asked, Query(f"{size:.1f} GB, filter and group", "people", people, GROUPED)]


def measure(query: Query, threads: int | None) -> list[Measured]:
    """Return what a query takes with so many threads, in turn."""
    bare = query.sql.replace(query.table, f"read_parquet('{query.path}')")
    columns = dict(arrow.type_of(arrow.plain(pq.read_schema(query.path).empty_table())).columns)
    data_set = {"source": f"parquet:{query.path}", "columns": columns}
    plugins = dict(installed_plugins())
    if threads:
        version = plugins["mplang-ibis"]
        plugins["mplang-ibis"] = {"version": version, "settings": {"threads": threads}}
    text = query.sql.replace(query.table, "{table}")
    config = {"threads": threads} if threads else {}
    measured = []
    with (
        LocalCluster(1, data={"node0": {"t": data_set}}, mode="production", plugins=plugins) as ws,
        mp.connect("http", ws.spec) as host,
    ):
        asked = mp.CompiledFunction(
            lambda: mp.sql("node0", text, table=mp.dataset("node0", "t")), None
        )
        least = mp.CompiledFunction(lambda: mp.constant(1), None)
        for _ in range(TIMES + 1):
            times = [time.perf_counter()]
            expected = duckdb.connect(config=config).sql(bare).to_arrow_table()
            times.append(time.perf_counter())
            result = mp.fetch(host, mp.evaluate(host, asked))
            times.append(time.perf_counter())
            assert result.num_rows == expected.num_rows
            duckdb.connect(config=config).sql(bare).to_arrow_table()
            times.append(time.perf_counter())
            mp.fetch(host, mp.evaluate(host, least))
            times.append(time.perf_counter())
            first, second, _, last = (after - before for before, after in pairwise(times))
            measured.append(Measured(first, second, last))
    return measured[1:]


def main() -> None:
    """Print the table."""
    columns = ("query", "threads", "DuckDB, ms", "ratio", "beside DuckDB, ms", "one constant, ms")
    with tempfile.TemporaryDirectory() as folder:
        table = Table(*columns, title="Queries over Parquet at one worker, over HTTP")
        for query in queries(Path(folder)):
            for threads in (1, None):
                found = measure(query, threads)
                bare = 1e3 * statistics.median(each.bare for each in found)
                ratio = statistics.median(each.worker / each.bare for each in found)
                beside = 1e3 * statistics.median(each.worker - each.bare for each in found)
                least = 1e3 * statistics.median(each.least for each in found)
                cells = f"{bare:.0f}", f"{ratio:.2f}", f"{beside:+.0f}", f"{least:.0f}"
                table.add_row(query.name, str(threads or "all"), *cells)
        Console().print(table)


if __name__ == "__main__":
    main()
