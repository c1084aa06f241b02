"""Calls of a guard that a permit counts on, as a program would write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from mplang_analysis import DATA_SET, EPSILON, ProgramRequest, Source
from mplang_analysis.ext import guard_functions

from mplang_policy.explain import Conjunct
from mplang_policy.guarded import unit_of
from mplang_policy.names import Names, parts_of
from mplang_policy.requirements import least_of, most_of, names_among

OF_THE_GUARD = "guard"
"""The declassifier of ``mp.guard.aggregate``."""


def guard_call(
    sources: Sequence[Source], conditions: Sequence[Conjunct], asked: ProgramRequest, names: Names
) -> str:
    """Return a call of ``mp.guard.aggregate`` that a permit counts on; empty if none is known.

    Args:
        sources: data of the party that a row is made of.
        conditions: the conditions of the permit.
        asked: the program.
        names: names of the party.
    """
    party, unit = asked.names[asked.party], unit_of(sources, asked.party, names.units)
    data_sets = {each.name.removeprefix(DATA_SET).partition(".")[0] for each in sources}
    if not unit or len(data_sets) != 1 or not guard_functions():
        return ""
    data_set = data_sets.pop()
    columns = sorted(each.name.removeprefix(f"{DATA_SET}{data_set}.") for each in sources)
    results = dict(_aggregates(data_set, columns, unit, conditions, names)) or {"n": "units"}
    read = sorted({unit, *(each[0] for each in results.values() if isinstance(each, tuple))})
    arguments = {"unit": repr(unit), "k": str(max(least_of(conditions, "k") or 0, 2))}
    share = most_of(conditions, "max_share")
    if share is not None:
        arguments["max_share"] = millionths(share)
    arguments |= {name: repr(of) for name, of in results.items()}
    listed = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return f"mp.guard.aggregate(mp.dataset({party!r}, {data_set!r}, {read!r}), {listed})"


def _aggregates(
    data_set: str, columns: Sequence[str], unit: str, conditions: Sequence[Conjunct], names: Names
) -> Iterator[tuple[str, str | tuple[str, str]]]:
    """Yield results of the call: of each column a function that the permit names, or the mean."""
    permitted = names_among(conditions, "aggregates")
    for column in columns:
        whole = f"{data_set}.{column}"
        functions = ["mean"] if permitted is None else _functions(permitted, whole)
        offered = [each for each in functions if f"{each}({whole})" in names.offered("Aggregate")]
        if column != unit and offered and column.isidentifier():
            yield column, (column, offered[0])
    if permitted and f"units({data_set}.{unit})" in permitted:
        yield "n", "units"


def _functions(aggregates: Sequence[str], column: str) -> list[str]:
    parts = map(parts_of, aggregates)
    return [function for function, of in parts if of == column]


def millionths(number: int) -> str:
    """Return a number of millionths as Python writes it.

    Example:
        >>> millionths(500000)
        '0.5'
    """
    return repr(float(Decimal(number) * EPSILON))
