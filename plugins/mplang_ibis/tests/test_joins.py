"""Joins by equal columns that give many times the rows of their tables fail."""

from __future__ import annotations

import pyarrow as pa
import pytest
from mplang_ibis import query, settings

from mplang_core import TableType
from mplang_core.ext import KernelError

KIND = TableType((("n", "int64"),))
COUNT = 'SELECT COUNT(*) AS "n" FROM '
ONE = "x JOIN y ON x.k = y.k"


def table(rows, keys):
    return pa.table({"k": [i % keys for i in range(rows)], "v": list(range(rows))})


def joined(sql, *tables):
    found = query.run_sql(COUNT + sql, dict(zip("xyz", tables, strict=False)), KIND)
    return found.to_pydict()["n"][0]


@pytest.fixture
def limit():
    before = settings.current
    yield lambda join: settings.configure({"join": join})
    settings.current = before


def test_a_join_may_give_sixteen_times_the_rows_of_its_larger_table():
    assert joined(ONE, table(64, 4), table(64, 4)) == 64 * 16
    with pytest.raises(KernelError, match="over 16 times the rows"):
        joined(ONE, table(64, 3), table(64, 3))
    assert joined("x LEFT JOIN y ON x.k = y.k", table(1000, 1000), table(10, 10)) == 1000


@pytest.mark.parametrize(
    "sql",
    [
        ONE + " WHERE x.v > 50",
        "x LEFT JOIN y ON x.k = y.k",
        "x FULL JOIN y USING (k)",
        "x JOIN y ON x.k + 1 = y.k + 1",
        "(SELECT x.k FROM x JOIN y ON x.k = y.k LIMIT 1) AS j",
        "(SELECT x.k FROM x JOIN y ON x.k = y.k) AS j WHERE j.k = 0",
        "x JOIN y ON x.k = y.k JOIN z ON y.k = z.k",
    ],
)
def test_the_limit_holds_for_every_way_to_write_a_join(sql):
    with pytest.raises(KernelError, match="aggregate one side"):
        joined(sql, table(100, 1), table(100, 1), table(100, 1))


def test_joins_of_joins_do_not_multiply_the_limit():
    """Each by itself gives ten times the rows of the larger one of its inputs."""
    tables = [table(100, 10)] * 3
    assert joined(ONE, *tables) == 1000
    with pytest.raises(KernelError, match="over 16 times the rows"):
        joined("x JOIN y ON x.k = y.k JOIN z ON y.k = z.k", *tables)


@pytest.mark.parametrize("how", ["", "MATERIALIZED", "NOT MATERIALIZED"])
@pytest.mark.parametrize("other", ["x", "j{}"])
def test_nor_do_joins_of_what_a_with_gives(how, other):
    """Each by itself gives eight times the rows of what it reads."""
    one = "j{} AS {} (SELECT a.k AS k FROM j{} AS a JOIN {} AS b ON a.k = b.k)"
    each = [one.format(i + 1, how, i, other.format(i)) for i in range(3)]
    query_of = f"WITH j0 AS {how} (SELECT x.k AS k FROM x), {', '.join(each)} SELECT COUNT(*) AS n "
    with pytest.raises(KernelError, match="over 16 times the rows"):
        query.run_sql(f"{query_of} FROM j3", {"x": table(64, 8)}, KIND)
    assert query.run_sql(f"{query_of} FROM j1", {"x": table(64, 8)}, KIND).to_pydict() == {
        "n": [512]
    }


def test_a_worker_s_owner_sets_the_limit(limit):
    limit(100)
    assert joined(ONE, table(100, 1), table(100, 1)) == 10_000
    limit(2)
    with pytest.raises(KernelError, match="over 2 times"):
        joined(ONE, table(10, 3), table(10, 3))
