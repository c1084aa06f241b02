"""Matching gives what Python's sets have in common, on the simulator and on workers."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet
import pytest
from matching import CLUSTER, PROTOCOLS, check, matched, program, table
from mplang_http import LocalCluster

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError

NFC, NFD = "caf\u00e9", "cafe\u0301"
SETS = {
    "equal": (["a", "b"], ["b", "a"]),
    "disjoint": (["a", "b"], ["c", "d"]),
    "one": (["a"], ["a"]),
    "empty": ([], ["a"]),
    "both empty": ([], []),
    "half": ([f"id {i}" for i in range(40)], [f"id {i}" for i in range(20, 60)]),
    "unicode": ([NFC, "\u4e16\u754c", "x"], [NFD, "\u4e16\u754c"]),
    "newline and comma": (["a\nb", 'c,"d"', "e\r\n", ""], ["a\nb", 'c,"d"', "e\r", ""]),
    "null": (["a", None, "NULL", None], [None, "NULL", "a"]),
    "duplicates": (["a", "a", "b", "c", "a"], ["c", "c", "d", "a", "c"]),
    "leading zeros": (["1", "01", "1.0"], ["1", "001"]),
}


def simulated(a, b, **arguments):
    data = {"bank": {"keys": a}, "shop": {"keys": b}}
    with mp.Simulator(CLUSTER, data=data) as sim:
        return matched(sim, **arguments)


@pytest.mark.parametrize("name", SETS)
def test_both_parties_have_what_sets_have_in_common(name):
    a, b = SETS[name]
    check(simulated(table(a, pa.string()), table(b, pa.string())), a, b)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_protocol_matches(protocol):
    a, b = SETS["half"]
    found = simulated(table(a), table(b), protocol=protocol)
    check(found, a, b)
    for learn, mine in (("bank", found[0]), ("shop", found[1])):
        (alone,) = simulated(table(a), table(b), protocol=protocol, learn=learn)
        assert {row["id"] for row in alone} == {row["id"] for row in mine}


EQUAL = {
    "integers": ((pa.int8(), [1, -1, 7]), (pa.int64(), [7, 300, -1])),
    "signs": ((pa.uint64(), [2**64 - 1, 5]), (pa.int64(), [-1, 5])),
    "decimals": (
        (pa.decimal128(5, 2), [Decimal("1.50"), Decimal("2.25")]),
        (pa.decimal128(12, 4), [Decimal("1.5000"), Decimal("2.2501")]),
    ),
    "wide decimals": (
        (pa.decimal128(38, 0), [Decimal(10**37), Decimal(3)]),
        (pa.decimal128(38, 38), [Decimal("0.5"), Decimal("0.1")]),
    ),
    "dates": (
        (pa.date32(), [datetime.date(2020, 2, 29), datetime.date(1969, 1, 1)]),
        (pa.date32(), [datetime.date(1969, 1, 1)]),
    ),
    "times": (
        (pa.timestamp("s"), [datetime.datetime(3000, 1, 1), datetime.datetime(1500, 1, 2)]),
        (
            pa.timestamp("us"),
            [datetime.datetime(3000, 1, 1), datetime.datetime(1500, 1, 2, 0, 0, 1)],
        ),
    ),
    "bools": ((pa.bool_(), [True, False]), (pa.bool_(), [True, None])),
    "bytes": ((pa.binary(), [b"\x00\xff", b""]), (pa.binary(), [b"\x00\xff", b"\x00"])),
}


@pytest.mark.parametrize("name", EQUAL)
def test_values_are_compared_whatever_their_types(name):
    (kind, a), (other, b) = EQUAL[name]
    check(simulated(table(a, kind), table(b, other)), a, b)


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (pa.int64(), pa.string(), "int64 does not match string"),
        (pa.date32(), pa.timestamp("us"), "date32.* does not match timestamp"),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), "timestamp.us. does not match"),
        (pa.float64(), pa.float64(), "double is not a type of a key"),
        (pa.decimal128(5, 0), pa.int64(), "decimal128.* does not match int64"),
    ],
)
def test_types_of_which_no_values_are_equal_are_refused_with_the_line(a, b, why):
    with pytest.raises(TraceError, match=rf"matching\.py:\d+.*'id' and 'id': {why}"):
        simulated(table([], a), table([], b))


def test_a_key_of_several_columns_is_equal_in_each():
    a = pa.table({"x": ["a,b", "a", "p"], "y": ["c", "b,c", "q"], "n": [1, 2, 3]})
    b = pa.table({"u": ["a", "p"], "v": ["b,c", "q"], "m": [10, 20]})
    data = {"bank": {"keys": a}, "shop": {"keys": b}}

    def pairs():
        left, right = mp.dataset("bank", "keys"), mp.dataset("shop", "keys")
        return mp.match(left, right, on=[("x", "u"), ("y", "v")])

    with mp.Simulator(CLUSTER, data=data) as sim:
        mine, theirs = (each.to_pylist() for each in mp.fetch(sim, mp.evaluate(sim, pairs)))
    assert sorted(mine[0]) == ["match", "n"]
    by_number = {row["match"]: row["n"] for row in mine}
    assert {by_number[row["match"]]: row["m"] for row in theirs} == {2: 10, 3: 20}


def test_a_key_may_be_an_expression_of_its_owner():
    emails = pa.table({"email": [" Ann@X.org", "bo@x.org "], "row": [0, 1]})
    data = {"bank": {"keys": table(["ann@x.org", "cy@x.org"])}, "shop": {"keys": emails}}

    def by_email():
        orders = mp.dataset("shop", "keys")
        cleaned = mp.device("P1")(lambda t: t.select("row", id=t.email.lower().strip()))(orders)
        return mp.match(mp.dataset("bank", "keys"), cleaned, on="id")

    with mp.Simulator(CLUSTER, data=data) as sim:
        mine, theirs = (each.to_pylist() for each in mp.fetch(sim, mp.evaluate(sim, by_email)))
    assert mine == theirs == [{"row": 0, "match": 0}]


def test_more_keys_than_declared_are_an_error_that_tells_no_number():
    with pytest.raises(PartyError, match="more different keys than 2"):
        simulated(table(["a", "b", "c"]), table(["a"]), rows={"bank": 2})


def test_fewer_in_common_than_asked_for_tell_nothing_else():
    a, b = table(["a", "b", "c"]), table(["b", "c", "d"])
    assert len(simulated(a, b, at_least=2)[0]) == 2
    for learn in ("both", "bank", "shop"):
        with pytest.raises(PartyError, match="fewer than 3 keys are in common"):
            simulated(a, b, at_least=3, learn=learn)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"on": "nobody"}, "the table of bank has no column 'nobody', but id, row"),
        ({"on": []}, "on is a column, a list of them"),
        ({"on": [("id", "nobody")]}, "the table of shop has no column 'nobody', but id, row"),
        ({"learn": "nobody"}, "learn is 'both', 'bank' or 'shop', got 'nobody'"),
        ({"learn": "P0"}, "learn is 'both', 'bank' or 'shop', got 'P0'"),
        ({"learn": ["bank"]}, "learn is 'both', 'bank' or 'shop'"),
        ({"rows": {"bank": -1}}, "rows of bank is a number of keys from 1"),
        ({"rows": {"bank": 0}}, "rows of bank is a number of keys from 1"),
        ({"rows": {"bank": "50"}}, "rows of bank is a number of keys from 1"),
        ({"rows": {"nobody": 5}}, "rows is a number of keys by party, rows="),
        ({"rows": 50}, "rows is a number of keys by party, rows="),
        ({"rows": []}, "rows is a number of keys by party, rows="),
        ({"at_least": -1}, "at_least is a number of keys"),
        ({"number": "row"}, "give another name by number="),
        ({"protocol": "NONE"}, "no matcher 'NONE'"),
    ],
)
def test_wrong_arguments_are_refused_with_the_line(arguments, why):
    with pytest.raises(TraceError, match=rf"matching\.py:\d+.*{why}"):
        simulated(table(["a"]), table(["a"]), **arguments)


def test_what_is_no_table_of_another_party_is_refused():
    def twice():
        a = mp.dataset("bank", "keys")
        return mp.match(a, a, on="id")

    def numbers():
        return mp.match(mp.put("P0", [1, 2]), mp.dataset("shop", "keys"), on="id")

    data = {"bank": {"keys": table(["a"])}, "shop": {"keys": table(["a"])}}
    with mp.Simulator(CLUSTER, data=data) as sim:
        with pytest.raises(TraceError, match="both tables are those of bank"):
            mp.evaluate(sim, twice)
        with pytest.raises(TraceError, match="match takes tables"):
            mp.evaluate(sim, numbers)


def test_workers_match_as_the_simulator_does(tmp_path):
    a, b = SETS["duplicates"]
    data = {}
    for party, ids in (("bank", a), ("shop", b)):
        path = tmp_path / f"{party}.parquet"
        pa.parquet.write_table(table(ids), path)
        columns = {"id": "string", "row": "int64"}
        data[party] = {"keys": {"source": f"parquet:{path}", "columns": columns}}
    with LocalCluster(["bank", "shop"], data=data) as cluster:
        for mode in ("launch", "standard"):
            with mp.connect("http", cluster.spec, mode=mode) as host:
                for protocol in PROTOCOLS:
                    check(matched(host, protocol=protocol), a, b)
                (alone,) = matched(host, learn="shop", rows={"bank": 9, "shop": 9})
                assert [row["id"] for row in alone].count("c") == 3


def test_a_program_is_traced_once_and_its_text_can_be_read():
    with mp.catalogue(
        {p: {"keys": {"columns": {"id": "string", "row": "int64"}}} for p in ("bank", "shop")}
    ):
        traced = mp.trace(mp.TraceContext(CLUSTER), lambda: program(rows={"bank": 5}))
    text = str(traced.program)
    assert "match.match" in text
    assert mp.parse(text).digest == traced.program.digest


def test_two_spellings_of_one_key_are_refused_where_the_column_is_kept():
    a, b = table([NFC, NFD]), table([NFC])
    with pytest.raises(PartyError, match="two texts of column 'id' are one key"):
        simulated(a, b)
    bank, shop = simulated(a, b, keep=False)
    assert [row["row"] for row in bank] == [0, 1]
    assert [row["match"] for row in (*bank, *shop)] == [0, 0, 0]


def test_a_column_called_as_the_numbers_are_is_refused_with_the_line():
    renamed = pa.table({"id": ["a"], "match": ["b"]})
    with pytest.raises(TraceError, match=r"matching\.py:\d+.*give another name by number="):
        simulated(renamed, renamed, on="match", keep=False)


@pytest.mark.parametrize("on", [[3], None, [None], {"id": "row"}, [("id", 3)], 7])
def test_what_names_no_columns_is_refused_with_the_line(on):
    with pytest.raises(TraceError, match=r"matching\.py:\d+.*on is a column"):
        simulated(table(["a"]), table(["a"]), on=on)


def test_sets_of_very_different_sizes_match():
    a, b = [f"{i}" for i in range(3)], [f"{i}" for i in range(2)]
    check(simulated(table(a), table(b), rows={"bank": 600_000, "shop": 5}), a, b)
