"""Sources that are not there: free of charge for the coordinator, and their owner learns why."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from functools import partial

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mplang_data import SourceError, SourceUnreachableError, apart
from mplang_data.holding import read_data_sets
from mplang_data.section import DataSetServer
from mplang_http import LocalCluster
from mplang_http.cli.status import cluster_status
from mplang_testing.waiting import wait_until

import mplang_core as mp
from mplang_core.errors import PartyError

ROWS = pa.table({"age": [41, 42]})
COLUMNS = {"age": "int64"}
LIMIT = 2


def write_database(path, column="age"):
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", ROWS)
        connection.execute(f"CREATE TABLE people AS SELECT age AS {column} FROM frame")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bank")


@pytest.fixture(scope="module")
def bank(folder):
    """Return a worker with a database and a file, which allows two failed runs."""
    write_database(folder / "bank.duckdb")
    pq.write_table(ROWS, folder / "others.parquet")
    fields = {"columns": COLUMNS, "readers": ["local"]}
    data = {
        "people": {"source": f"duckdb:{folder}/bank.duckdb#people", **fields},
        "others": {"source": f"parquet:{folder}/others.parquet", **fields},
    }
    (folder / "log").mkdir()
    options = {"limits": {"failures": LIMIT}, "log": str(folder / "log"), "mode": "production"}
    with LocalCluster(["bank"], data={"bank": data}, **options) as cluster:
        yield cluster


def used(cluster):
    return cluster_status(cluster.spec)[0]["failures"]


def test_a_source_that_is_not_there_costs_no_failed_run(bank, folder):
    with mp.connect("http", bank.spec) as host:
        for place, name in [("bank.duckdb", "people"), ("others.parquet", "others")]:
            shutil.move(folder / place, folder / "away")
            for _ in range(LIMIT + 1):
                with pytest.raises(PartyError, match=r"data\.read"):
                    mp.evaluate(host, lambda name=name: mp.keep(mp.dataset("bank", name)))
            shutil.move(folder / "away", folder / place)
            mp.evaluate(host, lambda name=name: mp.keep(mp.dataset("bank", name)))
        assert used(bank) == f"0 of {LIMIT}"
    log = "".join(file.read_text() for file in (folder / "log").iterdir())
    assert "data set people cannot be reached" in log
    assert "bank.duckdb" in log  # why, for the owner
    assert "does not count" in log
    assert "does not match what is published" not in log


def probe(cluster):
    """Return status and state of /ready, what /health says is missing, and ``mplang status``."""
    address = cluster.spec.nodes[0].address
    with urllib.request.urlopen(f"{address}/health") as answer:
        missing = json.load(answer)["missing"]
    try:
        with urllib.request.urlopen(f"{address}/ready") as answer:
            status, body = answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        status, body = error.code, json.load(error)
    return status, body["state"], missing, cluster_status(cluster.spec)[0]["why"]


def test_a_worker_is_not_ready_while_a_source_is_not_there(bank, folder):
    wait_until(lambda: probe(bank) == (200, "ready", [], ""), "what an earlier test took is there")
    shutil.move(folder / "others.parquet", folder / "away")
    with mp.connect("http", bank.spec) as host, pytest.raises(PartyError):
        mp.evaluate(host, lambda: mp.keep(mp.dataset("bank", "others")))
    wait_until(lambda: probe(bank)[0] == 503, "the failed run has it probed")
    _, state, missing, why = probe(bank)
    assert (state, missing) == ("lacking", ["data"])
    assert why.startswith("a source of its data sets cannot be reached")
    shutil.move(folder / "away", folder / "others.parquet")
    wait_until(lambda: probe(bank) == (200, "ready", [], ""))
    log = "".join(file.read_text() for file in (folder / "log").iterdir())
    assert "not ready: data set others: a file of it cannot be opened: No such file" in log


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("postgresql://reader@127.0.0.1:1/bank#people", "takes no connections: .*refused"),
        ("duckdb:/none/bank.duckdb#people", "No such file"),
        ("csv:/none/people.csv", "No such file"),
    ],
)
def test_a_probe_says_why_for_the_owner(source, why):
    fields = {"people": {"source": source, "columns": COLUMNS}}
    (missing,) = DataSetServer(read_data_sets(fields, "/"), {}).missing().values()
    assert re.search(why, missing)


def test_a_query_that_fails_is_counted(bank, folder):
    (folder / "bank.duckdb").unlink()
    write_database(folder / "bank.duckdb", column="years")
    with mp.connect("http", bank.spec) as host:
        with pytest.raises(PartyError, match=r"data\.read"):
            mp.evaluate(host, lambda: mp.keep(mp.dataset("bank", "people")))
        assert used(bank) == f"1 of {LIMIT}"


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("duckdb:{}/none.duckdb#people", SourceUnreachableError),
        ("duckdb:{}/bank.duckdb#nobody", SourceError),
        ("postgresql://reader@127.0.0.1:1/bank#people", SourceUnreachableError),
        ("parquet:{}/none.parquet", SourceUnreachableError),
        ("csv:{}/none*.csv", SourceUnreachableError),
    ],
)
def test_only_what_could_not_be_connected_to_is_unreachable(tmp_path, source, error):
    write_database(tmp_path / "bank.duckdb")
    fields = {"source": source.format(tmp_path), "columns": COLUMNS}
    with pytest.raises(SourceError) as caught:
        read_data_sets({"people": fields}, "/")["people"].open()
    assert type(caught.value) is error


def test_a_duckdb_file_that_another_process_writes_to_is_unreachable(tmp_path):
    write_database(tmp_path / "bank.duckdb")
    source = f"duckdb:{tmp_path}/bank.duckdb#people"
    data_set = read_data_sets({"people": {"source": source, "columns": COLUMNS}}, "/")["people"]
    code = "import duckdb, sys; con = duckdb.connect(sys.argv[1]); print(flush=True); input()"
    command = [sys.executable, "-c", code, str(tmp_path / "bank.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        with pytest.raises(SourceUnreachableError):
            data_set.open()
        writer.communicate(b"\n")
    data_set.open().close()


def test_a_reader_that_has_connected_cannot_say_that_it_has_not(tmp_path, monkeypatch):
    """Rows that take the reader over come after the connection, which cannot be taken back."""
    (tmp_path / "evil_reader.py").write_text(
        "import os\n"
        "from mplang_data.apart.child import Task\n"
        "from mplang_data import SourceError\n"
        "def read(asked, files):\n"
        "    if asked['evil']: os.write(asked['line'], b'1')\n"
        "    raise SourceError('it was never there')\n"
        "TASK = Task(read, 'it fails')\n"
    )
    monkeypatch.setattr(apart, "_server", apart._ServerClient())  # which finds the module
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    with pytest.raises(SourceUnreachableError):
        apart.run_apart("evil_reader", {"evil": False}, [], connects=True)
    with pytest.raises(SourceError) as caught:
        apart.run_apart("evil_reader", {"evil": True}, [], connects=True)
    assert type(caught.value) is SourceError


def test_whether_a_source_is_asked_for_tells_nothing_free_of_charge(bank, folder):
    """Where private data decides that, the failure is one bit of it."""

    def perhaps():
        others, people = (partial(mp.dataset, "bank", name) for name in ("others", "people"))
        return mp.keep(mp.uniform_cond(mp.constant(True, parties=0), others, people))

    with mp.connect("http", bank.spec) as host:
        before = int(used(bank).split()[0])
        shutil.move(folder / "others.parquet", folder / "away")
        with pytest.raises(PartyError, match=r"data\.read"):
            mp.evaluate(host, perhaps)
        shutil.move(folder / "away", folder / "others.parquet")
        wait_until(lambda: used(bank) == f"{before + 1} of {LIMIT}", "it counts")
