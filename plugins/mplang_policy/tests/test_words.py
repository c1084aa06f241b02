"""Words that packages bring, as rules name them: functions of guards, conditions of messages."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from mplang_analysis import Function, Words
from mplang_guard.functions import FUNCTIONS, SIZE, SPREAD, WORDS, GuardFunction
from policy_testbed import RUNS, decided, names_of_bank

import mplang_core as mp

ONLY_VAR = (
    RUNS
    + """
permit (principal, action == Action::"fetch", resource) when {
  context.declassifiers.contains("guard") &&
  [Aggregate::"var(people.pay)"].containsAll(context.aggregates)
};
permit (principal, action == Action::"disclose", resource is Party) when { !context.discloses };
"""
)


@pytest.fixture
def var(monkeypatch):
    """The guard with one function more: an entry of ``FUNCTIONS``, as its file has it."""
    monkeypatch.setitem(FUNCTIONS, "var", GuardFunction("var", "var_samp({value})", (SIZE, SPREAD)))
    functions = list(WORDS.functions)
    WORDS.functions.append(Function("var", FUNCTIONS["var"].of))
    yield
    WORDS.functions[:] = functions


def pay(function, **more):
    people = mp.dataset("bank", "people", ["id", "pay"])
    return mp.guard.aggregate(people, unit="id", k=2, pay=("pay", function), **more)


def test_a_function_that_a_guard_brings_runs_and_is_named_by_rules(var):
    assert "var(people.pay)" in names_of_bank().offered("Aggregate")
    assert "var(people.city)" not in names_of_bank().offered("Aggregate")
    decision, text = decided(lambda: pay("var"), ONLY_VAR)
    assert decision.allowed, text
    decision, text = decided(lambda: pay("mean"), ONLY_VAR)
    assert not decision.allowed
    people = {"id": [1, 2, 3], "pay": [1.0, 2.0, 9.0]}
    cluster = mp.ClusterSpec([{"name": "bank"}])
    with mp.Simulator(cluster, data={"bank": {"people": people}}) as sim:
        (row,) = mp.fetch(sim, mp.evaluate(sim, lambda: pay("var"))).to_pylist()
        left_out = mp.fetch(sim, mp.evaluate(sim, lambda: pay("var", max_share=0.5))).to_pylist()
    assert np.isclose(row["pay"], np.var(people["pay"], ddof=1))
    assert left_out == []  # 9 is more than half


TILL = """
from mplang_analysis import Function, Words

WORDS = Words([Function("median")], {"if it rains": "on rainy days"}, ["thermometer"])
"""
START = """
import sys

from mplang_analysis import phrases
from policy_testbed import names_of_bank, rules_of_bank

rules_of_bank(
    'permit (principal, action == Action::"fetch", resource) when {'
    ' context.declassifiers.contains("till") && !context.times.contains("if it rains") &&'
    ' [Aggregate::"median(people.pay)"].containsAll(context.aggregates) };'
    'forbid (principal, action == Action::"fetch", resource) when {'
    ' context.columns.contains(Column::"other:thermometer") };'
)
assert "median(people.city)" in names_of_bank().offered("Aggregate")
assert phrases.frequency("in a branch, if it rains") == "in a branch, on rainy days"
engines = {"duckdb", "ibis", "jax", "mplang_ibis", "opendp", "pyarrow", "spu"}
kernels = [name for name in sys.modules if name.startswith("mplang_") and name.endswith(".kernels")]
kernels.remove("mplang_core.runtime.kernels")  # their registry
print(sorted(engines & {name.partition(".")[0] for name in sys.modules}), kernels)
"""


def start_with(folder, package):
    """Read rules as a worker does that has one package more, in a process of its own."""
    info = folder / "till-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: till\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mplang.words]\ntill = till:WORDS\n")
    (folder / "till.py").write_text(textwrap.dedent(package))
    path = os.pathsep.join([str(folder), os.path.dirname(__file__), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", START], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_another_package_brings_words_and_no_engine_is_imported_for_them(tmp_path):
    done = start_with(tmp_path, TILL)
    assert done.stdout == "[] []\n", done.stderr


def test_why_words_did_not_load_is_told(tmp_path):
    done = start_with(tmp_path, "raise RuntimeError('no till')")
    assert 'declassifiers is never "till" here, but ' in done.stderr
    assert "till did not load: RuntimeError: no till" in done.stderr


@pytest.mark.parametrize("when", ["once", "", "if it rains, once"])
def test_a_condition_is_its_own_and_cannot_be_read_as_another(when):
    with pytest.raises(ValueError, match="a condition is of this package"):
        Words(times={when: "on rainy days"})


@pytest.mark.parametrize("name", ["by", "a b", "mean(people.pay", ""])
def test_a_function_is_a_word_and_no_role(name):
    with pytest.raises(ValueError, match="a function of a guard is a word"):
        Function(name)
