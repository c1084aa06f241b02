"""The search for the op that gave a wrong number has a budget, and is shown while it lasts."""

from __future__ import annotations

import mplang_spu.reference_check.check as checking
import numpy as np
import pytest
from mplang_spu.reference_check import search_budget
from mplang_spu.reference_check.search_budget import SearchBudget, shown
from mplang_testing.waiting import wait_until
from reference_runs import secure

import mplang_core as mp
from mplang_core.errors import ConfigError
from mplang_core.ext import Location


@pytest.fixture
def searches(monkeypatch):
    """Note the searches."""
    found = []
    locate = checking.locate_fault
    monkeypatch.setattr(checking, "locate_fault", lambda *args: found.append(args) or locate(*args))
    return found


def test_a_short_run_is_searched_for_up_to_ten_seconds(searches):
    (told,) = secure(lambda x: (x * 1e-7) * 1e7, np.float32(1))[1]
    assert len(searches) == 1
    assert "budget" not in str(told.message)


@pytest.mark.parametrize("longer", [True, False])
def test_what_the_budget_does_not_allow_is_left_out_and_told(monkeypatch, searches, longer):
    """The wrong result is told all the same, at the line of the op that gives it."""
    monkeypatch.setattr(search_budget, "ALWAYS", 0.0)
    options = {"check_budget": 1e9} if longer else {}
    (told,) = secure(lambda x: (x * 1e-7) * 1e7, np.float32(1), **options)[1]
    assert len(searches) == longer
    assert (
        "Not located: budget. To find the op that gave it takes about" in str(told.message)
    ) != longer
    assert told.filename == __file__


def test_no_budget_is_no_search(searches):
    (told,) = secure(lambda x: (x * 1e-7) * 1e7, np.float32(1), check_budget=0)[1]
    assert not searches
    assert "Which op gave it was not searched for: check_budget=0." in str(told.message)


@pytest.mark.parametrize("wrong", [-1, float("nan"), "2", None])
def test_a_wrong_budget_is_refused(wrong):
    with pytest.raises(ConfigError, match="check_budget is a number of times, 0 or more, got"):
        mp.Simulator(mp.ClusterSpec.simple(2), check_budget=wrong)


def test_a_search_is_shown_once_it_lasts(monkeypatch, capfd):
    monkeypatch.setattr(search_budget, "ALWAYS", 0.0)
    seen = []
    with shown(Location("/some/demo.py", 12)):
        wait_until(lambda: seen.append(capfd.readouterr().err) or any(seen))
    assert "demo.py:12: SPU's numbers are not float64's; searching for the op" in "".join(seen)


def test_a_short_search_is_not_shown(capfd):
    with shown(None):
        pass
    assert not capfd.readouterr().err


def test_what_is_needed_grows_with_run_and_ops():
    assert SearchBudget(1.0, run=9, ops=100).suffices
    assert not SearchBudget(1.0, run=9, ops=10_000).suffices
    assert SearchBudget(2.0, run=20, ops=10_000).suffices


def test_the_budget_that_is_named_suffices():
    for run, ops in ((1.0, 20_000), (60.0, 100), (0.0, 9_000)):
        text = SearchBudget(1.0, run, ops).left_out
        named = float(text.partition("check_budget=")[2].split()[0])
        assert SearchBudget(named, run, ops).suffices or run == 0
