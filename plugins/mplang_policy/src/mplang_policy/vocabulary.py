"""Lint for Cedar rules: words that can never occur, by which a ``forbid`` does nothing."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple, get_args

from mplang_analysis import PUT, What, When, WorkerMode
from mplang_analysis.ext import (
    declared_times,
    guard_families,
    guard_functions,
    is_source_name,
    kinds_of_names,
    may_have_guards,
    quoted,
    unloaded_words,
)

from mplang_core import Form
from mplang_policy.names import OTHER
from mplang_policy.statements import Statement, nodes

FORMS = {form.value for form in Form}
MODES = set(get_args(WorkerMode))
STORE = "store"
"""What a row of a request is that stands for storage; the disclosure table has none of it."""
WHAT: Mapping[str, set[str]] = {
    "disclose": {*What} - {What.RESULT, What.CHANGE},
    "forward": {*What} - {What.CHANGE},
    "fetch": {What.RESULT},
    "store": {STORE},
    "rely": {What.CHANGE},
}
OPEN = ("times", "declassifiers")
"""Fields whose words installed packages extend."""
UNLESS_FORBIDDEN = ("rely",)
"""Actions that no permit is needed for: no data leaves by them, and only the owner is harmed."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ACTION = re.compile(r"^action (\w+) appliesTo \{.*?resource: (\[[^\]]*\]|\w+), context: (.*?) \};",
                     re.MULTILINE)  # fmt: skip
_TYPE = re.compile(r"^type (\w+) = \{(.*?)^\};", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(\w+)\??:", re.MULTILINE)


def schema_text() -> str:
    """Return the Cedar schema of rules."""
    return resources.files("mplang_policy").joinpath("policy.cedarschema").read_text("utf-8")


class Action(NamedTuple):
    """Action in the schema.

    Attributes:
        resources: types of its resource.
        fields: fields of its context.
    """

    resources: frozenset[str]
    fields: frozenset[str]


@functools.cache
def actions() -> Mapping[str, Action]:
    """Return the actions of the schema, by name."""
    text = schema_text()
    types = {name: frozenset(_FIELD.findall(body)) for name, body in _TYPE.findall(text)}
    return {
        name: Action(
            frozenset(re.findall(r"\w+", given)),
            types.get(context) or frozenset(re.findall(r"(\w+)\??:", context)),
        )
        for name, given, context in _ACTION.findall(text)
    }


def mistakes_of(statement: Statement) -> Iterator[str]:
    """Yield which words of a statement nothing ever is, and whether it does nothing.

    Args:
        statement: a statement that fits the schema.
    """
    among = _actions_of(statement)
    if statement.effect == "permit" and set(among) <= set(UNLESS_FORBIDDEN):
        yield f"{' and '.join(among)} needs no permit, so this one permits nothing; write a forbid"
    kinds = frozenset[str]().union(*(actions()[name].resources for name in among))
    fields = frozenset[str]().union(*(actions()[name].fields for name in among))
    for kind in sorted(set(resource_types(statement.body)) - kinds):
        yield f"the resource is not a {kind} here, but {' or '.join(sorted(kinds))}"
    for on, name in _asked_for(statement.body):
        if on != {"Var": "context"} or name not in fields:
            yield f"nothing has `{name}` here"
    for name, word in _compared(statement.body):
        others = instead_of(name, word, among)
        if others:
            why = _unloaded() if name in OPEN else ""
            yield f'{name} is never "{word}" here, but {", ".join(others)}{why}'
    for node in nodes(statement.body):
        if node.keys() == {"type", "id"}:
            if node["type"] == "Program" and not _DIGEST.fullmatch(node["id"]):
                yield f'a program is named by its digest, 64 hexadecimal digits, not "{node["id"]}"'
            if node["type"] == "Column" and _is_wrong_other(node["id"]):
                yield _no_data(node["id"])


def _is_wrong_other(name: str) -> bool:
    return name.startswith(OTHER) and not is_source_name(name.removeprefix(OTHER))


def _no_data(name: str) -> str:
    others = ", ".join(OTHER + each for each in kinds_of_names())
    known = f'what was put is "{OTHER}{PUT}"; there are {others}{_unloaded()}'
    return f'no data is called "{name}"; {known}'


def words_of(name: str, among: Sequence[str]) -> set[str] | None:
    """Return what a field of the context can be; ``None`` if it can be anything."""
    if name == "what":
        return set[str]().union(*(WHAT.get(each, set()) for each in among))
    if name == "times":
        return {*When, *declared_times()}
    if name == "declassifiers":
        return set(guard_families())
    return {"form": FORMS | {"any"}, "mode": MODES}.get(name)


def instead_of(name: str, word: str, among: Sequence[str]) -> list[str]:
    """Return what a field of the context can be where it is never a word; else nothing.

    Args:
        name: the field.
        word: what a rule compares it with.
        among: the actions.
    """
    known = words_of(name, among)
    if known is None or word in known:
        return []
    if name == "declassifiers" and may_have_guards(word):
        return []
    return sorted(known) or ["none"]


def not_installed(function: str) -> str:
    """Return that no guard computes a function, and what to do about it."""
    there = ", ".join(sorted(guard_functions())) or "none"
    return (
        f"no installed guard computes {quoted(function)}; installed: {there}{_unloaded()}. Install "
        "the package whose guard does (`mplang plugins` lists what is installed), or correct the "
        "rule"
    )


def _unloaded() -> str:
    return "".join(f"; {each}" for each in unloaded_words())


def _actions_of(statement: Statement) -> list[str]:
    given = statement.body["action"]
    found = [given["entity"]] if "entity" in given else given.get("entities", [])
    return [each["id"] for each in found] or list(actions())


def resource_types(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the types that a statement compares its resource with."""
    scope = body["resource"]
    for kind in (scope.get("entity_type"), scope.get("entity", {}).get("type")):
        if kind is not None:
            yield kind
    for node in nodes(body["conditions"]):
        asked = node.get("is")
        if isinstance(asked, dict) and asked.get("left") == {"Var": "resource"}:
            yield asked["entity_type"]
        for operator in ("==", "!=", "in"):
            for mine, other in _sides(node.get(operator)):
                if mine == {"Var": "resource"}:
                    yield from (each["type"] for each in nodes(other) if "type" in each)


def _asked_for(body: Any) -> Iterator[tuple[Any, str]]:
    """Yield what a statement asks for by ``has``, and on what."""
    for node in nodes(body):
        if isinstance(node.get("has"), dict):
            yield node["has"].get("left"), str(node["has"].get("attr"))


def _compared(body: Any) -> Iterator[tuple[str, str]]:
    """Yield the fields of the context and the words that a statement compares them with."""
    for node in nodes(body):
        for operator in ("==", "!=", "contains", "containsAny", "containsAll", "in"):
            for mine, other in _sides(node.get(operator)):
                field = mine.get(".") if isinstance(mine, dict) else None
                if isinstance(field, dict) and field.get("left") == {"Var": "context"}:
                    for word in _strings(other):
                        yield field["attr"], word


def _sides(both: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(both, dict) and "left" in both and "right" in both:
        yield both["left"], both["right"]
        yield both["right"], both["left"]


def _strings(body: Any) -> Iterator[str]:
    """Yield the texts of a literal, or of a set of them."""
    if isinstance(body, dict):
        if isinstance(body.get("Value"), str):
            yield body["Value"]
        for each in body.get("Set", ()):
            yield from _strings(each)
