"""Faults in the lineage that an op declares: the kit finds them, and names op and column."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]
pytestmark = [
    pytest.mark.once,
    pytest.mark.needs("tables"),
]  # what is faulty gives other results elsewhere

PICK = '''
import pyarrow as pa
from mplang_analysis import Lineage, LineageRule, Selection, selected
from mplang_tables import arrow
from mplang_testing import LineageSuite, Of, Sample

import mplang_core as mp

KIND = mp.TableType((("id", "int64"), ("pay", "int64"), ("age", "int64")))
LIST = mp.TableType((("person", "int64"), ("since", "int64")))
X = pa.table({"id": [1, 2, 3], "pay": [4, 5, 6], "age": [20, 30, 40]})
Y = pa.table({"person": [1, 3], "since": [7, 8]})
ALL = [("id", "id"), ("pay", "pay"), ("age", "age")]
MATCHED = frozenset({(0, "id"), (1, "person")})
SAME = frozenset({((0, "id"), (1, "person"))})


def lineage(op, rank, operands):
    return selected(Selection(0, {columns}, {filtered}, {matched}, {same}), operands)


@mp.simple_op("fault.pick", interfaces=[{interface}], reads=())
def pick(x: mp.TableType, y: mp.TableType) -> mp.TableType:
    """Choose the rows of persons that are on a list, and old enough."""
    return x


@mp.kernel("fault.pick")
def choose(ctx, x, y):
    persons = y["person"].to_pylist()
    rows = [row for row in x.to_pylist() if {chosen}]
    return pa.Table.from_pylist({rows}, schema=arrow.schema(KIND))


class TestFaulty(LineageSuite):
    family = "fault"
    samples = {samples}
'''
RIGHT = {
    "columns": "ALL",
    "filtered": 'frozenset({(0, "age")})',
    "matched": "MATCHED",
    "same": "SAME",
    "interface": "LineageRule(lineage)",
    "chosen": 'row["id"] in persons and (row["age"] or 0) > 25',
    "rows": "rows",
    "samples": '(Sample("fault.pick", Of(KIND, X), Of(LIST, Y)),)',
}


def pick(**changes):
    source = PICK
    for name, value in {**RIGHT, **changes}.items():
        source = source.replace(f"{{{name}}}", value)
    return source


def test_without_a_fault_all_pass(run):
    result = run(pick())
    assert result.parseoutcomes() == {"passed": 4}, result.stdout.str()


@pytest.mark.parametrize(
    ("changes", "test", "lines"),
    [
        (
            {"filtered": "frozenset()"},
            "do_not_decide",
            [
                "fault.pick depends on column 'age' of operand 0, and does not say so",
                "expected: the same id, pay whatever is in 'age': it says that id, person decides",
                "to do: *name (i, 'age') in Selection.filtered or matched",
            ],
        ),
        (
            {"matched": "frozenset()", "same": "frozenset()"},
            "do_not_decide",
            ["fault.pick depends on column 'id' of operand 0, and does not say so"],
        ),
        (
            {"matched": 'frozenset({(0, "id")})', "same": "frozenset()"},
            "do_not_decide",
            ["fault.pick depends on column 'person' of operand 1"],
        ),
        (
            {"chosen": 'row["id"] in persons and sum(filter(None, y["since"].to_pylist())) % 2'},
            "do_not_decide",
            ["fault.pick depends on column 'since' of operand 1"],
        ),
        (
            {"rows": '[{**row, "pay": (row["pay"] or 0) + 1000} for row in rows]'},
            "rows_are_those",
            [
                "fault.pick gives rows that operand 0 does not have",
                "expected: id, pay, age of some rows of operand 0, each once and unchanged",
            ],
        ),
        ({"rows": "[*rows, *rows]"}, "rows_are_those", ["fault.pick gives rows that operand 0"]),
        (
            {"rows": '[{**row, "pay": row["age"]} for row in rows]'},
            "rows_are_those",
            ["fault.pick gives rows that operand 0 does not have"],
        ),
        (
            {"chosen": "True"},
            "rows_are_those",
            ["fault.pick says that t0.id and t1.person are the same in each row"],
        ),
        (
            {"columns": "ALL[:2]"},
            "rows_are_those",
            ["fault.pick says what its types contradict", "got: *lineage of the columns*"],
        ),
        (
            {"filtered": 'frozenset({(0, "city")})'},
            "rows_are_those",
            ["got: *a Selection names 'city' of operand 0, which has id, pay, age"],
        ),
        ({"samples": "()"}, "a_sample_of_every", ["*add *fault.pick"]),
        (
            {"interface": "LineageRule(lambda op, rank, operands: None)"},
            "a_sample_of_every",
            ["expected: *a sample whose result has a lineage", "got: *"],
        ),
    ],
)
def test_a_lineage_that_says_something_else(caught, changes, test, lines):
    caught(pick(**changes), test, *lines)
