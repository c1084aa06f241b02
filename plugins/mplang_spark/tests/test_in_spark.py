"""Queries over tables of Spark run there; a party has their result."""

from __future__ import annotations

import pyarrow as pa
import pytest
from joining import CLUSTER, COLUMNS, EXPECTED, ROWS, asked as asked, by_town, two_tables

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError

pytestmark = [pytest.mark.slow("a Spark server"), pytest.mark.needs("spark")]


@pytest.fixture(scope="module")
def bank(server):
    numbers = range(1, ROWS + 1)
    people = {
        "id": list(numbers), "pay": [n * 0.5 for n in numbers],
        "town": [f"town{n % 9}" for n in numbers], "note": ["secret"] * ROWS,
    }  # fmt: skip
    server.create("people", pa.table(people))
    towns = pa.table({"town": [f"town{n}" for n in range(9)], "zip": pa.array(range(9), "int32")})
    server.create("towns", towns)
    return server


def data(server, **fields):
    return two_tables(server, "default", **fields)


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_join_is_run_by_spark(bank, asked, mode):
    with mp.Simulator(CLUSTER, data=data(bank)) as host:
        rows = mp.fetch(host, mp.evaluate(host, by_town, mode=mode)).to_pylist()
    assert (rows, asked) == (EXPECTED, ["query"])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"ranges": {"pay": (0, 10)}}, "column 'pay' has numbers outside of the range"),
        ({"rows": 3}, "it does not have the 3 rows"),
        ({"values": {"town": ("town1",)}}, "column 'town' has values that are not in the list"),
        ({"columns": {**COLUMNS, "id": "int32"}}, "column 'id' is long there, and int32"),
        ({"columns": {**COLUMNS, "age": "int64"}}, "it has no column 'age'"),
    ],
)
def test_what_is_published_is_checked_by_spark(bank, fields, reason):
    with (
        mp.Simulator(CLUSTER, data=data(bank, **fields)) as host,
        pytest.raises(PartyError, match=f"not what its owner published: .*{reason}"),
    ):
        mp.evaluate(host, by_town)


def test_a_table_that_is_read_whole_comes_by_a_query_of_its_columns(bank):
    """A column that is not offered stays in Spark."""

    def shown():
        return mp.device("P0")(lambda t: t)(mp.dataset("bank", "towns"))

    with mp.Simulator(CLUSTER, data=data(bank)) as host:
        assert mp.fetch(host, mp.evaluate(host, shown)).num_rows == 9


def test_what_spark_would_answer_otherwise_is_refused_with_the_line(bank):
    def rounded():
        return mp.device("P0")(lambda t: t.mutate(pay=t.pay.round()))(mp.dataset("bank", "people"))

    with (
        mp.Simulator(CLUSTER, data=data(bank)) as host,
        pytest.raises(TraceError, match=r"bank's people: round .* does not run on spark: .*write"),
    ):
        mp.evaluate(host, rounded)


def test_a_query_of_sql_text_is_run_by_spark(bank, asked):
    def top():
        return mp.sql(
            "bank", "SELECT id, pay FROM {people} ORDER BY id DESC LIMIT 2",
            people=mp.dataset("bank", "people"),
        )  # fmt: skip

    with mp.Simulator(CLUSTER, data=data(bank)) as host:
        rows = mp.fetch(host, mp.evaluate(host, top)).to_pylist()
    assert (rows, asked) == ([{"id": 3000, "pay": 1500.0}, {"id": 2999, "pay": 1499.5}], ["query"])


def test_a_server_that_has_gone_is_a_source_that_cannot_be_reached(bank):
    there = data(bank)
    for each in there["bank"].values():
        each["source"] = each["source"].replace(f":{bank.port}", ":1")
    with (
        mp.Simulator(CLUSTER, data=there) as host,
        pytest.raises(PartyError, match="cannot be reached|not reached|no calls"),
    ):
        mp.evaluate(host, by_town)
