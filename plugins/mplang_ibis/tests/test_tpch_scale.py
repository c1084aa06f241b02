"""The 22 queries of TPC-H at scale 0.01, run as at a party, against bare DuckDB."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from mplang_tables import arrow
from tpch_queries import QUERIES, check_same, of_expression, of_text, ran, sql

_PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
GENERATOR = shutil.which("tpchgen-cli", path=_PATH)

pytestmark = [
    pytest.mark.long("44 queries of TPC-H at scale 0.01"),
    pytest.mark.skipif(GENERATOR is None, reason="needs tpchgen-cli, of the extra `dev`"),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tpch")
    generate = [GENERATOR, "parquet", "--scale-factor", "0.01", f"--output-dir={folder}"]
    subprocess.run(generate, check=True, capture_output=True)
    return {path.stem: arrow.normalize(pq.read_table(path)) for path in folder.glob("*.parquet")}


@pytest.fixture(scope="module")
def reference(tables):
    with duckdb.connect() as con:
        for name, data in tables.items():
            con.register(name, data)
        yield {number: con.sql(sql(number)).to_arrow_table() for number in QUERIES}


@pytest.mark.parametrize("written", [of_expression, of_text])
@pytest.mark.parametrize("number", QUERIES)
def test_a_query_gives_what_bare_duckdb_gives(tables, reference, number, written):
    check_same(ran(written(number, tables), tables), reference[number])
