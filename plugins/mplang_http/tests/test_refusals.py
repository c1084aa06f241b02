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


@pytest.mark.parametrize(
    "damaged", [7, None, [], {}, {"code": "x"}, SENT | {"code": 7}, SENT | {"path": [[[]]]}]
)
def test_a_damaged_one_hides_no_other(damaged):
    assert [each.code for each in read_refusals("bob", [damaged, SENT])] == ["forbidden"]
    assert read_refusals("bob", damaged) == ()


def test_texts_are_escaped():
    (found,) = read_refusals("bob", [SENT | {"advice": ["\x1b[2J\u202e"]}])
    assert "\x1b" not in found.advice[0]
    assert "\u202e" not in found.advice[0]


def test_an_error_of_a_job_has_them():
    described = {"kind": "AdmissionError", "text": "no", "op": None, "location": "a.py:1"}
    made = error_of("bob", described | {"refusals": [SENT]})
    assert isinstance(made, AdmissionError)
    assert [each.party for each in made.refusals] == ["bob"]
    assert not hasattr(error_of("bob", described | {"kind": "RunError"}), "refusals")
