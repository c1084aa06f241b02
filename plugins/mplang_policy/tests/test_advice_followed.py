"""Refusals of all kinds: each advice is true, and a program that follows it is permitted.

The advice is data: what is changed is what it says, by `refused_bank`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import pytest
from mplang_analysis import PublicInput
from mplang_crypto import encrypt, keygen
from mplang_tables import to_tensor
from policy_testbed import NAMES, RUNS
from refused_bank import Bank, long_ago

import mplang_core as mp
from mplang_core.errors import Advice, Refusal

OWNERS = ("rule", "exception")
"""Kinds of advice that belong together."""


# -- programs: what they take is what advice can change


def pay(code=None, **_):
    return mp.device("P0")(lambda t: t.agg(most=t.pay.max()))(mp.dataset("bank", "people", ["pay"]))


def rows(code=None, **_):
    """What is read, or what advice says instead."""
    return mp.dataset("bank", "people", ["city", "pay"]) if code is None else code()


def guarded(k=5, unit="id", max_share=None, without=(), code=None, **_):
    if code is not None:
        return code()
    table = mp.dataset("bank", "people")
    if "people.pay" not in without:
        table = mp.device("P0")(lambda t: t.filter(t.pay > 3))(table)
    if "upper" not in without:
        table = mp.device("P0")(lambda t: t.filter(t.city.upper() != "X"))(table)
    if not {"people.id", "shop"} & {*without}:
        sold = mp.put("P0", mp.dataset("shop", "sales", ["id"]))
        table = mp.device("P0")(lambda t, s: t.semi_join(s, t.id == s.id))(table, sold)
    by = [] if "people.city" in without else ["city"]
    told = {"pay": ("pay", "mean"), "least": ("pay", "sum")}
    if "mean(people.pay)" in without:
        del told["pay"]
    return mp.guard.aggregate(table, unit=unit, k=k, by=by, max_share=max_share, **told)


def noisy(epsilon=0.5, delta=0.0, code=None, **_):
    if code is not None:
        return code()
    table = mp.dataset("bank", "people", ["id"])
    return mp.dp.count(table, unit="id", epsilon=epsilon, delta=delta)


def gives(receiver="shop", **_):
    return mp.keep(mp.put(f"P{NAMES.index(receiver)}", mp.dataset("bank", "people", ["pay"])))


def forwards(**_):
    return mp.keep(mp.put("P2", mp.put("P0", mp.dataset("shop", "sales", ["amount"]))))


def stores(**_):
    mp.store(mp.dataset("bank", "people", ["pay"]), "kept")


def shared(**_):
    paid = mp.device("P0")(lambda t: t.agg(pay=t.pay.sum()))(mp.dataset("bank", "people", ["pay"]))
    found = mp.device("SP0")(lambda x: x + 1)(mp.seal(mp.device("P0")(to_tensor)(paid, rows=1)))
    return mp.keep(mp.reveal(found, to="P0"))


def sized(**_):
    return mp.keep(mp.put("P1", mp.device("P0")(encrypt)(pay_rows(), mp.device("P0")(keygen)())))


def slow(**_):
    def until(x):
        return jax.lax.while_loop(lambda v: v < x[0, 0], lambda v: v + 1, 0.0)

    return mp.keep(mp.device("P0")(until)(mp.device("P0")(to_tensor)(pay_rows(), rows=3)))


def pay_rows():
    return mp.dataset("bank", "people", ["pay"])


def by_pay(unit="pay", **_):
    table = mp.dataset("bank", "people")
    return mp.guard.aggregate(table, unit=unit, k=20, least=("pay", "sum"))


def deltas(epsilon=0.5, delta=1e-6, **_):
    return noisy(epsilon, delta)


def pay_numbers(**_):
    return mp.device("P0")(to_tensor)(pay_rows(), rows=3)


def of_a_year(year, **_):
    return pay(), year


# -- refusals


class Case(NamedTuple):
    """A program that is refused, and the kinds of advice that are followed until it is not."""

    name: str
    program: Callable[..., Any]
    rules: str
    code: str
    action: str
    follow: Sequence[str]
    gate: Mapping[str, Any] = MappingProxyType({})


def permit(what: str, condition: str = "") -> str:
    """Return a rule of a line, for some actions."""
    when = f" when {{ {condition} }}" if condition else ""
    return f"permit (principal, {what}){when};\n"


def action(*names: str, to: str = "resource") -> str:
    listed = ", ".join(f'Action::"{name}"' for name in names)
    return f"action in [{listed}], {to}"


ALL = permit("action, resource")
RUN, READ, FETCH = (permit(action(name)) for name in ("run", "read", "fetch"))
RUN_ONE = permit(action("run", to=f'resource == Program::"{"0" * 64}"'))
READ_PAY = permit(action("read"), '[Column::"people.pay"].containsAll(context.columns)')
EVERYONE = permit(action("disclose", to="resource is Everyone"))
TO_CLINIC = RUNS + permit(action("disclose", to='resource == Party::"clinic"'))
TO_OTHER = RUNS + FETCH.replace("principal", 'principal == Coordinator::"other"')
NO_FETCH = '@id("nothing") forbid (principal, action == Action::"fetch", resource);'
NO_PAY = (
    '@id("no pay") forbid (principal, action, resource) '
    'when { context has columns && context.columns.contains(Column::"people.pay") };'
)
NO_RELY = 'forbid (principal, action == Action::"rely", resource);'
NO_ABY3 = (
    'forbid (principal, action == Action::"disclose", resource) '
    'when { context.protocol == "ABY3" };'
)
NO_CHANNELS = (
    RUN
    + READ
    + permit(
        action("disclose", "fetch"),
        '!context.discloses && context.form == "ciphertext" || context.what == "failure"',
    )
)
LESS = (
    READ + permit(action("disclose", "fetch")) + permit(action("run"), "context.epsilon <= 250000")
)
COLUMNS = '[Column::"people.pay"].containsAll(context.columns)'
GUARD = 'context.declassifiers.contains("guard") && context.k >= 20'
SUMS = '[Aggregate::"sum(people.pay)"].containsAll(context.aggregates)'
BUDGET, SMALL = {"epsilon": 1.0}, {"epsilon": 0.25}
ONES = {"epsilon": 1.0, "per_coordinator": 0.25}


def of_guards(condition: str) -> str:
    shares = permit(action("disclose", to="resource is Party"))
    return RUNS + shares + permit(action("fetch"), condition)


def lacking(name, program, condition, *follow):
    return Case(name, program, of_guards(condition), "lacking", "fetch", follow)


CASES = (
    Case("no rule for run", pay, FETCH + READ + EVERYONE, "no-rule", "run", OWNERS),
    Case("run of one program", pay, FETCH + READ + EVERYONE + RUN_ONE, "no-rule", "run", OWNERS),
    Case("no rule for read", pay, FETCH + RUN + EVERYONE, "no-rule", "read", OWNERS),
    Case("read of fewer", rows, FETCH + RUN + EVERYONE + READ_PAY, "lacking", "read", ("code",)),
    Case("no rule for fetch", pay, RUNS, "no-rule", "fetch", OWNERS),
    Case("no rule for failures", pay, RUN + READ + FETCH, "no-rule", "disclose", OWNERS),
    Case("no rule for parties", gives, RUNS, "no-rule", "disclose", OWNERS),
    Case("no rule to send on", forwards, RUNS, "no-rule", "forward", OWNERS),
    Case("no rule to store", stores, RUNS, "no-rule", "store", OWNERS),
    Case("no rule for shares", shared, RUNS, "no-rule", "disclose", OWNERS),
    Case("rules of another", pay, TO_OTHER, "no-rule", "fetch", OWNERS),
    Case("another receiver", gives, TO_CLINIC, "lacking", "disclose", ("receiver",)),
    Case("a receiver that no rule has", gives, TO_CLINIC, "lacking", "disclose", OWNERS),
    Case("forbidden", pay, f"{RUNS}{FETCH}{NO_PAY}", "forbidden", "read", OWNERS),
    Case("forbidden, and never permitted", gives, RUNS + NO_PAY, "forbidden", "read", OWNERS),
    Case(
        "two rules forbid it",
        pay,
        f"{RUNS}{FETCH}{NO_PAY}\n{NO_FETCH}",
        "forbidden",
        "read",
        OWNERS,
    ),
    Case("relied on", shared, ALL + NO_RELY, "forbidden", "rely", OWNERS),
    Case("a debugging protocol", shared, ALL + NO_ABY3, "forbidden", "disclose", OWNERS),
    Case("a size", sized, NO_CHANNELS, "lacking", "disclose", OWNERS),
    Case("a duration", slow, NO_CHANNELS, "lacking", "disclose", OWNERS),
    Case("noise", noisy, LESS, "lacking", "run", ("code",), {"budgets": {"people": BUDGET}}),
    lacking("too many numbers", pay_numbers, "context has values && context.values <= 2", *OWNERS),
    lacking("development", pay, 'context.mode == "development"', *OWNERS),
    lacking("columns", rows, COLUMNS, "code"),
    lacking("columns, the owner", rows, COLUMNS, *OWNERS),
    lacking("no guard", rows, GUARD, "code"),
    lacking("no guard, the owner", rows, GUARD, *OWNERS),
    lacking("no guard of a function", rows, f"{GUARD} && {SUMS}", "code"),
    lacking("groups that are too small", guarded, GUARD, "code"),
    lacking("more than some", guarded, "5 < context.k", "code"),
    lacking("dominated groups", guarded, "context.max_share <= 500000", "code"),
    lacking("another unit", by_pay, GUARD, "code"),
    lacking("a function", guarded, SUMS, "without"),
    lacking(
        "a filter", guarded, '[Column::"people.city"].containsAll(context.filtered)', "without"
    ),
    lacking("groups", guarded, '[Column::"people.pay"].containsAll(context.grouped)', "without"),
    lacking("a match", guarded, '[Column::"people.ssn"].containsAll(context.matched)', "without"),
    lacking("a function of rows", guarded, '["lower"].containsAll(context.functions)', "without"),
    lacking("a partner", guarded, '[Party::"clinic"].containsAll(context.joined_with)', "without"),
    lacking("another guard", noisy, GUARD, "code")._replace(gate={"budgets": {"people": BUDGET}}),
    Case("no budget", noisy, ALL, "budget", "run", ("setting",)),
    Case(
        "more than a budget", noisy, ALL, "budget", "run", ("code",), {"budgets": {"people": SMALL}}
    ),
    Case(
        "a small budget", noisy, ALL, "budget", "run", ("setting",), {"budgets": {"people": SMALL}}
    ),
    Case("one's budget", noisy, ALL, "budget", "run", ("setting",), {"budgets": {"people": ONES}}),
    Case("no delta", deltas, ALL, "budget", "run", ("code",), {"budgets": {"people": BUDGET}}),
    Case(
        "a small delta", deltas, ALL, "budget", "run", ("setting",), {"budgets": {"people": BUDGET}}
    ),
)


@pytest.fixture
def bank(tmp_path):
    """Return a function that makes a bank, in a folder of its own."""
    banks = []

    def make(program, rules, **gate):
        folder = tmp_path / str(len(banks))
        folder.mkdir()
        banks.append(Bank(folder, program, rules, **gate))
        return banks[-1]

    yield make
    for each in banks:
        each.close()


def ways(refusal: Refusal) -> list[list[Advice]]:
    """Return what can be done about a refusal, each way by itself."""
    owners = [each for each in refusal.advice if each.kind in OWNERS]
    others = [[each] for each in refusal.advice if each.kind not in OWNERS and is_followed(each)]
    return [owners, *others] if owners else others


def is_followed(advice: Advice) -> bool:
    """Return whether a machine can follow it; the other advice is for people."""
    return bool(advice.change) or advice.kind == "wait"


def same(refusal: Refusal) -> tuple[object, ...]:
    return refusal.code, refusal.action, refusal.resource, refusal.what, refusal.lacks


def follow_to_success(
    bank: Bank, asks: Callable[[], Sequence[Refusal]], kinds: Sequence[str]
) -> int:
    """Follow the advice of some kinds until nothing is refused; return how often that was."""
    for count in range(12):
        refusals = asks()
        if not refusals:
            return count
        way = [each for each in refusals[0].advice if each.kind in kinds and is_followed(each)]
        assert way, (refusals[0].advice, count)
        for each in way if way[0].kind in OWNERS else way[:1]:
            bank.follows(each)
    raise AssertionError(f"it is still refused: {refusals}")


@pytest.mark.parametrize("case", CASES, ids=[each.name for each in CASES])
def test_a_refused_program_that_follows_the_advice_is_permitted(bank, case):
    refused = bank(case.program, case.rules, **case.gate)
    first = refused.asks()[0]
    assert (first.party, first.code, first.action) == ("bank", case.code, case.action)
    assert follow_to_success(refused, refused.asks, case.follow) > 0
    for way in ways(first):
        other = bank(case.program, case.rules, **case.gate)
        for each in way:
            other.follows(each)
        assert same(first) not in list(map(same, other.asks())), way


# -- approvals

SIGNED = RUNS + permit(action("fetch"), "context.approved")
OUTDATED = {
    "of nobody": None,
    "that has expired": {"expires": long_ago()},
    "of another program": {"program": "0" * 64},
    "of other versions": {"versions": {"mplang-ibis": "0.0.1"}},
    "for another coordinator": {"coordinators": ("other",)},
    "for parties in another order": {"parties": tuple(reversed(NAMES))},
    "of less": {"rows": ()},
    "of other lines": {"shown": "0" * 64},
}


@pytest.mark.parametrize("changes", OUTDATED.values(), ids=OUTDATED)
def test_an_approval_that_does_not_count_is_made_anew_by_the_command(approved, changes):
    if changes is not None:
        approved.signs(**changes)
    (first,) = approved.asks()
    assert [each.kind for each in first.advice] == ["command"]  # no rule that asks for none
    assert follow_to_success(approved, approved.asks, ["command"]) == 1


def test_an_approval_is_made_anew_that_is_used_up_or_of_another_input(approved):
    approved.signs()
    assert not approved.asks()
    (used,) = approved.asks()
    assert "its 1 uses are used up" in used.advice[0].text
    assert follow_to_success(approved, approved.asks, ["command"]) == 1
    approved.signs(uses=9)
    approved.inputs = [PublicInput(0, (1999,))]
    (other,) = approved.asks()
    assert "year is 1999" in other.advice[0].text
    assert "--input 0=1999" in other.advice[0].change
    assert follow_to_success(approved, approved.asks, ["command"]) == 1


def test_a_revoked_approval_is_made_anew(approved):
    approved.signs(id="a" * 16)
    approved.runs(f"mplang revoke {'a' * 16} -c worker.yaml")
    (first,) = approved.asks()
    assert "it was revoked" in first.advice[0].text
    assert follow_to_success(approved, approved.asks, ["command"]) == 1


@pytest.fixture
def approved(bank):
    """Return a bank whose rules ask for a signature."""
    made = bank(of_a_year, SIGNED)
    made.follows(Advice("setting", "", repr({"gate": made.approvers()})))
    made.inputs = [PublicInput(0, (2020,))]
    return made


# -- what rules are not asked about


@pytest.mark.parametrize("kind", ["wait", "setting"])
@pytest.mark.parametrize("limit", [{"entries": 2}, {"bytes": 5000}], ids=["entries", "bytes"])
def test_a_quota_that_is_used_up(bank, kind, limit):
    full = bank(pay, ALL, **limit)
    while not full.asks():
        pass
    (first,) = full.asks()
    assert (first.code, first.resource) == ("quota", 'Coordinator::"analyst"')
    assert str(first).startswith('bank refuses everything of Coordinator::"analyst"')
    assert follow_to_success(full, full.asks, [kind]) > 0


def test_a_value_that_is_put(bank):
    closed = bank(pay, RUNS)
    (first,) = closed.puts()
    assert (first.code, first.action) == ("no-rule", "put")
    assert follow_to_success(closed, closed.puts, OWNERS) == 1


def test_rules_that_are_wrong_are_told_to_their_owner_alone(bank):
    shut = bank(pay, ALL)
    assert not shut.asks()
    shut.follows(Advice("rule", "", "permit (principal, action, resource) when { secret };"))
    (first,) = shut.asks()
    assert (first.code, first.action, first.resource) == ("shut", "", "")
    assert "secret" not in str(first)
    (check,) = first.advice
    assert "bank.cedar: line 3" in shut.runs(check.change, ok=False)
    (shut.folder / "bank.cedar").write_text(ALL)
    shut.runs(check.change)
    assert not shut.asks()


def test_a_peer_forgets_a_log_that_was_set_back(bank):
    before, mine, peer = bank(pay, ALL), bank(pay, ALL), bank(pay, ALL)
    assert not before.asks()
    peer.gate.end("analyst", {}, "s-0", {"bank": (before.head, before.gate.public_key)})
    mine.seen = {"shop": peer.gate.seen(["bank"])["bank"]}  # its log has nothing of that run
    (first,) = mine.asks()
    (forget,) = first.advice
    assert (first.code, forget.by) == ("log", "shop")
    peer.follows(forget)
    mine.seen = peer.gate.seen(["bank"])
    assert not mine.asks()
