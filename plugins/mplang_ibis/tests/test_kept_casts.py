"""A cast to the type that Ibis infers already is said in SQL: DuckDB may give another type."""

from __future__ import annotations

from decimal import Decimal

import ibis
import pyarrow as pa
import pytest

import mplang_core as mp

TABLE = pa.table(
    {
        "pay": pa.array([Decimal("1.25"), Decimal("2.10")], pa.decimal128(10, 2)),
        "i": pa.array([3, 5], pa.int32()),
    }
)


@pytest.mark.parametrize(
    ("fn", "kind", "expected"),
    [
        (lambda t: t.agg(x=t.pay.mean().cast("decimal(10, 2)")), "decimal128(10, 2)", ["1.68"]),
        (
            lambda t: t.select(x=(t.pay * t.pay).cast("decimal(10, 2)")),
            "decimal128(10, 2)",
            ["1.56", "4.41"],
        ),
        (
            lambda t: t.mutate(y=t.pay * t.pay).select(x=ibis._.y.cast("decimal(10, 2)")),
            "decimal128(10, 2)",
            ["1.56", "4.41"],
        ),
        (lambda t: t.agg(x=t.pay.mean()), "double", ["1.675"]),
        (lambda t: t.agg(x=t.i.sum().cast("int64")), "int64", ["8"]),
        (lambda t: t.select(x=(t.i << 2).cast("int64")), "int64", ["12", "20"]),
    ],
)
def test_a_cast_is_what_the_user_gets(simulate, fn, kind, expected):
    sim = simulate(1)
    with mp.with_ctx(sim):
        found = mp.fetch(sim, mp.device("P0")(fn)(mp.put("P0", TABLE)))
    assert str(found.schema.field("x").type) == kind
    assert list(map(str, found.column("x").to_pylist())) == expected


def test_a_cast_keeps_the_name_and_a_given_column_stays_as_it_is(simulate):
    sim = simulate(1)
    with mp.with_ctx(sim):
        table = mp.put("P0", TABLE)
        found = mp.fetch(sim, mp.device("P0")(lambda t: t.select(t.i.cast("int32")))(table))
        assert found.column_names == ["i"]
        found = mp.fetch(sim, mp.device("P0")(lambda t: t.agg(t.i.sum().cast("int64")))(table))
        assert found.column_names == ["Sum(i)"]
    t = ibis.table({"i": "int32"}, name="t")
    assert t.i.sum().cast("int64").op() == t.i.sum().op()  # Ibis outside of us stays as it is
