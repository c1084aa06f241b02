"""Queries over data sets are run by a process that has their sources; an engine has the result."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mplang_data import apart
from mplang_data.apart import _ServerClient
from mplang_http import LocalCluster
from mplang_tables import to_tensor
from mplang_testing.waiting import DEADLINE, wait_until
from processes import descendants, readers_of
from pyarrow import csv

import mplang_core as mp
from mplang_core.errors import PartyError

ROWS = 4000
COLUMNS = {"id": "int64", "pay": "double", "town": "string"}
SECRET = b"neverofferedanywhere"
CLUSTER = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
KINDS = (
    "parquet:people.parquet",
    "csv:people.csv",
    "arrow:people.arrow",
    "duckdb:bank.duckdb#people",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of people in files of each kind, with a column that is not offered."""
    made = tmp_path_factory.mktemp("people")
    numbers = np.arange(ROWS)
    rows = pa.table({
        "id": numbers,
        "pay": np.where(numbers % 7, numbers * 0.5, np.nan),
        "town": [f"town{n % 9}" for n in numbers],
        "note": [SECRET.decode() + str(n) for n in numbers],
    })  # fmt: skip
    pq.write_table(rows, made / "people.parquet", row_group_size=500)
    csv.write_csv(rows, made / "people.csv")
    with pa.ipc.new_file(str(made / "people.arrow"), rows.schema) as writer:
        writer.write_table(rows)
    with duckdb.connect(str(made / "bank.duckdb")) as con:
        con.execute("CREATE TABLE people AS FROM rows")
    return made


def people(folder, source, **fields):
    kind, _, place = source.partition(":")
    told = {"source": f"{kind}:{folder}/{place}", "columns": COLUMNS, "readers": ["local"]}
    return {"bank": {"people": told | fields}}


@contextmanager
def on_simulator(data):
    with mp.Simulator(CLUSTER, data=data) as made:
        yield made


def by_town():
    """Return towns with the number of people who are paid much, and their mean pay."""
    t = mp.dataset("bank", "people")
    return mp.device("P0")(
        lambda t: (
            t.filter(t.pay > 100)
            .group_by("town")
            .agg(n=ibis._.count(), most=ibis._.id.max())
            .order_by("town")
        )
    )(t)


EXPECTED = """
    SELECT town, count(*) AS n, max(id) AS most FROM read_parquet('{}', can_have_nan = true)
    WHERE pay > 100 GROUP BY town ORDER BY town
"""


@pytest.mark.parametrize("source", KINDS)
def test_a_query_gives_what_bare_duckdb_gives(folder, source):
    """NaN is the greatest number, whichever reader has filtered the rows."""
    expected = duckdb.sql(EXPECTED.format(folder / "people.parquet")).to_arrow_table().to_pylist()
    with on_simulator(people(folder, source)) as host:
        for mode in ("standard", "launch"):
            found = mp.fetch(host, mp.evaluate(host, by_town, mode=mode))
            assert found.to_pylist() == expected


@pytest.fixture
def asked(monkeypatch):
    """The questions that kernels of a simulator ask about data sets."""
    from mplang_data import simulated

    seen = []
    for name in ("read", "query"):
        ask = getattr(simulated.HeldData, name)

        def noted(self, *args, ask=ask, name=name, **kwargs):
            seen.append(name)
            return ask(self, *args, **kwargs)

        monkeypatch.setattr(simulated.HeldData, name, noted)
    return seen


def test_what_is_only_queried_stays_at_its_source(folder, asked):
    with on_simulator(people(folder, KINDS[0])) as host:
        mp.evaluate(host, by_town)
    assert asked == ["query"]


def test_a_table_that_is_used_in_another_way_is_read(folder, asked):
    def program():
        t = mp.dataset("bank", "people", ["id"])
        count = mp.device("P0")(lambda t: t.agg(n=t.count()))(t)
        return count, mp.device("P0")(to_tensor)(t, rows=ROWS)

    with on_simulator(people(folder, KINDS[0])) as host:
        count, numbers = mp.fetch(host, mp.evaluate(host, program))
    assert (count.to_pylist(), numbers.shape) == ([{"n": ROWS}], (ROWS, 1))
    assert asked == ["read"]


def test_data_sets_of_one_party_are_joined_where_they_are(folder, asked):
    data = people(folder, KINDS[0])
    data["bank"]["others"] = people(folder, KINDS[3])["bank"]["people"]

    def program():
        ours, others = (mp.dataset("bank", name, ["id", "town"]) for name in ("people", "others"))
        return mp.device("P0")(lambda a, b: a.join(b, "id").agg(n=ibis._.count()))(ours, others)

    with on_simulator(data) as host:
        assert mp.fetch(host, mp.evaluate(host, program)).to_pylist() == [{"n": ROWS}]
    assert asked == ["query"]


def test_two_queries_of_one_value_see_one_state(tmp_path, folder, monkeypatch):
    """A source that changes between them ends the run: its results would contradict each other."""
    source = tmp_path / "people.parquet"
    source.write_bytes((folder / "people.parquet").read_bytes())
    from mplang_data import reading

    query = reading.query

    def changing(*args):
        result = query(*args)
        os.utime(source, ns=(0, 0))
        return result

    monkeypatch.setattr(reading, "query", changing)

    def program():
        t = mp.dataset("bank", "people", ["id"])
        first = mp.device("P0")(lambda t: t.agg(n=t.count()))(t)
        return first, mp.device("P0")(lambda t: t.agg(n=t.id.max()))(t)

    told = "it has changed since this run has read it before"
    with on_simulator(people(tmp_path, KINDS[0])) as host, pytest.raises(PartyError, match=told):
        mp.evaluate(host, program, mode="launch")


def test_an_engine_holds_no_value_of_a_column_that_is_not_offered(folder):
    """Nor does any other process that outlives the query: its memory is searched amid the run."""

    def program():
        t = mp.dataset("bank", "people", ["id", "town"])
        towns = mp.device("P0")(lambda t: t.group_by("town").agg(n=t.count()))(t)
        return mp.keep(towns)

    with (
        LocalCluster(["bank", "shop"], data=people(folder, KINDS[0])) as cluster,
        mp.connect("http", cluster.spec) as host,
    ):
        kept = mp.evaluate(host, program)
        wait_until(lambda: not readers_of(cluster.workers[0].pid), "the reader has ended")
        found = {pid: _memory(pid) for pid in descendants(cluster.workers[0].pid)}
        assert any(b"town8" in memory for memory in found.values())
        assert not [pid for pid, memory in found.items() if SECRET in memory]
        assert mp.fetch(host, mp.evaluate(host, lambda x: x, kept)).num_rows == 9


def _memory(pid):
    """Return what a process has in memory and may write to, as root sees it."""
    parts = []
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            ends, rights, *_ = line.split()
            if "r" not in rights or "[v" in line or " /" in line.replace("/memfd:", ""):
                continue  # of a library
            begin, end = (int(each, 16) for each in ends.split("-"))
            try:
                memory.seek(begin)
                parts.append(memory.read(end - begin))
            except (OSError, ValueError, OverflowError):  # of a device, or it is gone
                continue
    return b"".join(parts)


HOSTILE = {
    "a file": "SELECT * FROM read_csv('/etc/passwd')",
    "a file by its name": "SELECT * FROM '/etc/passwd'",
    "its own file": "SELECT * FROM read_parquet('/proc/self/fd/3')",
    "COPY": "COPY people TO '/tmp/people.csv'",
    "ATTACH": "ATTACH '/tmp/other.duckdb'",
    "LOAD": "LOAD httpfs",
    "SET": "SET threads = 8",
    "PRAGMA": "PRAGMA database_list",
    "two statements": "SELECT id FROM people; SELECT 1",
    "a table function": "SELECT * FROM duckdb_settings()",
    "a catalogue table": "SELECT * FROM information_schema.tables",
    "another table": "SELECT * FROM sqlite_master",
    "the attached file": 'SELECT note FROM "source 3".main.people',
    "a column that is not offered": "SELECT note FROM people",
    "a Python variable": "SELECT * FROM folder",
    "random": "SELECT random() AS x FROM people",
    "the time": "SELECT now() AS x FROM people",
}


@pytest.mark.parametrize("sql", HOSTILE.values(), ids=list(HOSTILE))
@pytest.mark.parametrize("source", [KINDS[0], KINDS[3]], ids=["parquet", "duckdb"])
def test_the_process_admits_the_sql_itself(folder, source, sql):
    """An engine that is taken over sends what no compiler made."""
    from mplang_data.holding import read_data_sets
    from mplang_data.reading import Asked, query

    from mplang_core import TableType
    from mplang_core.errors import AdmissionError

    (fields,) = people(folder, source)["bank"].values()
    data_set = read_data_sets({"people": fields}, "/")["people"]
    kind = TableType(tuple(COLUMNS.items()))
    with pytest.raises(AdmissionError, match=r"ibis\.run"):
        query({"people": Asked(data_set, kind)}, sql, kind, {}, lambda end: _nothing())


@contextmanager
def _nothing():
    yield


ENDLESS = {
    "recursion": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) "
    "SELECT max(n) AS id FROM r, people",
    "rows": "SELECT a.id FROM people a, people b, people c",
    "memory": "SELECT count(DISTINCT a.id * b.id * c.id) AS id FROM people a, people b, people c",
}


@pytest.mark.parametrize("sql", ENDLESS.values(), ids=list(ENDLESS))
def test_a_query_without_end_is_refused_or_ended(folder, sql):
    from mplang_data.holding import read_data_sets
    from mplang_data.reading import Asked, query

    from mplang_core import TableType
    from mplang_core.errors import MPLangError

    fields = people(folder, KINDS[0], seconds=2.0, size=200_000_000, result_rows=100_000)
    data_set = read_data_sets({"people": fields["bank"]["people"]}, "/")["people"]
    asked = {"people": Asked(data_set, TableType((("id", "int64"),)))}
    with pytest.raises(MPLangError, match="may not run|took longer|more than|Out of Memory"):
        query(asked, sql, TableType((("id", "int64"),)), {}, lambda end: _nothing())


def test_a_query_ends_with_its_session(folder, monkeypatch):
    """What is released ends the process at once, and not after its time."""
    from mplang_data import SourceError
    from mplang_data.holding import read_data_sets
    from mplang_data.reading import Asked, query, read

    from mplang_core import TableType

    monkeypatch.setattr(apart, "_server", _ServerClient())
    data_set = read_data_sets(people(folder, KINDS[0])["bank"], "/")["people"]
    kind = TableType((("id", "int64"),))

    @contextmanager
    def ended_at_once(end):
        end()
        yield

    sql = "SELECT count(*) AS id FROM people a, people b, people c"
    with pytest.raises(SourceError, match="has ended"):
        query({"people": Asked(data_set, kind)}, sql, kind, {}, ended_at_once)
    table = read_data_sets(people(folder, KINDS[3])["bank"], "/")["people"]
    with pytest.raises(SourceError, match="has ended"):
        read(Asked(table, kind), ended_at_once)


ENDLESS_COUNT = "SELECT count(*) AS id FROM people a, people b, people c WHERE a.id <> b.id + c.id"


def test_a_long_query_tells_its_owner_how_far_it_is(folder, monkeypatch):
    """And ends as soon as it is told to, whatever DuckDB is at."""
    from mplang_data import SourceError
    from mplang_data.holding import read_data_sets
    from mplang_data.reading import Asked, query

    from mplang_core import TableType

    for name in ("REPORTED", "REPORTED_LAST"):
        monkeypatch.setattr(apart, name, 0.1)
    data_set = read_data_sets(people(folder, KINDS[0])["bank"], "/")["people"]
    kind = TableType((("id", "int64"),))
    reports = []

    @contextmanager
    def watch(end):
        def report(seconds, percent):
            reports.append((seconds, percent))
            if percent is not None:
                end()

        yield report

    with pytest.raises(SourceError, match="has ended"):
        query({"people": Asked(data_set, kind)}, ENDLESS_COUNT, kind, {}, watch)
    passed = [seconds for seconds, _ in reports]
    assert passed == sorted(passed)
    assert 0 <= reports[-1][1] <= 100


def test_the_log_of_the_owner_has_it_and_a_session_that_has_ended_runs_nothing(
    folder, monkeypatch, caplog
):
    """Its question may have waited for a thread when its processes were ended."""
    from types import SimpleNamespace

    from mplang_data.section import SECTION

    monkeypatch.setattr(apart, "REPORTED", 0.1)
    fields = people(folder, KINDS[0])["bank"]
    server = SECTION.front(SECTION.read(fields, "/"), {})
    asker = SimpleNamespace(coordinator="local", session="s", parties=["bank"], rank=0)
    table = {"data": "people", "type": 'table<["id", "int64"]>', "ranges": []}
    args = {"tables": {"people": table}, "sql": ENDLESS_COUNT, "gives": table["type"]}
    caplog.set_level("INFO", "mplang.data")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.answer, asker, "query", args, ())
        wait_until(lambda: "local reads data set people for 0 s now" in caplog.text)
        server.release("s")
        assert "has ended" in answer.result(DEADLINE)[0]["failed"]
    fields, *_ = server.answer(asker, "query", args, ())
    assert "has ended" in fields["failed"]


def test_the_same_bytes_in_each_run(folder):
    with on_simulator(people(folder, KINDS[0])) as host:
        runs = [mp.fetch(host, mp.evaluate(host, by_town)) for _ in range(4)]
    assert all(each.equals(runs[0]) for each in runs)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"ranges": {"id": (0, 100)}}, "column 'id' has numbers outside of the range"),
        ({"ranges": {"pay": (0, 1e9)}}, "column 'pay' has numbers outside of the range"),  # NaN
        ({"nan": "error"}, "column 'pay' has NaN, which is an error"),
        ({"rows": 3}, "it does not have the 3 rows that are published"),
        ({"values": {"town": ("town1", "town2")}}, "column 'town' has values that are not in"),
        ({"columns": COLUMNS | {"pay": "int64"}}, "column 'pay' is double there, and int64"),
        ({"columns": COLUMNS | {"age": "int64"}}, "it has no column 'age'"),
    ],
)
@pytest.mark.parametrize("source", [KINDS[0], KINDS[3]], ids=["parquet", "duckdb"])
def test_what_is_published_is_checked_before_a_query(folder, source, fields, told):
    def program():
        t = mp.dataset("bank", "people")
        return mp.device("P0")(lambda t: t.agg(n=t.count()))(t)

    told = f"'people' is not what its owner published: .*{told}"
    data = people(folder, source, **fields)
    with on_simulator(data) as host, pytest.raises(PartyError, match=told):
        mp.evaluate(host, program)


def test_missing_numbers_are_null_in_a_query(folder):
    def program():
        t = mp.dataset("bank", "people")
        return mp.device("P0")(lambda t: t.agg(n=t.pay.count()))(t)

    for source in KINDS:
        with on_simulator(people(folder, source, nan="missing")) as host:
            found = mp.fetch(host, mp.evaluate(host, program)).to_pylist()
        assert found == [{"n": ROWS - len(range(0, ROWS, 7))}]
