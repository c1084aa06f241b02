"""What a join refuses, and how it says so."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from mplang_joins.ops import enter, salt
from secret_joining import PARTIES, cluster, joined, table

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError

A = table({"a": 1, "b": 2}, "x0")
B = table({"b": 3, "c": 4}, "x1")


def join(a=A, b=B, spec=None, **arguments):
    """Join two tables on a simulator."""
    with mp.Simulator(spec or cluster(), data={"bank": {"t": a}, "shop": {"t": b}}) as sim:
        return joined(sim, 2, **arguments)


def refused(program, text):
    """Check that a program is refused."""
    data = {"bank": {"t": A}, "shop": {"t": B}}
    with mp.Simulator(cluster(), data=data) as sim, pytest.raises(TraceError, match=text):
        mp.evaluate(sim, program)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"on": "name"}, "the table of bank has no column 'name', but id, x0"),
        ({"on": [("id", "name")]}, "the table of shop has no column 'name', but id, x1"),
        ({"on": []}, r"on is a column, a list of them, or of tuples .* got \[\]"),
        ({"on": [("id", "id", "id")]}, r"of the 2 tables, as \[\('id', 'customer'\)\], got"),
        ({"on": 3}, "on is a column, .* got 3"),
        ({"how": "outer"}, "how is one of inner, left, semi, anti, got 'outer'"),
        ({"rows": {"lab": 5}}, r"rows is a number of rows by party, rows=\{'bank': 1200\}, got"),
        ({"rows": {"bank": 0, "shop": 5}}, "rows of bank is a number from 1 to 134,217,728, got 0"),
        ({"rows": {"bank": True, "shop": 5}}, "rows of bank is a number .* got True"),
        ({"to": "bank"}, "to names the SPU that it joins on, SP0, got 'bank'"),
    ],
)
def test_a_wrong_argument_is_refused_with_its_line(arguments, text):
    with pytest.raises(TraceError, match=rf"secret_joining\.py:\d+: join: .*{text}"):
        join(**arguments)


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([1, 2], "columns 'id', 'id': string does not match int64"),
        ([1.0, 2.0], "double is not a type of a key"),
        ([datetime.date(2020, 1, 1)] * 2, r"string does not match date32\[day\]"),
    ],
)
def test_keys_of_which_none_can_be_equal_are_refused_with_their_types(ids, text):
    with pytest.raises(TraceError, match=text):
        join(b=pa.table({"id": ids, "x1": [1, 2]}))


@pytest.mark.parametrize("values", [["u", "v"], [Decimal("1.5"), Decimal("2.5")]])
def test_a_column_that_has_no_numbers_is_refused_with_what_to_do(values):
    with pytest.raises(
        TraceError, match=r"column 'x1' is .* secret shares have no place for: leave"
    ):
        join(b=pa.table({"id": ["a", "b"], "x1": values}))


def test_what_no_result_has_may_be_of_any_type():
    assert join(b=pa.table({"id": ["b", "c"], "x0": ["u", None]}), how="semi") == [[("x0", 2)]]


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(TraceError, match="bank and shop both have a column 'x0'; rename one"):
        join(b=table({"b": 1}, "x0"))


def test_tables_of_one_party_are_refused():
    def program():
        return mp.join(mp.dataset("bank", "t"), mp.dataset("bank", "t"), on="id")

    refused(program, "two tables are those of bank; join them first")


@pytest.mark.parametrize("value", [3, [1, 2], A, None])
def test_what_is_no_table_at_a_party_is_refused(value):
    text = "join takes tables at their parties, got"
    refused(lambda: mp.join(mp.dataset("bank", "t"), value, on="id"), text)


def test_one_table_is_no_join():
    refused(lambda: mp.join(mp.dataset("bank", "t"), on="id"), "takes 2 to 16 tables, got 1")


def test_a_cluster_without_an_spu_is_told():
    plain = mp.ClusterSpec.from_dict(
        {
            "nodes": [{"name": "bank"}, {"name": "shop"}],
            "devices": {name: {"kind": "PPU", "members": [name]} for name in PARTIES[:2]},
        }
    )
    with pytest.raises(TraceError, match="the cluster has no SPU to join on"):
        join(spec=plain)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (table([("a", 1), ("b", 2), ("a", 3)], "x1"), "two rows have one key"),
        (table({f"{i}": i for i in range(13)}, "x1"), "the table has more than the 12 rows"),
        (table({"a": 1, "b": None}, "x1"), "column 'x1' has nulls"),
    ],
)
def test_what_does_not_fit_fails_at_its_party_and_tells_no_value(table, text):
    with pytest.raises(PartyError, match=text) as failure:
        join(b=table)
    assert failure.value.rank == 1


@pytest.mark.parametrize(
    "attrs",
    [
        {"kinds": (("string", 1),)},
        {"kinds": (("integer", 0),)},
        {"kinds": ()},
        {"on": (), "kinds": ()},
        {"on": ("name",)},
        {"columns": ("name",)},
        {"columns": ("id",)},
        {"side": 2},
        {"side": -1},
        {"sides": 1},
        {"sides": 17},
        {"rows": -1},
        {"rows": 1 << 28},
    ],
)
def test_a_program_that_was_made_up_is_refused(attrs):
    right = {"on": ("id",), "kinds": (("string", 0),), "columns": ("x0",)}
    given = {**right, "side": 0, "sides": 2, "rows": 5, **attrs}

    def program():
        return mp.device("bank")(enter)(mp.device("bank")(salt)(), mp.dataset("bank", "t"), **given)

    refused(program, "joins.enter")


def test_keys_of_two_units_are_compared_by_value():
    seconds = pa.table({"id": pa.array([10**9, 5], pa.timestamp("s")), "x0": [1, 2]})
    nanos = pa.table({"id": pa.array([10**18, 5], pa.timestamp("ns")), "x1": [3, 4]})
    assert join(seconds, nanos) == [[("x0", 1), ("x1", 3)]]


def test_two_texts_that_are_one_by_nfc_are_one_key():
    with pytest.raises(PartyError, match="two rows have one key"):
        join(b=table({"\u00e9": 1, "e\u0301": 2}, "x1"))


def bounds(offered):
    """Return the sizes of what enters a join of two data sets that are offered so."""

    def program():
        return mp.join(mp.dataset("bank", "t"), mp.dataset("shop", "t"), on="id")

    columns = {"id": "string", "x1": "int64"}
    one = {"columns": {"id": "string", "x0": "int64"}, "rows": {"at_most": 40}}
    with mp.catalogue({"bank": {"t": one}, "shop": {"t": {"columns": columns, **offered}}}):
        traced = mp.trace(mp.TraceContext(cluster()), program)
    inner = [op for op in traced.program.graph.walk() if op.opcode == "joins.enter"]
    return [op.outputs[0].type.shape for op in inner]


def test_the_bound_is_what_the_owner_publishes():
    assert bounds({"rows": 7}) == [(40,), (7,)]
    assert bounds({"rows": 7, "keys": {"id": {"at_most": 3}}}) == [(40,), (3,)]


def test_a_bound_that_nobody_says_is_asked_for():
    with pytest.raises(TraceError, match=r"the table of shop .* say rows=\{'shop': 1200\}, or let"):
        bounds({})


def test_numbers_of_all_types_come_out_as_they_went_in():
    sent = {
        "bool_": True, "int8": -5, "uint16": 60_000, "int64": -(2**40), "uint64": 2**40,
        "float32": 0.5, "float64": -2.25,
    }  # fmt: skip
    columns = {kind: pa.array([value], getattr(pa, kind)()) for kind, value in sent.items()}
    one = pa.table({"id": ["a"], **columns})
    (found,) = join(a=one, b=table({"a": 1}, "x1"))
    assert dict(found) == {**sent, "x1": 1}
