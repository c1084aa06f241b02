"""The meeting point of a simulator's parties: one checks, all hear of it."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from mplang_simulator import Meetings
from mplang_testing.waiting import DEADLINE, wait_until

from mplang_core.errors import AbortedError, PrecisionError, PrecisionWarning
from mplang_core.ext import Diagnostic, Location

FOUND = Diagnostic("3 where float64 gives 4", Location("/some/where/demo.py", 12), "add")


def meet(checks, check, members=3, key="run/1"):
    """Have that many parties meet; return what each raised."""

    def party(rank):
        try:
            checks.meet(key, rank, members, rank * 10, check)
        except Exception as error:
            return error

    with ThreadPoolExecutor(members) as pool:
        return list(pool.map(party, range(members)))


def shown(checks):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        checks.warn()
    return found


def test_one_check_sees_what_all_brought():
    seen = []
    assert meet(Meetings("warn"), lambda brought: seen.append(dict(brought))) == [None] * 3
    assert seen == [{0: 0, 1: 10, 2: 20}]


def test_a_finding_is_shown_once_at_its_line():
    checks = Meetings("warn")
    for turn in range(3):
        assert meet(checks, lambda brought: FOUND, key=f"run/{turn}") == [None] * 3
    (warning,) = shown(checks)
    assert warning.category is PrecisionWarning
    assert (warning.filename, warning.lineno) == ("/some/where/demo.py", 12)
    assert str(warning.message) == f"{FOUND.text}\nmplang explain N001"
    assert not shown(checks)
    checks.begin()
    meet(checks, lambda brought: FOUND)
    assert len(shown(checks)) == 1


def test_all_raise():
    checks = Meetings("raise")
    errors = meet(checks, lambda brought: FOUND)
    assert [type(error) for error in errors] == [PrecisionError] * 3
    assert str(errors[0]) == "demo.py:12: 3 where float64 gives 4"
    assert not shown(checks)


def test_a_check_that_fails_ends_all():
    def check(brought):
        raise ZeroDivisionError

    errors = meet(Meetings("warn"), check)
    assert [type(error) for error in errors] == [ZeroDivisionError] * 3


def test_who_waits_is_released_where_the_run_ends():
    checks = Meetings("warn")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(checks.meet, "run/1", 0, 2, None, lambda brought: None)
        wait_until(lambda: checks._meetings)
        checks.abort("run")
        with pytest.raises(AbortedError):
            waiting.result(DEADLINE)
    with pytest.raises(AbortedError):
        checks.meet("run/1", 1, 2, None, lambda brought: None)


def test_a_finding_without_a_line():
    checks = Meetings("warn")
    checks.tell(Diagnostic("text", op="op"))
    (warning,) = shown(checks)
    assert warning.filename == "<unknown>"
