"""Guards count by the columns that ops of tables leave as they are, and by no others."""

from __future__ import annotations

import pytest
from mplang_tables import cast, encode, fill_nulls, one_hot, to_integers

import mplang_core as mp

COLUMNS = {"id": "int64", "city": "string", "pay": "int64"}
CLUSTER = mp.ClusterSpec([{"name": "bank"}])
KIND = mp.TableType((("id", "int64"), ("city", "string"), ("pay", "double")))
REPLACED = [
    (encode, {"column": "city", "values": ("Bern", "Ulm"), "others": True}, "city"),
    (one_hot, {"column": "city", "values": ("Bern", "Ulm"), "others": True}, "city_Ulm"),
    (fill_nulls, {"columns": ("pay",), "value": 0}, "pay"),
    (to_integers, {"column": "pay", "unit": "cents"}, "pay"),
    (cast, {"type": KIND}, "pay"),
]


def guards(op, attrs, used):
    """Return the guards of a mean of a column, after an op."""

    def program():
        t = mp.device("P0")(op)(mp.dataset("bank", "people"), **attrs)
        return mp.guard.aggregate(t, unit="id", k=20, mean=(used, "mean"))

    with mp.catalogue({"bank": {"people": {"columns": COLUMNS, "unit": "id"}}}):
        compiled = mp.compile(program, cluster_spec=CLUSTER).trace(None)
    return [row.guards for row in mp.analysis.disclosure(compiled).rows if row.what == "result"]


@pytest.mark.parametrize(("op", "attrs", "replaced"), REPLACED)
def test_a_guard_counts_by_columns_that_an_op_leaves(op, attrs, replaced):
    other = "id" if replaced == "pay" else "pay"
    assert guards(op, attrs, other) == [("guard k=20",)]


@pytest.mark.parametrize(("op", "attrs", "replaced"), REPLACED)
def test_no_guard_counts_by_columns_that_an_op_makes(op, attrs, replaced):
    assert guards(op, attrs, replaced) == [()]
