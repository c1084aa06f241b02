"""Processes that read sources are forked ahead, and ended once they say that they are done."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mplang_data import SourceError, apart
from mplang_data.apart import _ServerClient
from mplang_data.holding import read_data_sets
from mplang_data.reading import Asked, query
from mplang_testing.waiting import stays, wait_until
from processes import children, children_named

from mplang_core import TableType


@pytest.fixture
def server(monkeypatch):
    """A server of this test's own, whose processes find modules beside it."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}")
    made = _ServerClient()
    made.ahead = True
    monkeypatch.setattr(apart, "_server", made)
    return made


def run(*codes, kinds=("parquet",)):
    return apart.run_apart("invading", {"codes": codes}, [], kinds=kinds)


def spares_of(server):
    return children_named(server._process.pid, "mplang-spare")


def spare_of(server):
    """Wait for the process that is forked ahead, and return its ID."""
    (pid,) = wait_until(lambda: spares_of(server), "a process is forked ahead")
    return pid


def test_what_is_asked_next_is_done_by_a_spare_process(server):
    run("pass")
    pid = spare_of(server)
    assert run(f"assert os.getpid() == {pid}") == [None]
    assert spare_of(server) != pid


def test_only_what_asks_for_it_has_processes_forked_ahead(server):
    server.ahead = False
    run("pass")
    stays(lambda: not spares_of(server))
    server.ahead = True
    run("pass")
    assert spare_of(server)


def test_a_spare_process_has_open_what_a_forked_one_has(server):
    """No socket of the server's, and no descriptor of a process."""
    count = "raise OSError(len(os.listdir('/proc/self/fd')), '')"  # an errno, by its name
    forked = run(count)
    spare_of(server)
    assert run(count) == forked


def test_a_spare_process_that_has_ended_is_replaced(server):
    run("pass")
    os.kill(pid := spare_of(server), signal.SIGKILL)
    wait_until(lambda: pid not in spares_of(server), "it has ended")
    assert run("pass") == [None]
    assert spare_of(server) != pid


def test_a_spare_process_is_prepared_for_the_kinds_of_later_data_sets(server):
    imported = "assert 'psycopg' in sys.modules"
    with pytest.raises(SourceError, match="it was not invaded"):
        run(imported, kinds=["csv"])
    spare_of(server)
    assert run(imported, kinds=["postgresql"]) == [None]
    spare_of(server)
    assert run(imported, kinds=["csv"]) == [None]


@pytest.mark.parametrize("said", [b"2", b"22222222", b"x", b"12"])
def test_a_process_that_says_that_it_is_done_is_ended_at_once(server, said):
    run("pass")
    with pytest.raises(SourceError, match="has ended"):
        run(f"import signal; os.write(asked['line'], {said!r}); signal.pause()")
    spare = spare_of(server)
    wait_until(lambda: children(server._process.pid) == [spare], "the process has ended")


def test_a_query_gives_the_same_by_a_fork_and_by_a_spare_process(server, tmp_path):
    numbers = np.random.default_rng(7).normal(size=5000)
    pq.write_table(pa.table({"x": numbers}), tmp_path / "x.parquet")
    fields = {"source": f"parquet:{tmp_path}/x.parquet", "columns": {"x": "float64"}}
    (data_set,) = read_data_sets({"x": fields}, "/").values()
    kind = TableType((("x", "double"),))
    found = []
    for _ in range(2):
        sql = "SELECT sum(x) AS x FROM x WHERE x > 0"
        result = query({"x": Asked(data_set, kind)}, sql, kind, {})
        found.append(os.pread(result.file, 1 << 20, 0))
        os.close(result.file)
        spare_of(server)
    assert found[0] == found[1]
