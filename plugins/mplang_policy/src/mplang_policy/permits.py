"""Rules that permit a request and little else: what an owner could add to the rules there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mplang_analysis import WHOLE

from mplang_core.ext import Advice, ConfigError
from mplang_policy.names import Names
from mplang_policy.request import Entity, Request
from mplang_policy.rules import Rules
from mplang_policy.statements import Statement
from mplang_policy.vocabulary import UNLESS_FORBIDDEN

UNSEEN = (
    "name data sets and columns that this party offers you: host.catalogue has them, mplang data "
    "schema prints them; an owner names who may as the readers of a data set"
)
MAX_RULE = 2000  # bytes of a rule that is proposed
SAID_OF_GUARDS = ("aggregates", "grouped", "filtered", "matched", "functions", "joined_with")
IMPLIED = ("name", "type", "mode", "program", "parties", "data_sets", "approved", *SAID_OF_GUARDS)
"""Fields that a proposed rule has no condition on, or on which only if there is a guard."""


def permits_of(
    rules: Rules, request: Request, party: str, forbids: Sequence[Statement] = ()
) -> Iterator[Advice]:
    """Yield what the owner could add to the rules, so that they permit a request.

    A rule is proposed only if it was tried: it is valid here, and permits the request. Whether
    there is a data set that the coordinator may not name, no advice tells.

    Args:
        rules: the rules of the party, which refuse the request.
        request: the request.
        party: name of the party.
        forbids: the rules that forbid it.
    """
    conditions = list(_conditions(request))
    rule = _permit(request, conditions)
    needs_permit = request.action not in UNLESS_FORBIDDEN
    if not _is_seen(rules.names.seen_by(request.coordinator), request):
        yield Advice("code", UNSEEN)
        return
    if len(rule) > MAX_RULE or (needs_permit and not _permits(rules, rule, request)):
        return
    for forbid in sorted(forbids, key=_last_first):
        scope = [f"{name} == {_entity(of)}" for name, of in _scope(request)]
        clause = f"unless {{\n  {_and([*scope, *conditions])}\n}}"
        text = "the rule could except this; an exception permits each program that does just this"
        yield Advice("exception", text, clause, where=forbid.place, by=party)
    if not forbids or not rules.would_permit(request):
        text = "a rule could permit it; it permits each program that does just this"
        yield Advice("rule", text, rule, by=party)


def _is_seen(names: Names, request: Request) -> bool:
    """Return whether the coordinator may name all data sets that a request is about."""
    columns = [each for each in request.context.get("columns", ()) if isinstance(each, Entity)]
    about = [*columns, *([request.resource] if request.resource.type == "DataSet" else ())]
    return not any(names.unknown(each.type, each.id) for each in about)


def _last_first(statement: Statement) -> tuple[str, int]:
    """Return the order in which rules of a file are changed, so that lines stay what they are."""
    file, _, line = statement.place.rpartition(":")
    return file, -int(line)


def _scope(request: Request) -> Iterator[tuple[str, Entity]]:
    yield "principal", Entity("Coordinator", request.coordinator)
    yield "action", Entity("Action", request.action)
    yield "resource", request.resource


def _permit(request: Request, conditions: Sequence[str]) -> str:
    scope = ",\n".join(f"  {name} == {_entity(of)}" for name, of in _scope(request))
    when = f" when {{\n  {_and(conditions)}\n}}" if conditions else ""
    return f"permit (\n{scope}\n){when};"


def _and(conditions: Sequence[str]) -> str:
    return " &&\n  ".join(conditions)


def _permits(rules: Rules, rule: str, request: Request) -> bool:
    try:
        names = rules.names.seen_by(request.coordinator)
        return Rules.of({"advice": rule}, names).decide([request])[0].allowed
    except ConfigError:  # it names what the worker's file does not have
        return False


def _conditions(request: Request) -> Iterator[str]:
    """Yield conditions that hold for a request, and for what tells as little."""
    fields = dict(request.context)
    has_guard = bool(fields.get("declassifiers"))
    for name, value in fields.items():
        if name in IMPLIED and not (has_guard and name in SAID_OF_GUARDS):
            continue
        yield from _condition(f"context.{name}", name, value)


def _condition(field: str, name: str, value: object) -> Iterator[str]:
    if isinstance(value, bool):
        if not value:  # whoever may read it may also not be able to
            yield f"!{field}"
    elif name in ("values", "stored"):  # which not every request has
        compared = f"<= {value}" if name == "values" else f"== {cedar_text(str(value))}"
        yield f"context has {name} && {field} {compared}"
    elif isinstance(value, int):
        if (name, value) not in (("k", 0), ("max_share", WHOLE)):
            yield f"{field} {'>=' if name == 'k' else '<='} {value}"
    elif isinstance(value, str):
        yield f"{field} == {cedar_text(value)}"
    elif isinstance(value, tuple):
        if name == "declassifiers":
            yield from [f"{field}.containsAll({_set(value)})"] if value else []
        else:
            yield f"{_set(value)}.containsAll({field})" if value else f"{field}.isEmpty()"


def _set(values: Sequence[object]) -> str:
    shown = (
        _entity(each) if isinstance(each, Entity) else cedar_text(str(each)) for each in values
    )
    return f"[{', '.join(shown)}]"


def _entity(entity: Entity) -> str:
    return f"{entity.type}::{cedar_text(entity.id)}"


def cedar_text(text: str) -> str:
    r"""Return a text as a literal of Cedar, in ASCII: nothing in it can end or hide it.

    Example:
        >>> print(cedar_text('people."x"'))
        "people.\u{22}x\u{22}"
    """
    plain = (
        each if each.isascii() and each.isprintable() and each not in '"\\' else _escaped(each)
        for each in text
    )
    return f'"{"".join(plain)}"'


def _escaped(mark: str) -> str:
    return f"\\u{{{ord(mark):x}}}"
