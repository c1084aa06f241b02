"""Random tables of several parties, and random queries over them."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
from across_parties import held

KINDS = {"string": pa.string(), "int64": pa.int64(), "int16": pa.int16()}
GROUPS = ["u", "v", "w"]


def tables(seed, parties):
    """Return a table of each party, with what its owner publishes."""
    r = random.Random(seed)
    as_text = r.random() < 0.5
    made = {}
    for i, party in enumerate(["bank", "shop", "lab"][:parties]):
        kind = KINDS["string" if as_text else r.choice(["int64", "int16"])]
        made[party] = {f"t{party}": _held(_rows(r, i, kind), i, r.choice([18, 25]))}
    return made


def changed(data, party, seed):
    """Return the same tables with other rows at one party, and what is published as it was."""
    r = random.Random(seed)
    ((name, before),) = data[party].items()
    kind = before.value.column("k").type
    i = int(before.value.column_names[1][1:])
    most = before.description.keys["k"].at_most
    return {**data, party: {name: _held(_rows(r, i, kind), i, most)}}


def _held(rows, i, most):
    return held(rows, {"k": most}, values={f"g{i}": GROUPS}, ranges={f"n{i}": (0, 3)})


def _rows(r, i, kind):
    """Return random rows of a party."""
    as_text = pa.types.is_string(kind)
    keys = [r.choice([None, *range(-3, 12)]) for _ in range(r.choice([0, 1, 5, 20, 60]))]
    rows = {
        "k": pa.array([None if k is None else f"k{k}" if as_text else k for k in keys], kind),
        "g": pa.array([r.choice(GROUPS) for _ in keys], pa.string()),
        "n": pa.array([r.randrange(4) for _ in keys], pa.int8()),
        "x": pa.array([r.choice([None, *range(-9, 30)]) for _ in keys], pa.int32()),
        "d": pa.array(
            [Decimal(r.randrange(-900, 900)).scaleb(-2) for _ in keys], pa.decimal128(7, 2)
        ),
        "f": pa.array([r.choice([None, r.uniform(-4, 4)]) for _ in keys], pa.float64()),
        "b": pa.array([r.random() < 0.6 for _ in keys], pa.bool_()),
    }
    return pa.table({name if name == "k" else f"{name}{i}": each for name, each in rows.items()})


def query(seed, parties):
    """Return a query, some of which cannot be run over several parties."""
    r = random.Random(seed)
    names = ["bank", "shop", "lab"][:parties]
    how = r.choice(["JOIN"] * 6 + ["LEFT JOIN", "SEMI JOIN", "ANTI JOIN"])
    seen = list(range(parties)) if how == "JOIN" else [0]
    by_key = how == "JOIN" and r.random() < 0.25
    joined = f"FROM {_source('bank', 0, by_key)} a"
    for i, (name, alias) in enumerate(zip(names[1:], "bc", strict=False), 1):
        joined += f" {how} {_source(name, i, by_key)} {alias} ON a.k = {alias}.k"
    where = [_condition(r, r.choice(seen)) for _ in range(r.choice([0, 0, 1, 2]))]
    if by_key:
        where.append(_of_keys(r, *r.sample(seen, 2)))
    groups = [_group(r, r.choice(seen)) for _ in range(r.choice([0, 1, 1, 2]))]
    columns = [f"{tree} AS c{i}" for i, tree in enumerate(groups)]
    columns += [f"{_aggregate(r, seen)} AS r{i}" for i in range(r.choice([1, 2, 3]))]
    text = f"SELECT {', '.join(columns)} {joined}"
    if where:
        text += f" WHERE {' AND '.join(where)}"
    if groups:
        text += f" GROUP BY {', '.join(groups)}"
    if r.random() < 0.35:
        text += f" HAVING {_having(r, seen)}"
    return text


def _source(name, i, by_key):
    """Return a table, or what its owner reduces to one row of a key."""
    if not by_key:
        return f"{{t{name}}}"
    columns = f"min(g{i}) AS g{i}, max(n{i}) AS n{i}, max(x{i}) AS x{i}, sum(d{i}) AS d{i}"
    columns += f", min(f{i}) AS f{i}, bool_or(b{i}) AS b{i}"
    return f"(SELECT k, {columns} FROM {{t{name}}} GROUP BY k)"


def _of_keys(r, i, j):
    """Return a condition of columns of two owners."""
    one = r.choice([f"x{i} > x{j}", f"f{i} < f{j}", f"d{i} >= d{j} + 1", f"x{i} <> n{j} * 3",
                    f"x{i} BETWEEN n{j} AND x{j}"])  # fmt: skip
    return r.choice([one, f"NOT ({one})", f"({one} OR b{i})", f"({one} OR g{j} = 'u')"])


def _condition(r, i):
    return r.choice(
        [f"x{i} > {r.randrange(-5, 20)}", f"g{i} <> 'u'", f"b{i}", f"d{i} < {r.randrange(9)}.5",
         f"(x{i} IS NULL OR f{i} > 0)", f"n{i} IN (0, 1, 3)"]
    )  # fmt: skip


def _group(r, i):
    return r.choice(
        [f"g{i}", f"n{i}", f"n{i} % 2 = 0", f"CASE WHEN d{i} > 0 THEN 'plus' ELSE 'minus' END",
         f"n{i} + 1"]
    )  # fmt: skip


def _value(r, seen):
    i = r.choice(seen)
    one = r.choice([f"x{i}", f"d{i}", f"x{i} * 2 + n{i}", f"f{i}"])
    if len(seen) == 1 or r.random() < 0.4:
        return one
    j = r.choice([other for other in seen if other != i])
    other = f"f{j}" if one.startswith("f") else r.choice([f"x{j}", f"n{j}", f"(x{j} - d{j})"])
    return r.choice([f"{one} * {other}", f"({one} - 1) * {other}", f"{one} - {other}"])


def _aggregate(r, seen):
    function = r.choice(
        ["sum", "sum", "sum", "avg", "count", "rows", "keys", "median", "min", "max", "stddev"]
    )
    if function == "median" and r.random() < 0.8:
        function = "sum"
    if function == "rows":
        return "count(*)"
    if function == "keys":
        return "count(DISTINCT a.k)"
    if function in ("min", "max"):
        value = f"{r.choice('xdf')}{r.choice(seen)}"
    else:
        value = f"{r.choice('xd')}{r.choice(seen)}" if function == "stddev" else _value(r, seen)
    made = f"{function}({value})"
    if function == "sum" and r.random() < 0.15:
        made += f" FILTER (WHERE {_condition(r, r.choice(seen))})"
    return made


def _having(r, seen):
    i = r.choice(seen)
    one = r.choice(["count(*) > 2", "count(DISTINCT a.k) >= 2", f"sum(x{i}) > 3",
                    f"sum(d{i}) <= 4.25", f"NOT (avg(x{i}) < 4)"])  # fmt: skip
    return one if r.random() < 0.6 else f"({one} OR count(*) = 1)"
