"""Cedar context fields for guards: how a row is made of a party's data, on every path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mplang_analysis import DATA_SET, PUT, WHOLE, Guard, Role, Source
from mplang_analysis.ext import quoted

from mplang_policy.request import Entity

MAX_LONG = (1 << 63) - 1
"""The largest number of Cedar, which stands for any."""
ROLES: Mapping[str, str] = {Role.BY: "grouped", Role.FILTER: "filtered", Role.MATCH: "matched"}
"""The field that rules are told of a column's role by; that of a unit has none."""


def told_of_guards(
    sources: Sequence[Source], party: int, names: Sequence[str], units: Mapping[str, str]
) -> dict[str, Any]:
    """Return what rules are told of the guards that a row's sources went through.

    Args:
        sources: what the row is made of.
        party: rank of the party whose rules are asked.
        names: names of the parties, by rank.
        units: for each data set of the party the column by which its units differ.
    """
    # what a coordinator puts is its own and needs no guard
    mine = [each for each in sources if each.party == party and each.name != PUT]
    counted = [[guard for guard in each.guards if _counts(guard, each, units)] for each in mine]
    through = [{guard.op for guard in guards} for guards in counted]
    smallest = [max((guard.k for guard in guards), default=0) for guards in counted]
    largest = [min((guard.max_share for guard in guards), default=WHOLE) for guards in counted]
    uses = [(each, use) for each in mine for guard in each.guards for use in guard.uses]
    roles = {
        field: _entities("Column", (_column(each) for each, use in uses if use == role))
        for role, field in ROLES.items()
    }
    aggregates = (f"{use}({_column(each)})" for each, use in uses if use not in set(Role))
    functions = {name for each in mine for guard in each.guards for name in guard.functions}
    partners = {
        names[each.party]
        for each in sources
        if each.party != party and any(Role.MATCH in guard.uses for guard in each.guards)
    }
    matches = [guard for guards in counted for guard in guards if is_match(guard)]
    return {
        "tried": max((guard.tried or MAX_LONG for guard in matches), default=0),
        "least": min((guard.least for guard in matches), default=0),
        "declassifiers": tuple(sorted(set.intersection(*through))) if through else (),
        "k": min(smallest, default=0),
        "max_share": max(largest, default=WHOLE),
        "aggregates": _entities("Aggregate", aggregates),
        **roles,
        "functions": tuple(sorted(functions)),
        "joined_with": _entities("Party", partners),
    }


def is_match(guard: Guard) -> bool:
    """Return whether what went through a guard tells of keys whether others have them, too."""
    return not guard.units and not guard.k


def _counts(guard: Guard, source: Source, units: Mapping[str, str]) -> bool:
    """Return whether a guard counts by the unit of the data set that a source is of.

    One that counts nothing, as a match, is what it is of any data set.
    """
    if not source.name.startswith(DATA_SET):  # what was put may be called as a data set is
        return False
    if is_match(guard):
        return True
    data_set = source.name.removeprefix(DATA_SET).partition(".")[0]
    unit = units.get(data_set)
    return unit is not None and f"{DATA_SET}{data_set}.{unit}" in guard.units


def unit_of(sources: Iterable[Source], party: int, units: Mapping[str, str]) -> str:
    """Return the unit of the data set that sources are of; empty if there are several, or none.

    Args:
        sources: what is told.
        party: rank of the party.
        units: for each data set of the party the column by which its units differ.
    """
    mine = [each for each in sources if each.party == party and each.name.startswith(DATA_SET)]
    all_units = {units.get(_column(each).partition(".")[0], "") for each in mine}
    return all_units.pop() if len(all_units) == 1 else ""


def uncounted(sources: Iterable[Source], party: int, units: Mapping[str, str]) -> list[str]:
    """Return which guards of a party's data do not count because of their unit, and why.

    Args:
        sources: what is told.
        party: rank of the party.
        units: for each data set of the party the column by which its units differ.
    """
    found: dict[str, None] = {}
    for source in sorted(each for each in sources if each.party == party):
        data_set = _column(source).partition(".")[0]
        for guard in source.guards:
            if _counts(guard, source, units):
                continue
            by = ", ".join(quoted(each.removeprefix(DATA_SET)) for each in guard.units)
            counts = f"it counts by {by or 'another table'}"
            why = f"its unit is {units[data_set]}" if data_set in units else "it has no unit"
            found[f"{guard.op} does not count for {quoted(data_set)}: {counts}, and {why}"] = None
    return list(found)


def _column(source: Source) -> str:
    return source.name.removeprefix(DATA_SET)


def _entities(kind: str, names: Any) -> tuple[Entity, ...]:
    return tuple(Entity(kind, name) for name in sorted(set(names)))
