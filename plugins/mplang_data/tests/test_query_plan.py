"""The plan of queries: what runs at which owner, by which engine, and what moves."""

from __future__ import annotations

import pytest
from drawings import assert_drawn_apart, roots
from mplang_analysis import QueryPlan, queries
from mplang_analysis.ext import width

import mplang_core as mp

CLUSTER = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
KNOWN = {
    "bank": {"ledger": {"columns": {"id": "int64", "pay": "double"}, "engine": "postgresql"}},
    "shop": {"sales": {"columns": {"who": "int64", "amount": "double"}}},
}


def sent() -> object:
    """Return a bank's sum, and a shop's amounts at the bank."""
    ledger, sales = mp.dataset("bank", "ledger"), mp.dataset("shop", "sales")
    total = mp.sql("P0", "SELECT sum(pay) AS pay FROM {ledger}", ledger=ledger)
    high = mp.sql("P1", "SELECT who, amount FROM {sales} WHERE amount > 3", sales=sales)
    again = mp.sql("P1", "SELECT count(*) AS n FROM {high}", high=high)
    return total, mp.put("P0", again)


def plan_of(program, known=KNOWN, cluster=CLUSTER) -> QueryPlan:
    with mp.catalogue(known):
        compiled = mp.compile(program, cluster_spec=cluster)
        compiled.trace(None)
        found = queries(compiled).plan
    assert found is not None
    return found


def test_a_step_says_who_runs_what_by_which_engine():
    steps = [(*step.lanes, step.kind, step.title, step.text) for step in plan_of(sent).steps]
    assert steps == [
        (0, "query", "at the source, postgresql, over ledger",
         'SELECT sum(pay) AS pay FROM "ledger"'),
        (1, "query", "at the source, duckdb, over sales",
         'SELECT who, amount FROM "sales" WHERE amount > 3'),
        (1, "query", "in the engine, duckdb, over what another step gave",
         'SELECT count(*) AS n FROM "high"'),
        (1, 0, "move", "", "a table of columns n"),
        (0, "result", "result", "a table of columns pay"),
        (0, "result", "result", "a table of columns n"),
    ]  # fmt: skip


@pytest.mark.needs("spu", "jax")
def test_what_runs_on_shares_is_together_and_dashed():
    pytest.importorskip("mplang_joins")

    def joined():
        ledger, sales = mp.dataset("bank", "ledger"), mp.dataset("shop", "sales")
        text = "SELECT sum(amount) AS amount FROM {ledger} JOIN {sales} ON id = who"
        return mp.reveal(mp.sql("SP0", text, ledger=ledger, sales=sales), to="P0")

    bounded = {
        party: {name: {**each, "rows": {"at_most": 50}} for name, each in sets.items()}
        for party, sets in KNOWN.items()
    }
    bounded["shop"]["sales"]["columns"] = {"who": "int64", "amount": "int64"}
    plan = plan_of(joined, bounded)
    together = [step for step in plan.steps if step.kind == "together"]
    assert {(step.lanes, step.title, step.secret) for step in together} == {
        ((0, 1), "together, on shares", True)
    }
    moves = {step.text.split()[-1] for step in plan.steps if step.secret and step.kind == "move"}
    assert moves == {"share"}
    assert "stroke-dasharray" in plan.svg()


@pytest.mark.parametrize("columns", [100, 80, 40])
def test_it_fits_a_terminal(columns):
    text = plan_of(sent).text(columns)
    assert max(map(width, text.split("\n"))) <= columns
    assert "→ shop → bank: a table of columns n" in text


def test_nothing_overlaps_and_all_is_inside():
    for root in roots(plan_of(sent)):
        assert_drawn_apart(root)


def test_hostile_texts_are_no_markup():
    def evil():
        t = mp.dataset("shop", "sales")
        return mp.sql("P1", "SELECT '<img src=x>' AS \"<script>\" FROM {t}", t=t)

    shown = plan_of(evil).html()
    assert "<img" not in shown
    assert "<script" not in shown
    assert "&lt;img src=x&gt;" in shown
