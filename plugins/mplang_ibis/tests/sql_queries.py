"""Generated SELECTs over two tables, of all kinds that bear on the order of rows."""

from __future__ import annotations

import random

import pyarrow as pa

EXACT = [
    "count(*)", "count(f)", "count(DISTINCT n)", "sum(n)", "sum(d)", "avg(d)", "avg(n)", "min(day)",
    "max(g)", "sum(d * 2)", "sum(DISTINCT d)", "bool_or(n > 3)", "sum(n) FILTER (WHERE n > 3)",
    "min(d) + max(d)", "avg(n) / 3", "count_if(n > 3)", "sum(CASE WHEN g > 'c' THEN d END)",
]  # fmt: skip
INEXACT = [
    "sum(f)", "avg(f)", "stddev(n)", "first(n)", "any_value(g)", "string_agg(g)", "min(f)",
    "sum(n / 3)", "arg_max(g, n)", "median(n)", "sum(d::DOUBLE)", "avg(DISTINCT f)",
]  # fmt: skip
KEYS = ["g", "day", "n % 5", "year(day)", "left(g, 1)", "n > 3", "d", "f"]
FILTERS = [
    "n > 3", "f < 0.5", "g IN ('a', 'c')", "n IN (SELECT m FROM b WHERE m > 2)", "d IS NOT NULL",
    "d > (SELECT avg(d) FROM a)", "EXISTS (SELECT * FROM b WHERE b.m = a.n)",
    "day IS NULL OR n = 1",
]  # fmt: skip
SOURCES = [
    "a", "a", "(SELECT * FROM a WHERE n < 9) AS a", "a JOIN b ON a.n = b.m",
    "a LEFT JOIN b ON n = m",
    "(SELECT * FROM a ORDER BY n, g, d, day, f LIMIT 40) AS a", "a SEMI JOIN b ON a.n = b.m",
    "(SELECT DISTINCT g, n, d, day, f FROM a) AS a", "(SELECT * FROM a LIMIT 9) AS a",
]  # fmt: skip


def tables(rows: int, seed: int = 3) -> dict[str, pa.Table]:
    """Return a table with nulls and ties in each column, and a small one."""
    import numpy as np

    r = np.random.default_rng(seed)

    def column(values, kind):
        return pa.array(values, mask=r.random(rows) < 0.05).cast(kind)

    a = {
        "g": pa.array(np.array(list("abcdeé"))[r.integers(0, 6, rows)], mask=r.random(rows) < 0.05),
        "n": column(r.integers(0, 12, rows), pa.int64()),
        "d": column(r.integers(-999, 999, rows), pa.int64()).cast(pa.decimal128(19, 0)),
        "day": column(r.integers(0, 900, rows).astype("i4"), pa.int32()).cast(pa.date32()),
        "f": column(r.normal(size=rows).round(3) * 1e3, pa.float64()),
    }
    return {"a": pa.table(a), "b": pa.table({"m": list(range(7)), "h": list("xyzxyzx")})}


def query(r: random.Random) -> str:
    """Return a SELECT."""
    keys = r.sample(KEYS[:-1] if r.random() < 0.9 else KEYS, r.choice([0, 1, 1, 2, 2]))
    grouped = r.random() < 0.75
    choose = EXACT if r.random() < 0.7 else EXACT + INEXACT
    made = r.sample(choose, r.choice([1, 2, 3])) if grouped else []
    named = [f"{key} AS k{i}" for i, key in enumerate(keys)]
    items = [*named, *(f"{each} AS x{i}" for i, each in enumerate(made))]
    items = items or ["g AS k0", "n AS k1"]
    keys = keys or ([] if grouped else ["g", "n"])
    r.shuffle(items)
    distinct = "DISTINCT " if not grouped and r.random() < 0.5 else ""
    text = f"SELECT {distinct}{', '.join(items)} FROM {r.choice(SOURCES)}"
    if r.random() < 0.4:
        text += f" WHERE {r.choice(FILTERS)}"
    if grouped and keys:
        text += f" GROUP BY {_references(r, keys, items)}"
        if r.random() < 0.2:
            text += " HAVING count(*) > 2"
    if r.random() < 0.75 and keys:
        sorted_by = keys if r.random() < 0.7 else keys[:1]
        text += f" ORDER BY {_references(r, sorted_by, items)}"
        if r.random() < 0.3:
            text += f" LIMIT {r.choice([1, 3, 10])}"
    if r.random() < 0.15:
        text = f"SELECT * FROM ({text}) AS z ORDER BY ALL"
    elif r.random() < 0.1:
        text = f"WITH z AS ({text}) SELECT * FROM z ORDER BY 1"
    return text


def _references(r: random.Random, keys: list[str], items: list[str]) -> str:
    """Return references to keys: by the number, the alias or the expression."""
    found = []
    for key in keys:
        at = next(i for i, item in enumerate(items) if item.startswith(f"{key} AS k"))
        alias = items[at].rpartition(" AS ")[2]
        found.append(r.choice([str(at + 1), alias, key]))
    r.shuffle(found)
    return ", ".join(found)
