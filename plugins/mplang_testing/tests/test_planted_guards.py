"""Faults in what a guard declares: the kit finds them, and names guard, column and unit."""

from __future__ import annotations

import pytest
from mplang_analysis import Function, Words
from mplang_testing import guards

pytest_plugins = ["pytester"]
pytestmark = [
    pytest.mark.once,
    pytest.mark.needs("tables"),
]  # what is faulty gives other results elsewhere

GUARD = '''
from collections import defaultdict

import numpy as np
import pyarrow as pa
from mplang_analysis import Function, Guarding, GuardRule
from mplang_tables import arrow
from mplang_testing import GuardSuite, Of, Sample

import mplang_core as mp
from mplang_core.ext import OPTIONAL

GIVES = mp.TableType((("city", "string"), ("total", "double"), ("told", "int64")))
KIND = mp.TableType(
    (("id", "int64"), ("city", "string"), ("pay", "double"), ("age", "int64"))
)


def guarding(op):
    return Guarding({units}, {uses}, {k}, {epsilon}, max_share={max_share})


@mp.simple_op("fault.total", interfaces=[GuardRule(guarding, {functions})], reads=())
def total(x: mp.TableType) -> mp.TableType:
    """Add up by city."""
    return GIVES


def has(value):
    return value is not None and value == value


@mp.kernel("fault.total")
def add(ctx, x):
    groups = defaultdict(list)
    for row in x.to_pylist():
        if {rows}:
            groups[row["city"]].append(row)
    told = []
    for city, rows in sorted(groups.items()):
        units = defaultdict(float)
        for row in rows:
            if {counts}:
                units[row["id"]] += abs(row["pay"] or 0.0)
        pays = [row["pay"] for row in rows if has(row["pay"])]
        largest = max(units.values(), default=0.0)
        if {enough}:
            told.append((city, {total}, {told}))
    columns = zip(*told) if told else ((), (), ())
    return pa.table(dict(zip(GIVES.columns_by_name, columns)), schema=arrow.schema(GIVES))


class TestFaulty(GuardSuite):
    family = "fault"
    samples = {samples}
'''.replace("GIVES.columns_by_name", '("city", "total", "told")')
RIGHT = {
    "units": '["id"]',
    "uses": '{"city": ["by"], "pay": ["sum", "count"]}',
    "k": "3",
    "epsilon": "0",
    "max_share": "600_000",
    "functions": "()",
    "rows": 'row["id"] is not None',
    "counts": 'has(row["pay"])',
    "enough": "len(units) >= 3 and largest <= 0.6 * sum(units.values())",
    "total": "sum(pays)",
    "told": "len(pays)",
    "samples": '(Sample("fault.total", Of(KIND, arrow.schema(KIND).empty_table())),)',
}


WORDS = Words([Function("sum", lambda kind: kind == "double"), Function("count")])


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """What the entry point of the package would name."""
    given = {"fault": WORDS}
    monkeypatch.setattr(guards, "words_of", given.__getitem__)
    return given


def guard(**changes):
    source = GUARD
    for name, value in {**RIGHT, **changes}.items():
        source = source.replace(f"{{{name}}}", value)
    return source


def test_without_a_fault_all_pass(run):
    result = run(guard())
    assert result.parseoutcomes() == {"passed": 10}, result.stdout.str()


ENOUGH = "len(rows) >= 3 and largest <= 0.6 * sum(units.values())"
DOMINANT = "fault.total tells a number of which one unit adds more than max_share = 0.6"
FEW = "fault.total tells something of fewer than k = 3 units"


@pytest.mark.parametrize(
    ("changes", "test", "lines"),
    [
        (
            {"enough": ENOUGH},
            "fewer_units",
            [FEW, "expected: what it gives of no rows", "to do: *"],
        ),
        ({"enough": "largest <= 0.6 * sum(units.values())"}, "fewer_units", [FEW]),
        ({"rows": "True", "enough": "len(rows) > 3"}, "fewer_units", [FEW]),
        (
            {"counts": "True"},
            "fewer_units",
            [FEW, "expected: nothing of 'pay', of which 2 units have a value (None elsewhere)"],
        ),
        (
            {"counts": 'row["pay"] is not None', "enough": "len(units) >= 3"},
            "fewer_units",
            [FEW, "* (nan elsewhere)"],
        ),
        (
            {"enough": "len(units) >= 3 and largest <= 0.9 * sum(units.values())"},
            "max_share",
            [DOMINANT, "expected: the same for 'pay' of 1, and of "],
        ),
        ({"enough": "len(units) >= 3"}, "max_share", [DOMINANT]),
        (
            {"told": 'sum(row["age"] for row in rows)'},
            "does_not_name",
            [
                "fault.total uses columns beside 'id', 'city', 'pay', and does not say so",
                "expected: the same whatever is in 'age', 'kit_n', 'kit_s'",
            ],
        ),
        (
            {"told": "int(max(pays))"},
            "uses_them_for",
            [
                "fault.total tells more of 'pay' than ?'count', 'sum'?",
                "expected: the same where one row adds what another one loses in 'pay'",
            ],
        ),
        ({"told": "int(pays[0])"}, "uses_them_for", ["* rows of a group change places in 'pay'"]),
        (
            {"told": 'rows[0]["id"]'},
            "uses_them_for",
            ["fault.total tells of single units, by 'id'"],
        ),
        (
            {"uses": '{"city": ["by"], "pay": ["count"]}'},
            "uses_them_for",
            ["fault.total tells more of 'pay' than ?'count'?", "* values are other ones in 'pay'"],
        ),
        (
            {"uses": '{"city": ["by"], "wage": ["sum"]}'},
            "columns_that_are_there",
            ["fault.total says what its table contradicts", "got: *the column 'wage' of operand 0"],
        ),
        ({"k": "0"}, "columns_that_are_there", ["fault.total counts no units, and adds no noise"]),
        (
            {"uses": '{"city": ["by"], "pay": ["sum", "match"]}'},
            "columns_that_are_there",
            [
                "fault.total says what its table contradicts",
                "got: *the role 'match', which lineage",
            ],
        ),
        ({"total": "1 / 0"}, "fewer_units", ["fault.total fails", "got: *ZeroDivisionError"]),
        (
            {"functions": '[Function("sum")]'},
            "columns_that_are_there",
            ["got: *the functions ?'count'?, and its GuardRule declares ?'sum'?"],
        ),
        (
            {"uses": '{"city": ["by"], "pay": ["by"]}'},
            "groups_by",
            [
                "fault.total tells more of 'pay' than groups by it",
                "expected: the same whatever is in 'pay' of 2 units that have it alone",
            ],
        ),
        ({"samples": "()"}, "sample_of_every", ["*add *fault.total"]),
        (
            {"k": "1"},
            "sample_of_every",
            ["the samples of fault.total count to 1 only", "to do: *add one with k = 3"],
        ),
        (
            {"epsilon": "1_000_000", "k": "0", "enough": "True"},
            "noise",
            [
                "fault.total tells of one unit more than it declares",
                "expected: results about as likely with it as without, as epsilon = 1 and",
                "got: *number 0 is at ",
            ],
        ),
        (
            {
                "epsilon": "1_000_000",
                "k": "0",
                "enough": "True",
                "total": "sum(pays) + np.random.default_rng().laplace(0, 9)",
                "told": "0",
            },
            "noise",
            ["fault.total tells of one unit more than it declares"],
        ),
    ],
)
def test_a_guard_that_does_something_else(caught, changes, test, lines):
    caught(guard(**changes), test, *lines)


UNTOLD = "what guards of the family 'fault' compute is not what it declares"


@pytest.mark.parametrize(
    ("functions", "lines"),
    [
        ([Function("sum")], [UNTOLD, "to do: *declare ?'count'? in Words(functions=…) of an"]),
        ([*WORDS.functions, Function("var")], [UNTOLD, "to do: *add samples of ?'var'?"]),
        (
            [Function("sum", lambda kind: kind == "string"), Function("count")],
            [
                "fault.total computes sum of 'pay', and declares it is of other columns",
                "expected: Function('sum', of=…) that takes double",
            ],
        ),
    ],
)
def test_functions_that_rules_are_told_otherwise_of(caught, declared, functions, lines):
    declared["fault"] = Words(functions)
    caught(guard(), "rules_can_name", *lines)


NOISE = {
    "epsilon": "1_000_000",
    "k": "0",
    "enough": "True",
    "total": "sum(min(each, 9.0) for each in units.values()) + "
    "np.random.default_rng().laplace(0, 9)",
    "told": "0",
    "uses": '{"city": ["by"], "pay": ["sum"]}',
}


def test_noise_to_the_size_of_a_contribution_passes(run):
    assert run(guard(**NOISE), "-k", "hides_a_unit").parseoutcomes()["passed"] == 1


def test_noise_over_a_column_that_is_not_named(caught):
    other = 'sum(row["age"] for row in rows) * 99 + np.random.default_rng().laplace(0, 9)'
    caught(guard(**{**NOISE, "total": other}), "does_not_name", "fault.total uses columns beside")
