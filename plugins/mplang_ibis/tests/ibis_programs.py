"""Tables and programs that the tests of tables share."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
from mplang_tables import arrow, table

import mplang_core as mp

DAY = datetime.date
SALES = [
    {"id": 1, "shop": "a", "price": Decimal("1.10"), "day": DAY(2024, 2, 29), "rate": 0.5},
    {"id": 2, "shop": "b", "price": Decimal("2.25"), "day": DAY(2024, 3, 1), "rate": None},
    {"id": 3, "shop": "a", "price": None, "day": DAY(2023, 12, 31), "rate": -1.0},
    {"id": 2**53 + 1, "shop": None, "price": Decimal("99999999.99"), "day": None, "rate": 4.0},
    {"id": None, "shop": "ü'; --", "price": Decimal("-0.01"), "day": DAY(1969, 1, 1), "rate": 0.0},
]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("shop", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("rate", pa.float64()),
    ]
)
SHOPS = {"shop": ["a", "b", "c", None], "city": ["Bern", "Basel", "Zug", "Chur"]}


def sales():
    return mp.device("P0")(table(pa.Table.from_pylist(SALES, SCHEMA)))()


def at(party, op, *args, **attrs):
    return mp.device(party)(op)(*args, **attrs)


def rows(sim, program, mode):
    result = mp.evaluate(sim, program, mode=mode)
    found = mp.fetch(sim, result)
    assert arrow.type_of(found) == result.base_type
    return found.to_pylist()


KIND = mp.TableType((("a", "int64"),))
