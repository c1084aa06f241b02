"""Requirements: what the conditions of a permit ask of a program, as numbers and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from mplang_policy.explain import Conjunct
from mplang_policy.request import Entity
from mplang_policy.statements import nodes

ABOVE = {">=": 0, ">": 1, "==": 0}
"""Comparisons by which a number is at least one, and what that is more than it."""
BELOW = {"<=": 0, "<": -1, "==": 0}
Body: TypeAlias = Mapping[str, Any]
"""The JSON form of a condition, or of one side of it."""
FLIPPED = {">=": "<=", ">": "<", "<=": ">=", "<": ">", "==": "=="}


def least_of(conditions: Sequence[Conjunct], field: str) -> int | None:
    """Return the smallest number that a field of the context may be; ``None`` if it may be any.

    Args:
        conditions: conditions of a permit.
        field: the field.
    """
    least = [number + ABOVE[how] for how, number in _compared(conditions, field) if how in ABOVE]
    return max(least, default=None)


def most_of(conditions: Sequence[Conjunct], field: str) -> int | None:
    """Return the largest number that a field of the context may be; see :func:`least_of`."""
    most = [number + BELOW[how] for how, number in _compared(conditions, field) if how in BELOW]
    return min(most, default=None)


def names_among(conditions: Sequence[Conjunct], field: str) -> list[str] | None:
    """Return the names that a set of the context may have; ``None`` if it may have any.

    Args:
        conditions: conditions of a permit.
        field: the field.
    """
    among: list[str] | None = None
    for mine, other in _sides(conditions, "containsAll"):
        if _field(other) == field and isinstance(mine.get("Set"), list):
            names = list(_names(mine))
            among = names if among is None else [each for each in among if each in names]
    return among


def names_in(conditions: Sequence[Conjunct], field: str) -> list[str]:
    """Return the names that a set of the context has to have.

    Args:
        conditions: conditions of a permit.
        field: the field.
    """
    ways = ("contains", "containsAll", "containsAny", "==")
    names = (
        name
        for way in ways
        for mine, other in _sides(conditions, way)
        if _field(mine) == field
        for name in _names(other)
    )
    return list(dict.fromkeys(names))


def parties_of(conditions: Sequence[Conjunct]) -> list[str]:
    """Return the parties that a resource may be."""
    scopes = [each.body["resource"].get("entity", {}) for each in conditions]
    named = [each["id"] for each in scopes if each.get("type") == "Party"]
    for mine, other in _sides(conditions, "=="):
        if mine == {"Var": "resource"}:
            named += _names(other)
    return list(dict.fromkeys(named))


def _bodies(conditions: Sequence[Conjunct]) -> Iterator[Body]:
    for each in conditions:
        for condition in each.body["conditions"]:
            yield condition["body"]


def _sides(conditions: Sequence[Conjunct], way: str) -> Iterator[tuple[Body, Body]]:
    """Yield the sides of a condition as a whole: within an ``||`` or a ``!`` it asks nothing."""
    for body in _bodies(conditions):
        both = body.get(way)
        if isinstance(both, dict) and "left" in both:
            yield both["left"], both["right"]
            if way == "==":
                yield both["right"], both["left"]


def _compared(conditions: Sequence[Conjunct], field: str) -> Iterator[tuple[str, int]]:
    for way, flipped in FLIPPED.items():
        for body in _bodies(conditions):
            both = body.get(way, {})
            for mine, other, how in (("left", "right", way), ("right", "left", flipped)):
                number = both.get(other, {}).get("Value")
                if _field(both.get(mine, {})) == field and type(number) is int:
                    yield how, number


def _field(body: Body) -> str:
    """Return the field of the context that a side is; empty if it is none."""
    of = body.get(".")
    return str(of["attr"]) if of and of.get("left") == {"Var": "context"} else ""


def _names(body: Body) -> Iterator[str]:
    """Yield the names of a literal, or of a set of them."""
    for node in nodes(body):
        value = node.get("Value")
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict) and "__entity" in value:
            yield Entity(**value["__entity"]).id
