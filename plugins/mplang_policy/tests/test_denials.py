"""A denial says what is refused, the way that it takes, and the rule or what a permit lacks."""

from __future__ import annotations

import re

import pytest
from mplang_policy import Names, Rules, asked_of, decide_program
from policy_testbed import BANK, NAMES, PERMIT_ALL, RUNS, data_of_bank, decided, line_of, program_of

import mplang_core as mp

GUARDED = 'permit (principal, action == Action::"fetch", resource) when { context.k > 9 };'


def pay_to_host():
    table = mp.dataset("bank", "people", ["pay", "city"])
    return mp.device("P0")(lambda t: t.agg(pay=t.pay.sum()))(table)


def together():
    mine = mp.put("P1", mp.dataset("bank", "people", ["id", "pay"]))
    theirs = mp.dataset("shop", "sales", ["id", "amount"])
    return mp.device("P1")(lambda a, b: a.join(b, "id").agg(s=lambda t: t.amount.sum()))(
        mine, theirs
    )


def test_what_is_permitted_is_allowed():
    decision, text = decided(pay_to_host, PERMIT_ALL)
    assert decision.allowed
    assert text == ""


def test_several_rules_for_one_column():
    rules = (
        PERMIT_ALL
        + """
    @id("no-pay") forbid (principal, action == Action::"fetch", resource)
    when { context.columns.contains(Column::"people.pay") };
    @id("no-people") forbid (principal, action == Action::"fetch", resource)
    when { context.data_sets.contains(DataSet::"people") };
    """
    )
    decision, text = decided(pay_to_host, rules)
    assert len(decision.refused) == 1
    begin, end = line_of(pay_to_host, 1), line_of(pay_to_host, 2)
    assert text == (
        'bank refuses that the host, analyst, gets plain table<["pay", "double"]> (result) at '
        f"{end} made of people.city, people.pay: it is forbidden by "
        '"no-pay" (bank.cedar:2) and "no-people" (bank.cedar:4); '
        f"people.pay comes in at {begin} and out at {end}"
    )


def test_a_column_that_may_be_matched_on_and_not_read():
    rules = (
        RUNS
        + """
    @id("results") permit (principal, action == Action::"fetch", resource);
    @id("hidden") forbid (principal, action == Action::"read", resource)
    when { context.columns.contains(Column::"people.id") };
    """
    )

    def ids():
        return mp.dataset("bank", "people", ["id"])

    decision, text = decided(ids, rules)
    assert [each.request.action for each in decision.refused] == ["read"]
    assert text == (
        'bank refuses to have data set people read: it is forbidden by "hidden" (bank.cedar:6)'
    )


def test_a_result_that_mixes_an_allowed_and_a_forbidden_source():
    rules = (
        RUNS
        + """
    @id("cities") permit (principal, action == Action::"fetch", resource)
    when { [Column::"people.city"].containsAll(context.columns) };
    """
    )
    decision, text = decided(pay_to_host, rules)
    assert len(decision.refused) == 1
    begin, end = line_of(pay_to_host, 1), line_of(pay_to_host, 2)
    assert text == (
        'bank refuses that the host, analyst, gets plain table<["pay", "double"]> (result) at '
        f"{end} made of people.city, people.pay: no rule permits it; the nearest, "
        '"cities" (bank.cedar:5), lacks: [Column::"people.city"].containsAll(context.columns) '
        f"(not among them: people.pay); people.pay comes in at {begin} and out at {end}"
    )


def test_a_missing_declassifier():
    rules = (
        RUNS
        + """
    @id("aggregates") permit (principal, action == Action::"fetch", resource)
    when { context.k >= 20 };
    """
    )
    _, text = decided(pay_to_host, rules)
    assert '"aggregates" (bank.cedar:5), lacks: context.k >= 20 (k is 0)' in text


def test_another_function_of_a_guard_is_named_and_no_guard_is_advised():
    def total():
        people = mp.dataset("bank", "people", ["id", "pay"])
        return mp.guard.aggregate(people, unit="id", k=2, pay=("pay", "sum"))

    rules = (
        RUNS
        + """
    @id("numbers") permit (principal, action == Action::"fetch", resource) when {
      context.declassifiers.contains("guard") &&
      [Aggregate::"mean(people.pay)"].containsAll(context.aggregates)
    };
    """
    )
    decision, text = decided(total, rules)
    (refused,) = decision.refused
    assert refused.request.context["declassifiers"] == ("guard",)
    assert '"numbers" (bank.cedar:5), lacks: [Aggregate::"mean(people.pay)"]' in text
    assert "(not among them: sum(people.pay))" in text
    assert "mp.guard" not in text


def test_a_receiver_too_many():
    rules = (
        RUNS
        + """
    @id("to the clinic") permit (principal, action == Action::"disclose", resource)
    when { resource == Party::"clinic" };
    permit (principal, action == Action::"fetch", resource);
    """
    )
    decision, text = decided(together, rules)
    assert [str(each.request.resource) for each in decision.refused] == ['Party::"shop"']
    assert text == (
        'bank refuses that shop gets plain table<["id", "int64"], ["pay", "double"]> (move) at '
        f"{line_of(together, 1)} made of people.id, people.pay: no rule permits it; the nearest, "
        '"to the clinic" (bank.cedar:5), lacks: resource == Party::"clinic" '
        '(it is Party::"shop")'
    )


def test_the_nearest_permit_is_the_one_that_lacks_least():
    rules = (
        RUNS
        + """
    @id("far") permit (principal, action == Action::"fetch", resource)
    when { context.k >= 20 && context.form == "share" && context.others == [Party::"shop"] };
    @id("near") permit (principal, action == Action::"fetch", resource)
    when { context.form == "plain" && context.discloses }
    unless { context.times.contains("once") };
    """
    )
    _, text = decided(pay_to_host, rules)
    assert '"near" (bank.cedar:7), lacks: !(context.times.contains("once"))' in text
    assert "(times is [once])" in text


def test_no_permit_for_an_action_at_all():
    _, text = decided(pay_to_host, RUNS)
    assert 'no rule permits anything of Action::"fetch"' in text


def test_a_rule_of_another_resource_is_not_near():
    """That for failures, which everybody learns, says nothing of what a party gets."""
    decision, text = decided(together, RUNS)
    (first, *_) = decision.refused
    assert first.why.code == "no-rule"
    assert 'no rule permits anything of Action::"disclose" for Party::"shop"' in text
    assert "Everyone" not in text


def test_a_rule_of_another_data_set_is_not_near():
    only = 'permit (principal, action == Action::"read", resource == DataSet::"visits");'
    names = Names.of({**BANK, "data": {**data_of_bank(), "visits": {"columns": ["id"]}}})
    asked = asked_of(program_of(pay_to_host), NAMES, "bank", "analyst", "production")
    decision = decide_program(Rules.of({"bank.cedar": only}, names), asked)
    (read,) = (each for each in decision.refused if each.request.action == "read")
    assert (read.why.code, read.why.rules) == ("no-rule", ())


@pytest.mark.parametrize("rules", ["", RUNS, RUNS + GUARDED], ids=["read", "fetch", "guard"])
def test_no_advice_tells_whether_there_is_a_data_set_that_one_may_not_name(rules):
    """It is that of a data set which is not there, but for its name."""

    def advice_on(name):
        def program():
            kind = {"id": "int64", "pay": "float64"}
            return mp.dataset("bank", name, ["id", "pay"], type=kind)

        asked = asked_of(program_of(program), NAMES, "bank", "analyst", "production")
        decision = decide_program(Rules.of({"bank.cedar": rules}, names), asked)
        return [each for refusal in decision.refusals("bank") for each in refusal.advice]

    hidden = {"columns": {"id": "int64", "pay": "float64"}, "unit": "id", "readers": ["other"]}
    names = Names.of({**BANK, "data": {**data_of_bank(), "hidden": hidden}})
    there, not_there = advice_on("hidden"), advice_on("nought")
    assert there
    there, not_there = (re.sub("[0-9a-f]{64}", "digest", repr(each)) for each in (there, not_there))
    assert there.replace("hidden", "nought") == not_there
    assert "permit (" in repr(advice_on("people"))


def test_a_program_that_has_a_guard_is_not_told_to_use_one():
    def beside_it():
        people = mp.dataset("bank", "people")
        least = mp.device("P0")(lambda t: t.agg(least=t.pay.min()))(people)
        return mp.guard.aggregate(people, unit="id", k=20, pay=("pay", "mean")), least

    rules = RUNS + 'permit (principal, action == Action::"fetch", resource) when { context.k > 9 };'
    _, text = decided(beside_it, rules)
    assert "this value did not go through guard: send only what the guard returns" in text
    assert "mp.guard" not in text


def test_what_an_approval_would_permit_is_told():
    rules = (
        RUNS
        + """
    permit (principal, action == Action::"fetch", resource) when { context.approved };
    """
    )
    decision, text = decided(pay_to_host, rules)
    assert decision.needs_approval
    assert text.endswith("once bank has approved this program, its rules permit it")


def test_others_data_that_is_sent_on_needs_a_rule_of_its_own():
    def on_and_on():
        mine = mp.put("P0", mp.dataset("shop", "sales", ["amount"]))
        return mp.put("P2", mine)

    decision, text = decided(on_and_on, RUNS)
    assert {each.request.action for each in decision.refused} == {"forward"}
    assert "made of shop's data" in text


def test_more_than_five_refusals_are_counted():
    def many():
        for column in ("id", "pay", "city"):
            table = mp.dataset("bank", "people", [column])
            yield mp.put("P1", table), table

    decision, text = decided(lambda: tuple(many()), RUNS)
    assert len(decision.refused) == 5
    assert decision.more == 1  # what P1 gets, and what the host gets, of three columns
    assert text.endswith("and 1 more")


def test_what_is_the_same_is_asked_once():
    def many():
        table = mp.dataset("bank", "people", ["pay"])
        return tuple(mp.put("P1", table) for _ in range(4))

    decision, _ = decided(many, RUNS)
    assert [each.request.action for each in decision.refused] == ["disclose", "fetch"]
