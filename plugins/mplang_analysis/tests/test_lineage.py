"""Lineage: what a guard covers, and when it covers nothing."""

from __future__ import annotations

import pytest
from mplang_analysis import Lineage, Origin, Selection, selected

PEOPLE = Lineage.of(0, [("id", "data set people.id"), ("pay", "data set people.pay")])
SALES = Lineage.of(1, [("person", "data set sales.person"), ("sum", "data set sales.sum")])
ID, PAY = Origin(0, "data set people.id"), Origin(0, "data set people.pay")
PERSON, SUM = Origin(1, "data set sales.person"), Origin(1, "data set sales.sum")
SAME = Selection(
    0,
    (("id", "id"), ("pay", "pay")),
    matched=frozenset([(0, "id"), (1, "person")]),
    same=frozenset([((0, "id"), (1, "person"))]),
)


def test_a_guard_covers_all_that_was_read_and_counts_by_what_is_matched():
    matched = selected(SAME, [PEOPLE, SALES])
    assert matched is not None
    found, why = matched.guards("guard", ["id"], {"pay": ["mean"]}, 20)
    assert why == ""
    assert found.keys() == {ID, PAY, PERSON, SUM}
    assert found[ID].units == ("data set people.id",)
    assert found[SUM].units == ("data set sales.person",)
    assert {origin: each.uses for origin, each in found.items()} == {
        ID: ("match", "unit"), PAY: ("mean",), PERSON: ("match", "unit"), SUM: (),
    }  # fmt: skip


def test_a_guard_by_another_column_counts_nobody_of_the_other_table():
    matched = selected(SAME, [PEOPLE, SALES])
    assert matched is not None
    found, _ = matched.guards("guard", ["pay"], {"id": ["count"]}, 20)
    assert found[SUM].units == ()


@pytest.mark.parametrize(("unit", "uses"), [("pay", {}), ("id", {"pay": ["sum"]})])
def test_a_computed_column_is_none_that_a_guard_takes(unit, uses):
    computed = selected(Selection(0, (("id", "id"), ("pay", None))), [PEOPLE])
    assert computed is not None
    assert computed.guards("guard", [unit], uses, 20) == ({}, "column 'pay' is computed")
    assert selected(Selection(0, (("id", "id"),), frozenset([(0, "pay")])), [computed]) is None


def test_a_filter_by_the_unit_lets_noise_through_and_no_guard():
    chosen = selected(Selection(0, SAME.columns, frozenset([(0, "id")])), [PEOPLE])
    assert chosen is not None
    found, why = chosen.guards("guard", ["id"], {}, 20)
    assert found == {}
    assert "a filter names the unit, 'id'" in why
    assert chosen.guards("dp", ["id"], {})[0].keys() == {ID, PAY}


def test_what_came_in_by_another_way_is_not_covered():
    loose = PEOPLE.with_loose([PAY])
    assert loose.guards("guard", ["id"], {}, 20)[0].keys() == {ID}


def test_a_data_set_that_is_on_both_sides_is_not_covered():
    other = Lineage.of(0, [("boss", "data set people.boss"), ("id", "data set people.id")])
    matched = selected(SAME._replace(matched=frozenset(), same=frozenset()), [PEOPLE, other])
    assert matched is not None
    assert matched.guards("guard", ["id"], {}, 20) == ({}, "")


def test_rows_of_no_data_set_have_no_lineage():
    assert selected(SAME, [None, SALES]) is None
    with_a_list = selected(SAME, [PEOPLE, None])
    assert with_a_list is not None
    assert with_a_list.matched == {ID}
    assert with_a_list.same == frozenset()
