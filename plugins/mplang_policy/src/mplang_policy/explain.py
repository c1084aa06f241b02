"""Explanation of refused requests: the rule that forbids it, or the nearest permit and its gap."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import cedarpy
from mplang_analysis.ext import quoted

from mplang_policy.request import Entity, Request
from mplang_policy.rules import Rules, Verdict, ask, entities
from mplang_policy.statements import Statement, nodes
from mplang_policy.vocabulary import resource_types

SCOPE = ("principal", "resource")
MAX_NAMES = 6  # that are listed in a sentence


class Conjunct(NamedTuple):
    """Condition of a permit.

    Attributes:
        text: as Cedar writes it.
        body: its JSON form, a statement with this condition only.
    """

    text: str
    body: dict[str, Any]


class Why(NamedTuple):
    """Reason to refuse a request.

    Attributes:
        code: ``forbidden``, ``lacking``, ``no-rule`` or ``error``; see :class:`Refusal`.
        text: a sentence.
        rules: the rules that forbid it, or the nearest permit.
        lacks: the fields of the context that it lacks.
        about: what of its data it is because of, such as columns.
        lacking: the conditions of the nearest permit that do not hold.
    """

    code: str
    text: str
    rules: Sequence[Statement] = ()
    lacks: Sequence[str] = ()
    about: Sequence[Any] = ()
    lacking: Sequence[Conjunct] = ()


def why(rules: Rules, request: Request, verdict: Verdict) -> Why:
    """Return why a request is refused.

    Args:
        rules: the rules that were asked.
        request: the request.
        verdict: what they said.
    """
    if verdict.errors:
        text = f"a rule cannot be evaluated, and may be one that forbids: {verdict.errors[0]}"
        return Why("error", text)
    forbids = [each for each in verdict.rules if each.effect == "forbid"]
    if forbids:
        text = f"it is forbidden by {' and '.join(each.shown for each in forbids)}"
        about = [Entity(*each) for rule in forbids for each in entities(rule.body)]
        return Why("forbidden", text, forbids, about=about)
    found = nearest(rules, request)
    if found is None:
        return Why("no-rule", _no_rule(rules, request))
    statement, lacking = found
    lacks = " and ".join(_explained(each, request) for each in lacking)
    fields = dict.fromkeys(name for each in lacking for name in attributes(each.body))
    beyond = [each for conjunct in lacking for each in _beyond(conjunct, request) or ()]
    text = f"no rule permits it; the nearest, {statement.shown}, lacks: {lacks}"
    return Why("lacking", text, [statement], list(fields), beyond, lacking)


def _no_rule(rules: Rules, request: Request) -> str:
    """Return that no rule is near a request; of others' resources one is not."""
    others = any(_is_of(each, request) for each in rules.statements.values())
    of = f" for {request.resource}" if others else ""
    return f'no rule permits anything of Action::"{request.action}"{of}'


def _is_of(statement: Statement, request: Request) -> bool:
    """Return whether a statement permits this action of this coordinator something."""
    scope = (_only(statement, name) for name in ("action", "principal"))
    return statement.effect == "permit" and all(_holds(each, request) for each in scope)


def nearest(rules: Rules, request: Request) -> tuple[Statement, Sequence[Conjunct]] | None:
    """Return the permit for this action that lacks the fewest conditions, and those.

    Returns:
        ``None`` if there is no permit for this action and resource.
    """
    return next(iter(permits_near(rules, request)), None)


def permits_near(rules: Rules, request: Request) -> list[tuple[Statement, Sequence[Conjunct]]]:
    """Return the permits for this action, the nearest first, and the conditions that each lacks.

    One of another resource is not near: of another kind of receiver, or another data set. That of
    another party is, if none is of this one: a program may choose who gets what.

    Args:
        rules: the rules that were asked.
        request: the request.
    """
    candidates = []
    for statement in rules.statements.values():
        if not _is_of(statement, request):
            continue
        wanted = conjuncts(statement)
        lacking = [each for each in wanted if not _holds(each.body, request)]
        others = sum(_is_of_resource(each) for each in lacking)
        if not others or request.resource.type == _kind_of(lacking) == "Party":
            candidates.append(((others, len(lacking), -len(wanted)), statement, lacking))
    return [(each, lacking) for _, each, lacking in sorted(candidates, key=lambda each: each[0])]


def _is_of_resource(conjunct: Conjunct) -> bool:
    """Return whether a condition is on the resource alone."""
    conditions = nodes(conjunct.body["conditions"])
    variables = {each["Var"] for each in conditions if isinstance(each.get("Var"), str)}
    return conjunct.body["resource"]["op"] != "All" or variables == {"resource"}


def conjuncts(statement: Statement) -> list[Conjunct]:
    """Return the conditions of a statement, beside its action."""
    found = []
    for name in SCOPE:
        if statement.body[name]["op"] != "All":
            body = _only(statement, name)
            found.append(Conjunct(_scope_text(name, body[name]), body))
    for condition in statement.body["conditions"]:
        positive = condition["kind"] == "when"
        for part in _parts(condition["body"]) if positive else [{"!": {"arg": condition["body"]}}]:
            body = _statement({"conditions": [{"kind": "when", "body": part}]})
            found.append(Conjunct(_text(body), body))
    return found


def _statement(fields: Mapping[str, Any]) -> dict[str, Any]:
    anything = {"op": "All"}
    scope = {"principal": anything, "action": anything, "resource": anything}
    return {"effect": "permit", **scope, "conditions": [], **fields}


def _only(statement: Statement, name: str) -> dict[str, Any]:
    """Return a permit with one part of the scope of a statement."""
    return _statement({name: statement.body[name]})


def _parts(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    both = body.get("&&")
    if both is None:
        yield body
    else:
        yield from _parts(both["left"])
        yield from _parts(both["right"])


def _as_json(body: Mapping[str, Any]) -> str:
    return json.dumps({"staticPolicies": {"it": body}, "templates": {}, "templateLinks": []})


def _holds(body: Mapping[str, Any], request: Request) -> bool:
    """Return whether a condition by itself permits a request; not if it cannot be evaluated."""
    policies = cedarpy.PolicySet.from_json_str(_as_json(body))
    return ask(policies, [request])[0].allowed


def _kind_of(lacking: Sequence[Conjunct]) -> str | None:
    """Return the one type of the resources that conditions are on; ``None`` if there is none."""
    bodies = [each.body for each in lacking if _is_of_resource(each)]
    kinds = {kind for body in bodies for kind in resource_types(body)}
    return kinds.pop() if len(kinds) == 1 else None


def _scope_text(name: str, given: Mapping[str, Any]) -> str:
    if given["op"] == "is":
        return f"{name} is {given['entity_type']}"
    entity = Entity(**given["entity"])
    return f"{name} {given['op']} {entity}"


_WHEN = re.compile(r"when \{ (.*) \};$", re.DOTALL)
_NEEDLESS = re.compile(r"(?<!\w)\((context\.\w+)\)")


def _text(body: Mapping[str, Any]) -> str:
    """Return the condition of a statement as Cedar writes it, without needless parentheses."""
    whole = cedarpy.policies_from_json_str(_as_json(body)).strip()
    found = _WHEN.search(whole)
    return _NEEDLESS.sub(r"\1", found[1] if found is not None else whole)


# -- what stands in the request instead


def _explained(conjunct: Conjunct, request: Request) -> str:
    """Return a condition, and what the request has instead."""
    conditions = conjunct.body["conditions"]
    scope = {"principal": Entity("Coordinator", request.coordinator), "resource": request.resource}
    if not conditions:
        return f"{conjunct.text} (it is {scope[conjunct.text.partition(' ')[0]]})"
    body = conditions[0]["body"]
    beyond = _beyond(conjunct, request)
    if beyond is not None:
        return f"{conjunct.text} (not among them: {_listed(beyond)})"
    told = [f"it is {scope[name]}" for name in SCOPE if {"Var": name} in list(nodes(body))]
    told += [
        f"{name} is {_shown(request.context[name])}"
        if name in request.context
        else f"there is no {name}"
        for name in dict.fromkeys(attributes(body))
    ]
    return conjunct.text + (f" ({', '.join(told)})" if told else "")


def _beyond(conjunct: Conjunct, request: Request) -> Sequence[Any] | None:
    """Return what is in a set of the context and not in the one that a rule lists."""
    conditions = conjunct.body["conditions"]
    both = conditions[0]["body"].get("containsAll") if conditions else None
    if both is None or "Set" not in both["left"] or "." not in both["right"]:
        return None
    given = request.context.get(both["right"]["."]["attr"])
    listed = [_value(each) for each in both["left"]["Set"]]
    return [each for each in given if each not in listed] if isinstance(given, tuple) else None


def _value(literal: Mapping[str, Any]) -> Any:
    value = literal.get("Value")
    return Entity(**value["__entity"]) if isinstance(value, dict) else value


def attributes(body: Any) -> Iterator[str]:
    """Yield the attributes of the context in the JSON form of a condition."""
    for node in nodes(body):
        for name in (".", "has"):
            each = node.get(name)
            if isinstance(each, dict) and each.get("left") == {"Var": "context"}:
                yield each["attr"]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{_listed(value)}]"
    return str(value).lower() if isinstance(value, bool) else quoted(str(value))


def _listed(values: Sequence[Any]) -> str:
    shown = values[:MAX_NAMES]
    names = [each.told if isinstance(each, Entity) else quoted(str(each)) for each in shown]
    more = f" and {len(values) - MAX_NAMES} more" if len(values) > MAX_NAMES else ""
    return ", ".join(names) + more
