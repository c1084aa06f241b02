"""What a worker says that rules refuse is read as data of that worker alone."""

from __future__ import annotations

import pytest
from mplang_http.coordinator.refusals import error_of, read_refusals

from mplang_core.errors import AdmissionError, Refusal

SENT = {"party": "bob", "code": "forbidden", "action": "fetch", "resource": "Host", "rules": ["a"]}


def test_a_worker_speaks_for_no_other():
    assert read_refusals("bob", [SENT | {"party": "alice"}]) == (
        Refusal("bob", "forbidden", "fetch", "Host", rules=("a",)),
    )


def vars_of(advice):
    return [getattr(advice, name) for name in advice.__slots__]


@pytest.mark.parametrize(
    "damaged",
    [
        7,
        None,
        [],
        {},
        {"code": "x"},
        SENT | {"code": 7},
        SENT | {"path": [[[]]]},
        SENT | {"advice": ["x"]},
    ],
)
def test_a_damaged_one_hides_no_other(damaged):
    assert [each.code for each in read_refusals("bob", [damaged, SENT])] == ["forbidden"]
    assert read_refusals("bob", damaged) == ()


def test_texts_are_escaped():
    hostile = "\x1b[2J\u202e"
    advice = {"kind": hostile, "text": hostile, "change": f"a\n{hostile}", "where": hostile}
    (found,) = read_refusals("bob", [SENT | {"advice": [advice], "columns": [hostile]}])
    (first,) = found.advice
    assert first.change.splitlines()[0] == "a"
    assert "\x1b" not in repr(found)
    for text in (*vars_of(first), *found.columns, str(found), found._repr_html_()):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_an_error_of_a_job_has_them():
    described = {"kind": "AdmissionError", "text": "no", "op": None, "location": "a.py:1"}
    made = error_of("bob", described | {"refusals": [SENT]})
    assert isinstance(made, AdmissionError)
    assert [each.party for each in made.refusals] == ["bob"]
    assert not hasattr(error_of("bob", described | {"kind": "RunError"}), "refusals")
