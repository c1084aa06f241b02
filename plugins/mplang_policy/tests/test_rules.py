"""Rules: what is taken for a mistake, and that nothing but a clean Allow permits."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from mplang_policy import Entity, Request, Rules, requests_of
from mplang_policy.guarded import told_of_guards
from mplang_policy.live_rules import LiveRules
from mplang_policy.vocabulary import schema_text
from policy_testbed import PERMIT_ALL, names_of_bank, rules_of_bank

from mplang_core.ext import ConfigError


def forbids(condition):
    """Return rules that forbid a fetch under a condition."""
    head = PERMIT_ALL + 'forbid (principal, action == Action::"fetch", resource) when { '
    return head + condition + " };"


PUT = Request("analyst", "put", Entity("Party", "bank"), {"mode": "production"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("permit (principal", "bank.cedar: line 1: no Cedar"),
        (PERMIT_ALL + "\n// and\nforbid (x, action, resource);", "bank.cedar: line 3: no Cedar"),
        (
            PERMIT_ALL
            + '\n\nforbid (principal, action == Action::"fetch", resource)'
            + " when { context.kk > 3 };",
            "bank.cedar:3: attribute `kk`",
        ),
        (
            "forbid (principal, action, resource) when { context has colums };",
            "bank.cedar:1: nothing has `colums` here",
        ),
        (
            'forbid (principal, action == Action::"fetch", resource)\n'
            'when { context.columns.contains(Column::"people.payy") };',
            'bank.cedar:1: there is no Column::"people.payy" here, but people.city, people.id',
        ),
        (
            'forbid (principal == Coordinator::"analist", action, resource);',
            'there is no Coordinator::"analist" here, but analyst',
        ),
        (
            'forbid (principal, action == Action::"read", resource == DataSet::"peple");',
            'there is no DataSet::"peple" here, but people',
        ),
        (
            'forbid (principal, action == Action::"disclose", resource == Party::"shopp");',
            'there is no Party::"shopp" here, but bank, clinic, shop',
        ),
        (forbids('context.form == "plian"'), 'form is never "plian" here, but any, ciphertext'),
        (forbids('context.what == "reslt"'), 'what is never "reslt" here, but result'),
        (forbids('context.what == "move"'), 'what is never "move" here, but result'),
        (forbids('context.mode == "prod"'), 'mode is never "prod" here'),
        (forbids('context.times.contains("per-iteration")'), 'times is never "per-iteration"'),
        (forbids('["onec"].containsAny(context.times)'), 'times is never "onec"'),
        (forbids("resource is Party"), "the resource is not a Party here, but Host"),
        (forbids('resource == Party::"shop"'), "the resource is not a Party here, but Host"),
        (forbids("context has other"), "nothing has `other` here"),
        (forbids("resource has columns"), "nothing has `columns` here"),
        (forbids("context has principal"), "nothing has `principal` here"),
        (
            forbids('context.columns.contains(Column::"other:putt")'),
            'no data is called "other:putt"; what was put is "other:put"; there are other:put, ',
        ),
        (
            forbids('context.columns.contains(Column::"other:till.read")'),
            'no data is called "other:till.read"',
        ),
        (forbids('context.program == Program::"payroll"'), "a program is named by its digest"),
        (
            'forbid (principal, action == Action::"read", resource) when { context has k };',
            "nothing has `k` here",
        ),
        ("permit (principal == ?principal, action, resource);", "a template permits nothing"),
        (
            forbids('context.aggregates.contains(Aggregate::"vart(people.pay)")'),
            "bank.cedar:1: no installed guard computes vart; installed: count, histogram, mean, ",
        ),
        (
            forbids('context.aggregates.contains(Aggregate::"mean(people.payy)")'),
            'bank.cedar:1: there is no Aggregate::"mean(people.payy)" here, but count(people.city)',
        ),
        (
            forbids('context.declassifiers.contains("gaurd")'),
            'declassifiers is never "gaurd" here, but dp, guard',
        ),
        ('permit (principal, action == Action::"fetsh", resource);', "bank.cedar:1: "),
    ],
)
def test_a_mistake_is_told_with_its_line(text, told):
    with pytest.raises(ConfigError) as found:
        rules_of_bank(text)
    assert told in str(found.value)


@pytest.mark.parametrize(
    "name", ["put", "input 12", "stored model.v2", "several", "an earlier run", "crypto.keygen"]
)
def test_each_name_that_a_label_has_is_taken(name):
    rules_of_bank(forbids(f'context.columns.contains(Column::"other:{name}")'))


def test_only_what_a_guard_may_tell_is_offered():
    offered = names_of_bank().offered("Aggregate")
    assert {"mean(people.pay)", "count(people.city)", "units(people.id)"} <= set(offered)
    assert not {"mean(people.city)", "units(people.pay)", "count(people.ssn)"} & set(offered)


@pytest.mark.parametrize("function", ["count", "units", "sum", "mean", "std", "histogram"])
@pytest.mark.parametrize("column", ["id", "pay", "city", "ssn"])
def test_rules_of_before_are_still_taken(function, column):
    aggregate = f'Aggregate::"{function}(people.{column})"'
    rules_of_bank(forbids(f"context.aggregates.contains({aggregate})"))


def test_columns_that_are_matched_on_can_be_named():
    rules_of_bank(
        'forbid (principal, action == Action::"fetch", resource)'
        ' when { context.columns.contains(Column::"people.ssn") };'
    )


def test_no_rule_is_a_refusal():
    (verdict,) = rules_of_bank('permit (principal, action == Action::"run", resource);').decide(
        [PUT]
    )
    assert not verdict.allowed


def test_a_forbid_counts_more_than_a_permit():
    rules = rules_of_bank(PERMIT_ALL + '@id("no") forbid (principal, action, resource);')
    (verdict,) = rules.decide([PUT])
    assert not verdict.allowed
    assert [rule.id for rule in verdict.rules] == ["no"]


def fetch_of(**given):
    """Return a request for a fetch, with some fields of its context."""
    flow = {
        "what": "result", "form": "plain", "type": "f64[]", "protocol": "", "discloses": True,
        "data_sets": (), "columns": (), "others": (), **told_of_guards((), 0, (), {}),
        "times": ("once",), "program": Entity("Program", "0"), "mode": "production",
        "parties": (), "approved": False,
    }  # fmt: skip
    return Request("analyst", "fetch", Entity("Host", "analyst"), {**flow, **given})


def test_a_forbid_that_cannot_be_evaluated_is_a_refusal():
    overflow = 'forbid (principal, action == Action::"fetch", resource) when '
    overflow += "{ context.k + 9223372036854775807 < 0 };"
    rules = rules_of_bank(PERMIT_ALL + overflow)
    (verdict,) = rules.decide([fetch_of(k=7)])
    assert not verdict.allowed
    assert "overflow" in verdict.errors[0]
    assert "bank.cedar:1" in verdict.errors[0]


TEXTS = st.text() | st.sampled_from(["__entity", "__extn", '"', "\\u{0}", "*", "\0", "\u202e", ""])
LONGS = st.integers(0, (1 << 63) - 1)


@given(TEXTS, TEXTS, LONGS, LONGS, st.lists(TEXTS, max_size=5))
def test_names_and_numbers_of_a_program_get_a_clean_answer(name, text, k, share, columns):
    """They are the coordinator's: an answer that is none would be a fault of ours, or a refusal."""
    rules = rules_of_bank(
        'permit (principal, action == Action::"fetch", resource) when '
        '{ context.k >= 5 && context.type like "f*" };'
    )
    flow = fetch_of(
        k=k,
        max_share=share,
        type=text,
        columns=tuple(Entity("Column", each) for each in columns),
        functions=tuple(columns),
    )
    asked = Request(name, "fetch", Entity("Host", name), flow.context)
    (verdict,) = rules.decide([asked])
    assert not verdict.errors
    assert verdict.allowed == (k >= 5 and text.startswith("f"))


def test_a_request_that_does_not_fit_the_schema_is_a_refusal():
    (verdict,) = rules_of_bank(PERMIT_ALL).decide([Request("x", "put", PUT.resource, {"mode": 3})])
    assert not verdict.allowed


def test_rules_follow_their_files(tmp_path):
    file = tmp_path / "bank.cedar"
    file.write_text(PERMIT_ALL)
    live = LiveRules(tmp_path, names_of_bank())
    first = live.current()
    assert live.current() is first  # parsed once

    file.write_text("permit (principal, action, resource) when { context.nothing };")
    with pytest.raises(ConfigError, match="bank.cedar:1"):
        live.current()
    with pytest.raises(ConfigError, match="bank.cedar:1"):  # until it is mended
        live.current()

    file.unlink()
    with pytest.raises(ConfigError, match="there is no rule"):
        live.current()

    file.write_text(PERMIT_ALL)
    assert live.current().decide([PUT])[0].allowed


def test_a_file_that_is_added_counts_at_once(tmp_path):
    (tmp_path / "a.cedar").write_text(PERMIT_ALL)
    live = LiveRules(tmp_path)
    assert live.current().decide([PUT])[0].allowed
    (tmp_path / "b.cedar").write_text("forbid (principal, action, resource);")
    assert not live.current().decide([PUT])[0].allowed


def test_a_folder_that_is_gone_is_a_refusal(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.cedar").write_text(PERMIT_ALL)
    live = LiveRules(tmp_path / "rules")
    live.current()
    (tmp_path / "rules" / "a.cedar").unlink()
    (tmp_path / "rules").rmdir()
    with pytest.raises(ConfigError):
        live.current()


def test_rules_of_a_folder_without_any_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="mplang policy init"):
        Rules.read(tmp_path)


def test_the_schema_has_each_field_of_a_request_and_no_other():
    """A field that rules can name and no request has would never hold."""
    import re

    from mplang_policy.offline import asked_of
    from policy_testbed import NAMES, program_of

    import mplang_core as mp

    def program():
        table = mp.dataset("bank", "people", ["pay"])
        mp.store(mp.put("P1", table), "kept")
        return table

    asked = asked_of(program_of(program), NAMES, "bank", "analyst", "production")
    seen = {name for each in requests_of(asked, {}) for name in each.context} | {"values"}
    named = set(re.findall(r"^  (\w+)\??:", schema_text(), re.MULTILINE))
    assert seen == named
