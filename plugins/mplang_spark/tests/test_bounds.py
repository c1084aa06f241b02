"""Bounds of queries on Spark: what takes long or gives much is an error."""

from __future__ import annotations

import pyarrow as pa
import pytest
from mplang_ibis.ext import SPARK_SETTINGS, Bounds, Offered, UnfitTableError
from mplang_spark.run import run_on_spark
from mplang_tables import arrow

from mplang_core import TableType
from mplang_core.errors import KernelError

pytestmark = pytest.mark.slow("a Spark server")

GIVES = TableType((("x", "int64"),))
MANY = {"t": Offered(GIVES, ("default", "many"))}
LONG = "SELECT count(*) AS x FROM t a, t b, t c, t d WHERE a.x + b.x + c.x + d.x = 7"


@pytest.fixture(scope="module")
def connection(server):
    server.create("many", pa.table({"x": range(30_000)}))
    with server.connect() as made:
        yield made


def on_spark(connection, sql, offered=MANY, gives=GIVES, **bounds):
    return list(run_on_spark(connection, sql, offered, gives, Bounds(**bounds)))


def test_a_large_result_comes_in_batches_and_within_bounds(connection):
    batches = on_spark(connection, "SELECT x FROM t")
    assert sum(batch.num_rows for batch in batches) == 30_000
    assert batches[0].schema == arrow.schema(GIVES)
    for bound in ({"rows": 20_000}, {"bytes": 100_000}):
        with pytest.raises(KernelError, match="gives more than"):
            on_spark(connection, "SELECT x FROM t", **bound)
    (empty,) = on_spark(connection, "SELECT x FROM t WHERE x < 0")
    assert (empty.num_rows, empty.schema) == (0, arrow.schema(GIVES))


def test_decimals_keep_their_digits_or_fail(server, connection):
    from decimal import Decimal

    money = pa.array([Decimal("99999999.99")] * 3, pa.decimal128(10, 2))
    server.create("money", pa.table({"x": money}))
    offered = {"t": Offered(TableType((("x", "decimal128(10, 2)"),)), ("default", "money"))}
    gives = TableType((("s", "decimal128(38, 4)"),))
    (batch,) = on_spark(connection, "SELECT sum(x * x) AS s FROM t", offered, gives)
    assert str(batch["s"][0]) == "29999999994000000.0003"
    small = TableType((("x", "int8"),))
    with pytest.raises(KernelError, match="'x' .* does not fit in int8"):
        on_spark(connection, "SELECT 300 AS x FROM t", offered, small)
    wide = "CAST(x AS DECIMAL(38, 2))"
    with pytest.raises(KernelError, match="Spark fails"):
        on_spark(connection, f"SELECT {' * '.join([wide] * 6)} AS s FROM t", offered, gives)


def test_a_query_that_takes_long_is_ended(connection):
    with pytest.raises(KernelError, match=r"longer than 3 s"):
        on_spark(connection, LONG, seconds=3)
    (batch,) = on_spark(connection, "SELECT max(x) AS x FROM t")
    assert batch["x"].to_pylist() == [29_999]


@pytest.mark.parametrize(
    ("select", "kind", "told"),
    [
        ("1.5", "decimal128(4, 2)", r"is decimal\(2,1\) there, .* casts it to DECIMAL\(4,2\)"),
        ("CAST(1 AS INT)", "int64", "is integer there, .* casts it to BIGINT"),
        ("'a' COLLATE UNICODE_CI", "string", "is string collate UNICODE_CI there"),
    ],
)
def test_a_view_of_other_types_is_refused_with_the_cast(server, connection, select, kind, told):
    server.execute(f"CREATE OR REPLACE VIEW of_others AS SELECT {select} AS c")
    offered = {"t": Offered(TableType((("c", kind),)), ("default", "of_others"))}
    with pytest.raises(UnfitTableError, match=told):
        on_spark(connection, "SELECT count(c) AS x FROM t", offered)


def test_options_of_a_session_that_others_have_set_are_set_back(server, connection):
    connection.configure(
        {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo"}
    )
    on_spark(connection, "SELECT max(x) AS x FROM t")
    assert connection.configure(SPARK_SETTINGS) == SPARK_SETTINGS


def test_a_table_of_the_session_stands_for_none_of_the_owners(server, connection):
    """Names have their schema, so a temporary view of the same name is not read."""
    list(connection.query("CREATE TEMPORARY VIEW many AS SELECT 1L AS x", 60))
    (batch,) = on_spark(connection, "SELECT max(x) AS x FROM t")
    assert batch["x"].to_pylist() == [29_999]
