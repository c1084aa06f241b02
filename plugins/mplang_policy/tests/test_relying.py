"""Rules and results that other parties can change unnoticed: permitted unless one forbids it."""

from __future__ import annotations

import pytest
import yaml
from mplang_analysis import DisclosureRow, ProgramRequest
from mplang_policy import decide_program
from mplang_policy.cases import read_cases
from mplang_policy.gate_config import GateConfig
from mplang_policy.offline import asked_of
from mplang_policy.owner import Owner
from mplang_policy.starter import starter
from mplang_tables import to_tensor
from policy_testbed import (
    BANK,
    NAMES,
    PERMIT_ALL,
    decided,
    line_of,
    names_of_bank,
    program_of,
    rules_of_bank,
)

import mplang_core as mp
from mplang_core.errors import ConfigError

SHARED = """
permit (principal, action in [Action::"run", Action::"read"], resource);
permit (principal, action in [Action::"disclose", Action::"store", Action::"forward"], resource)
when { !context.discloses || context.what == "failure" };
"""
NOBODY = '@id("nobody else") forbid (principal, action == Action::"rely", resource);'


def total(to):
    """The sum of the pay of the bank and a number of the shop, computed by all three."""
    return lambda: mp.keep(revealed(to))


def revealed(to):
    pay = mp.device("P0")(lambda t: t.agg(pay=t.pay.sum()))(mp.dataset("bank", "people", ["pay"]))
    pay = mp.device("P0")(to_tensor)(pay, rows=1)
    sold = mp.device("P1")(lambda t: t.agg(n=t.amount.sum()))(mp.dataset("shop", "sales"))
    sold = mp.device("P1")(to_tensor)(sold, rows=1)
    found = mp.device("SP0")(lambda a, b: a + b)(mp.seal(pay), mp.seal(sold))
    return mp.reveal(found, to=to)


def public():
    """A constant in shares."""
    return mp.keep(mp.reveal(mp.device("SP0")(lambda x: x + 1)(mp.seal(mp.constant(1.5))), to="P0"))


def relied_on(decision):
    return [str(each.resource) for each in decision.requests if each.action == "rely"]


def test_rules_that_say_nothing_of_it_permit_it():
    decision, _ = decided(total("P0"), SHARED)
    assert decision.allowed
    assert relied_on(decision) == ['Party::"shop"', 'Party::"clinic"']
    (asked, _) = [each for each in decision.requests if each.action == "rely"]
    context = asked.context
    told = context["what"], context["protocol"], context["type"], context["form"], context["times"]
    assert told == ("change", "ABY3", "f64[1, 1]", "plain", ("if it deviates",))
    assert [each.id for each in context["columns"]] == ["people.pay"]
    assert [each.id for each in context["others"]] == ["shop"]
    assert not context["discloses"]


FORBID = 'forbid (principal, action == Action::"rely", resource'


@pytest.mark.parametrize(
    "forbids",
    [
        NOBODY,
        f'{FORBID} == Party::"clinic");',
        FORBID + ') when { context.protocol == "ABY3" };',
        FORBID + ') when { context.what == "change" };',
        FORBID + ') unless { resource == Party::"shop" };',
    ],
)  # fmt: skip
def test_a_rule_that_forbids_it_refuses_the_program(forbids):
    decision, text = decided(total("P0"), SHARED + forbids)
    assert not decision.allowed
    assert {each.request.action for each in decision.refused} == {"rely"}
    line = line_of(revealed, 6)
    assert (
        "bank refuses that clinic can change, unnoticed, plain f64[1, 1] (change) at "
        f"{line} made of people.pay and shop's data: it is forbidden by "
    ) in text
    assert "comes in at" not in text  # whose data it is does not matter


def test_only_who_gets_the_result_is_asked():
    for receiver in ("P1", "P2"):
        rules = PERMIT_ALL + NOBODY
        assert decided(total(receiver), rules)[0].allowed
    assert relied_on(decided(total("P1"), PERMIT_ALL, party="shop")[0]) == [
        'Party::"bank"',
        'Party::"clinic"',
    ]


def test_a_result_that_another_party_sends_on_is_asked_about():
    """Else a coordinator would have it revealed at a party whose owner forbids nothing."""

    def relayed():
        return mp.keep(mp.put("P0", mp.device("P1")(lambda x: x * 2)(revealed("P1"))))

    assert relied_on(decided(relayed, PERMIT_ALL)[0]) == ['Party::"shop"', 'Party::"clinic"']
    text = decided(relayed, PERMIT_ALL + NOBODY)[1]
    assert "bank refuses that shop can change, unnoticed, plain f64[1, 1] (change)" in text


def test_what_is_nobodys_data_is_asked_about_as_well():
    assert decided(public, SHARED)[0].allowed
    decision, text = decided(public, SHARED + NOBODY)
    assert relied_on(decision) == ['Party::"shop"', 'Party::"clinic"']
    assert 'made of nothing of anyone\'s: it is forbidden by "nobody else"' in text


def test_an_approval_can_be_asked_for():
    rules = SHARED + NOBODY[:-1] + " unless { context.approved };"
    decision, text = decided(total("P0"), rules)
    assert decision.needs_approval
    assert "once bank has approved this program, its rules permit it" in text


def test_a_rule_that_cannot_be_evaluated_refuses_it():
    broken = 'forbid (principal, action == Action::"rely", resource) when { context.values > 9 };'
    with pytest.raises(ConfigError, match="values"):
        decided(total("P0"), SHARED + broken)
    beyond = """forbid (principal, action == Action::"rely", resource)
    when { context has values && context.values * 9223372036854775807 > context.k - 1 - 1 };"""
    decision, text = decided(pair, SHARED + beyond)
    assert not decision.allowed
    assert "a rule cannot be evaluated" in text


def test_a_permit_to_rely_on_somebody_permits_nothing_and_is_told():
    with pytest.raises(ConfigError, match="rely needs no permit, so this one permits nothing"):
        decided(total("P0"), SHARED + NOBODY.replace("forbid", "permit"))


def pair():
    found = mp.device("SP0")(lambda x: x + 1)(mp.seal(mp.constant([1.5, 2.5])))
    return mp.keep(mp.reveal(found, to="P0"))


def test_of_an_op_that_does_not_say_who_can_it_is_everyone():
    row = DisclosureRow(
        what="change", sender=None, receiver=0, type="i64[]", payload="i64[]", form="plain",
        bytes=8, inputs=(), discloses=(), line="p.py:1", when="if it deviates",
    )  # fmt: skip
    asked = ProgramRequest("analyst", 0, NAMES, "0" * 64, "p", [row])
    found = decide_program(rules_of_bank(SHARED), asked)
    assert (found.allowed, relied_on(found)) == (True, ['Everyone::"everyone"'])
    found = decide_program(rules_of_bank(SHARED + NOBODY), asked)
    assert "bank refuses that everyone can change, unnoticed, plain i64[]" in found.text("bank")


def test_the_rules_to_begin_with_permit_it_and_say_how_to_refuse_it():
    gate = GateConfig(policy="bank.cedar", log="bank.db")
    owner = Owner("bank", ("analyst",), gate, names_of_bank(), BANK, "")
    text = starter(owner)
    asked = asked_of(program_of(total("P0")), NAMES, "bank", "analyst", "production")
    assert "rely" not in {
        each.request.action for each in decide_program(rules_of_bank(text), asked).refused
    }
    (told,) = [line for line in text.splitlines() if 'Action::"rely"' in line]
    found = decide_program(rules_of_bank(text + told.removeprefix("//")), asked)
    assert {each.request.action for each in found.refused} == {"rely"}


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ('action == Action::"disclose", resource) when { context.what == "change"', "never"),
        ('action == Action::"rely", resource) when { context.what == "failure"', "never"),
        ('action == Action::"rely", resource is Host) when { true', "applicable action"),
    ],
)
def test_words_that_nothing_ever_is_are_refused(rule, told):
    with pytest.raises(ConfigError, match=told):
        rules_of_bank(f"forbid (principal, {rule} }};")


def test_cases_ask_about_it(tmp_path):
    cases = [
        {"name": "clinic", "expect": "refuse", "by": "nobody", "action": "rely", "to": "clinic"},
        {"name": "CHEETAH", "expect": "permit", "action": "rely", "to": "shop",
         "context": {"protocol": "CHEETAH", "type": "f32[3]"}},
    ]  # fmt: skip
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump(cases))
    gate = GateConfig(policy="bank.cedar", log="bank.db")
    owner = Owner("bank", ("analyst",), gate, names_of_bank(), BANK, "")
    rules = rules_of_bank(SHARED + NOBODY[:-1] + ' unless { context.protocol == "CHEETAH" };')
    for case, found in zip(cases, read_cases(str(tmp_path / "cases.yaml")), strict=True):
        decision, text = found.decide(owner, rules, tmp_path)
        assert decision.allowed == (case["expect"] == "permit")
        assert case.get("by", "") in text
