"""What tests of guards on shares share: aggregates asked of data sets, and by plain Python."""

from __future__ import annotations

import math
from itertools import product

from secret_joining import cluster

import mplang_core as mp


def program_of(data, on, **asked):
    """Return a program that asks for aggregates of units in common, as a table at the bank."""

    def program():
        tables = [mp.dataset(party, name) for party, sets in data.items() for name in sets]
        told = mp.guard.aggregate(mp.overlap(*tables, on=on, to="SP0"), **asked)
        return mp.reveal(told, to="bank").table()

    return program


def told(data, on, protocol="SEMI2K", field="FM128", **asked):
    """Return the groups that are told of the units in common of data sets, as a list of rows.

    Args:
        data: for each party a data set by name.
        on: the column of units.
        protocol: of the SPU.
        field: of the SPU.
        **asked: of ``mp.guard.aggregate``.
    """
    spec = cluster(protocol, len(data), field=field)
    with mp.Simulator(spec, data=data) as sim:
        return mp.fetch(sim, mp.evaluate(sim, program_of(data, on, **asked))).to_pylist()


def expected(data, on, *, k, by=(), max_share=1.0, **asked):
    """Return the same by plain Python, over all tables in one place."""
    sides = [each for sets in data.values() for each in sets.values()]
    rows = [each.value.to_pylist() for each in sides]
    keys = [on] * len(rows) if isinstance(on, str) else list(on[0])
    known = {name: values for each in sides for name, values in _groups(each).items()}
    made = []
    for labels in product(*(known[name] for name in by)):
        wanted = dict(zip(by, labels, strict=True))
        mine = [[row for row in each if all(row[n] == v for n, v in wanted.items() if n in row)]
                for each in rows]  # fmt: skip
        units = set.intersection(*({row[key] for row in each} - {None}
                                   for each, key in zip(mine, keys, strict=True)))  # fmt: skip
        numbers = {}
        for name, given in asked.items():
            number = _number(mine, keys, units, given, k, max_share)
            if number is None or len(units) < k:
                break
            numbers[name] = number
        else:
            made.append({**wanted, **numbers})
    return made


def _groups(data_set):
    known = data_set.description
    ranges = {name: range(int(low), int(high) + 1) for name, (low, high) in known.ranges.items()}
    return {**known.values, **ranges}


def _is_known(value):
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _number(sides, keys, units, given, k, max_share):
    if given == "units":
        return len(units) if len(units) * max_share >= 1 else None
    column, function = given
    ((rows, key),) = [(s, key) for s, key in zip(sides, keys, strict=True) if s and column in s[0]
                      ] or [([], "")]  # fmt: skip
    there = [(row[key], row[column]) for row in rows
             if row[key] in units and _is_known(row[column])]  # fmt: skip
    parts = {}
    for unit, value in there:
        parts[unit] = parts.get(unit, 0) + (1 if function == "count" else abs(value))
    most = max(parts.values(), default=0)
    if len(parts) < k or most > float(max_share) * float(sum(parts.values())):
        return None
    total = sum(value for _, value in there)
    return {"count": len(there), "sum": total, "mean": float(total) / max(len(there), 1)}[function]
