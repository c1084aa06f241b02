"""Lineage: what a guard covers, and when it covers nothing."""

from __future__ import annotations

import pytest
from mplang_analysis import (
    Function,
    Guarding,
    GuardRule,
    Lineage,
    LineageRule,
    Origin,
    Selection,
    selected,
)

import mplang_core as mp
from mplang_core.ext import OpDef, VerifyError, op_defs

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


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (SAME._replace(table=2), "a Selection names operand 2 of 2"),
        (SAME._replace(columns=(("id", "age"),)), "names 'age' of operand 0, which has id, pay"),
        (SAME._replace(filtered=frozenset([(1, "pay")])), "names 'pay' of operand 1, which has pe"),
        (SAME._replace(matched=frozenset([(3, "pay")])), "a Selection names operand 3 of 2"),
    ],
)
def test_a_selection_of_what_is_not_there_is_refused(wrong, reason):
    with pytest.raises(ValueError, match=reason):
        selected(wrong, [PEOPLE, SALES])


KIND = mp.TableType((("id", "int64"), ("pay", "int64")))
READS = ("data set people.id", "data set people.pay")


def read(op, rank, operands):
    return Lineage.of(rank, zip(("id", "pay"), READS, strict=True))


@pytest.fixture(autouse=True)
def _forget():
    yield
    for name in ("read", "op", "guard"):
        op_defs.remove(f"vouched.{name}")


def define(name, interfaces, reads=()):
    made = OpDef(name, lambda op, world: [KIND], interfaces=interfaces, reads=reads)
    op_defs.add(name, made, provider="tests")


def other_columns(op, rank, operands):
    return Lineage.of(rank, [("id", "data set people.id")])


def other_data(op, rank, operands):
    columns = op.inputs[0].type.columns
    return Lineage.of(rank, [(name, f"data set sales.{name}") for name, _ in columns])


def other_operand(op, rank, operands):
    return selected(Selection(0, (("id", "name"),)), operands)


GUARDS = {
    "another unit": (Guarding(["name"], {}, 20), "the column 'name' of operand 0, which has"),
    "another use": (Guarding(["id"], {"age": ["sum"]}, 20), "the column 'age' of operand 0"),
    "no unit": (Guarding([], {"pay": ["sum"]}, 20), "no unit, so it counts nobody"),
    "a role": (Guarding(["id"], {"pay": ["unit"]}, 20), "the role 'unit', which lineage alone"),
    "another function": (
        Guarding(["id"], {"pay": ["by", "var"]}, 20),
        "the functions ['var'], and its GuardRule declares ['sum']",
    ),
    "a share": (Guarding(["id"], {}, 20, max_share=0), "numbers out of their range"),
}
RULES = {
    "other columns": (other_columns, "lineage of the columns ['id'], not ['id', 'pay']"),
    "other data": (other_data, "'data set sales.id' of party 0, which no operand has"),
    "another column": (other_operand, "a Selection names 'name' of operand 0, which has id, pay"),
}


@pytest.mark.parametrize("case", [*RULES, *GUARDS])
def test_what_an_op_vouches_for_is_held_against_its_types(case):
    """The disclosure table names the op and its line, and does not go by what it says."""
    rule, reason = RULES.get(case) or GUARDS[case]
    given = LineageRule(rule) if case in RULES else GuardRule(lambda op: rule, [Function("sum")])
    define("vouched.read", [LineageRule(read)], READS)
    define("vouched.op", [given])
    define("vouched.guard", [GuardRule(lambda op: Guarding(["id"], {}, 20))])
    program = mp.parse(
        """
        program "vouched" on {0} () {
          %0 = simp.pcall_static() {parties = {0}} do () {
            %1 = vouched.read() : KIND
            %2 = vouched.op(%1) : KIND at "here.py:3"
            %3 = vouched.guard(%2) : KIND
            return %3
          } : KIND@{0}
          return %0
        }
    """.replace("KIND", str(KIND))
    )
    with pytest.raises(VerifyError) as caught:
        mp.analysis.disclosure(program)
    assert "vouched.op at here.py:3: its interface " in str(caught.value)
    assert reason in str(caught.value)
