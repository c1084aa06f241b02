"""Refusals of a gate that no rule is asked about: budgets, quotas, a shut gate, another log."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from decimal import Decimal

from mplang_analysis import DELTA, EPSILON, ProgramRequest
from mplang_analysis.ext import quoted

from mplang_core.ext import AdmissionError, Advice, Refusal
from mplang_policy.budgets import Amount, Budget
from mplang_policy.quota import Used
from mplang_policy.request import Entity


def refuse(
    party: str, code: str, text: str, what: Entity | None, *advice: Advice
) -> AdmissionError:
    """Return the error of what a gate refuses beside its rules.

    Args:
        party: name of the party.
        code: what refuses it; see :class:`Refusal`.
        text: why.
        what: the program that is not run, whose requests are all refused, or ``None`` for anyone's.
        *advice: what can be changed.
    """
    action = "run" if what is not None and what.type == "Program" else ""
    resource = "" if what is None else str(what)
    made = Refusal(party, code, action, resource, reason=text, advice=advice)
    return AdmissionError(text, refusals=(made,))


def _program(asked: ProgramRequest) -> Entity:
    return Entity("Program", asked.program)


def shut(party: str, what: str, coordinator: str = "") -> AdmissionError:
    """Return the error of a gate that is shut, of which only the owner gets to know why.

    Args:
        party: name of the party.
        what: ``rules`` or ``log``.
        coordinator: who is refused, for the rules.
    """
    text = f"{party} runs nothing until its owner has repaired its {what}"
    words = ["mplang", "audit", "verify", "-c", "worker.yaml"]
    if what == "rules":
        words = ["mplang", "policy", "check", "PROGRAM.mpl", "-c", "worker.yaml"]
        words += ["--coordinator", coordinator]
    advice = Advice("command", f"the {what} cannot be used", shlex.join(words), by=party)
    return refuse(party, "shut", text, None, advice)


def other_log(party: str, peer: str, asked: ProgramRequest) -> AdmissionError:
    """Return the error of a log that a peer remembers otherwise.

    Args:
        party: name of the party.
        peer: name of the peer.
        asked: the program.
    """
    text = f"{party} does not run it: {peer} remembers another log of {party}"
    change = shlex.join(["mplang", "audit", "forget", party, "-c", "worker.yaml"])
    why = f"once {peer} has heard why, its owner has its worker forget the log of before"
    return refuse(party, "log", text, _program(asked), Advice("command", why, change, by=peer))


def full(party: str, coordinator: str, text: str, most: Used) -> AdmissionError:
    """Return the error of a coordinator that has caused too much of a log.

    Args:
        party: name of the party.
        coordinator: who has.
        text: why.
        most: what a coordinator may cause in a day.
    """
    name = next((name for name in Used._fields if f"gate.{name}" in text), "entries")
    change = f"gate: {{{name}: {2 * getattr(most, name)}}}"
    raised = Advice("setting", f"gate.{name} could be larger", change, by=party)
    later = Advice("wait", "quotas are of a day, UTC")
    return refuse(party, "quota", text, Entity("Coordinator", coordinator), later, raised)


def used_up(party: str, why: str, asked: ProgramRequest, command: str) -> AdmissionError:
    """Return the error of a run whose approval another run has just used up.

    Args:
        party: name of the party.
        why: why it does not count.
        asked: the program.
        command: the command by which the owner approves the run.
    """
    text = f"{party} does not run {quoted(asked.name)}: {why}"
    again = Advice("command", f"once {party} has approved it again, it runs", command, by=party)
    return refuse(party, "approval", text, _program(asked), again)


def over(
    party: str,
    why: str,
    asked: ProgramRequest,
    wanted: Mapping[str, Amount],
    spent: Mapping[tuple[str, str], Amount],
    budgets: Mapping[str, Budget],
) -> AdmissionError:
    """Return the error of a program that is more than what is left of a budget.

    Args:
        party: name of the party.
        why: why it is.
        asked: the program.
        wanted: what it would use up, by data set.
        spent: what was used up, by data set and coordinator.
        budgets: the budgets of the data sets.
    """
    text = f"{party} does not run {quoted(asked.name)}: {why}"
    advice = (
        each
        for data_set, amount in wanted.items()
        for each in _of_budget(party, asked, data_set, amount, spent, budgets.get(data_set))
    )
    return refuse(party, "budget", text, _program(asked), *advice)


def too_many_keys(party: str, why: str, asked: ProgramRequest) -> AdmissionError:
    """Return the error of a program that tries more keys than a day has left.

    Args:
        party: name of the party.
        why: why it does.
        asked: the program.
    """
    text = f"{party} does not run {quoted(asked.name)}: {why}"
    wait = Advice("wait", "a day begins at 0:00 UTC; gate.tried sets the limit", by=party)
    return refuse(party, "quota", text, _program(asked), wait)


def _of_budget(
    party: str,
    asked: ProgramRequest,
    data_set: str,
    amount: Amount,
    spent: Mapping[tuple[str, str], Amount],
    budget: Budget | None,
) -> Iterator[Advice]:
    """Yield what would leave enough of a budget; nothing if it does."""
    mine = spent.get((data_set, asked.coordinator), Amount())
    total = Amount()
    for (name, _), each in spent.items():
        total = total.plus(each) if name == data_set else total
    if budget is None:
        fields = {"epsilon": _float(amount.epsilon, EPSILON), "delta": _float(amount.delta, DELTA)}
        enough = {name: value for name, value in fields.items() if value}
        yield _setting(party, data_set, "a budget", enough)
        return
    by_one, by_all = budget.cap(by_one=True), budget.cap(by_one=False)
    left = min(by_one.epsilon - mine.epsilon, by_all.epsilon - total.epsilon)
    one_spend = len([each for each in asked.spends if each.party == asked.party]) == 1
    if 0 < left < amount.epsilon and one_spend:
        text = "more noise takes less of the budget; results are less exact"
        yield Advice("code", text, f"epsilon={_float(left, EPSILON)!r}")
    more, all_of_it = mine.plus(amount), total.plus(amount)
    larger = {}
    if all_of_it.epsilon > by_all.epsilon:
        larger["epsilon"] = _float(all_of_it.epsilon, EPSILON)
    if budget.per_coordinator and more.epsilon > by_one.epsilon:
        larger["per_coordinator"] = _float(more.epsilon, EPSILON)
    if all_of_it.delta > by_all.delta:
        larger["delta"] = _float(all_of_it.delta, DELTA)
        if amount.delta and one_spend:
            yield Advice("code", "noise of a Laplace distribution takes no delta", "delta=0.0")
    if larger:
        yield _setting(party, data_set, "a larger budget", larger)


def _setting(party: str, data_set: str, what: str, fields: Mapping[str, float]) -> Advice:
    listed = ", ".join(f"{name}: {value!r}" for name, value in fields.items())
    change = f"gate: {{budgets: {{{json.dumps(data_set)}: {{{listed}}}}}}}"
    return Advice("setting", f"data set {data_set} could have {what}", change, by=party)


def _float(parts: int, of: Decimal) -> float:
    return float(Decimal(parts) * of)
