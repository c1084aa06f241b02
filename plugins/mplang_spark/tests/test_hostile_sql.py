"""Hostile SQL is refused before anything of it is sent to Spark."""

from __future__ import annotations

import odd_rows
import pytest
from mplang_ibis.engines import Offered, to_dialect
from mplang_spark.address import parse_address

from mplang_core.errors import AdmissionError

T = {"t": Offered(odd_rows.KIND, ("default", "odd"))}

HOSTILE = [
    "SELECT reflect('java.lang.System', 'exit', '1') AS x FROM t",
    "SELECT java_method('java.lang.Runtime', 'getRuntime') AS x FROM t",
    "SELECT try_reflect('java.util.UUID', 'randomUUID') AS x FROM t",
    "SELECT transform(i) USING 'sh' AS x FROM t",
    "SELECT * FROM parquet.`/etc/passwd`",
    'SELECT * FROM text."/etc/passwd"',
    "SELECT * FROM read_files('/etc')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT x FROM range(1000000000000) AS g(x)",
    "SELECT explode(sequence(1, 1000000000)) AS x FROM t",
    "SELECT i FROM t; DROP TABLE odd",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT i FROM t",
    "COPY t TO '/tmp/x'",
    "ATTACH '/etc/passwd' AS x",
    "LOAD httpfs",
    "PRAGMA version",
    "ADD JAR '/tmp/evil.jar'",
    "SET spark.sql.ansi.enabled = false",
    "CREATE FUNCTION f AS 'Evil' USING JAR '/tmp/evil.jar'",
    "CACHE TABLE odd",
    "REFRESH TABLE odd",
    "EXPLAIN SELECT i FROM t",
    "DESCRIBE odd",
    "SHOW TABLES",
    "DELETE FROM t",
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT x FROM r",
    "SELECT my_function(i) AS x FROM t",
    "SELECT default.my_function(i) AS x FROM t",
    "SELECT python_udf(i) AS x FROM t",
    "SELECT current_user() AS x FROM t",
    "SELECT current_catalog() AS x FROM t",
    "SELECT input_file_name() AS x FROM t",
    "SELECT _metadata.file_path AS x FROM t",
    "SELECT version() AS x FROM t",
    "SELECT raise_error('x') AS x FROM t",
    "SELECT uuid() AS x FROM t",
    "SELECT now() AS x FROM t",
    "SELECT random() AS x FROM t",
    "SELECT /*+ BROADCAST(t) */ secret AS x FROM t",
    "SELECT x FROM information_schema.tables",
    "SELECT x FROM system.session.variables",
    "SELECT i FROM global_temp.t",
    "SELECT i FROM t TABLESAMPLE (1 PERCENT)",
    "SELECT ${spark.master} AS x FROM t",
]


@pytest.mark.parametrize("sql", HOSTILE)
def test_it_is_refused_before_it_is_sent(sql):
    with pytest.raises(AdmissionError):
        to_dialect(sql, "spark", T)


def test_a_hint_is_a_comment_that_is_left_out():
    assert "BROADCAST" not in to_dialect("SELECT /*+ BROADCAST(t) */ i FROM t", "spark", T).sql


@pytest.mark.parametrize(
    "text",
    [
        "", "sc://", "http://host:1", "sc://user:word@host:1", "sc://host:1/path", "sc://host:99999",
        "sc://host:1/;token=s3cret", "sc://host:1/;use_ssl=perhaps",
        "sc://host:1/;use_ssl=true;token_file=relative", "sc://host:1/;token_file=/etc/token",
        "sc://host:1?x=y", "unix:/run/spark.sock",
    ],
)  # fmt: skip
def test_a_place_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match=r"place|port|Port|use_ssl|token"):
        parse_address(text)
