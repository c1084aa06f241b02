"""Alignment of the owners' reduced rows: by tokens of keys, or by the numbers of a match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mplang_match import match

import mplang_core as mp
from mplang_core import MPObject
from mplang_core.ext import flatten
from mplang_joins.across.plan import Reduced
from mplang_joins.on_shares import salts
from mplang_joins.ops import grouped, placed, reduced

if TYPE_CHECKING:
    from mplang_joins.across.lowered import LoweredQuery, OwnerWork  # of sqlglot

Bringing: TypeAlias = Callable[
    ["LoweredQuery", Mapping[str, MPObject], Sequence[str], Sequence[str]], list[Reduced]
]
"""Of a lowered query, its tables, the names of the owners and their devices: what each brings."""


def by_tokens(
    lowered: LoweredQuery, tables: Mapping[str, MPObject], owners: Sequence[str],
    devices: Sequence[str],
) -> list[Reduced]:  # fmt: skip
    """Return what owners bring to a secret join: nobody learns which keys are in common."""
    sides, drawn = [], salts(devices)
    for i, (work, device) in enumerate(zip(lowered.works, devices, strict=True)):
        table = _asked(work.query.sql, tables, work, device)
        tokens, there, *factors = mp.device(device)(reduced)(
            drawn[i], table, on=work.query.keys, kinds=lowered.kinds, side=i, sides=len(devices),
            rows=work.rows, **_fields(lowered, work),
        )  # fmt: skip
        sides.append(Reduced(tokens, there, tuple(factors)))
    return sides


def by_match(
    lowered: LoweredQuery, tables: Mapping[str, MPObject], owners: Sequence[str],
    devices: Sequence[str],
) -> list[Reduced]:  # fmt: skip
    """Return what two owners bring, who learn which keys are in common: no token, in one order."""
    works, sides = lowered.works, []
    keys = [_asked(w.query.all_keys, tables, w, d) for w, d in zip(works, devices, strict=True)]
    bounds = {name: work.rows for name, work in zip(owners, works, strict=True)}
    matched = match(keys[0], keys[1], on=list(works[0].query.keys), rows=bounds, keep=True)
    for i, (work, device) in enumerate(zip(works, devices, strict=True)):
        table = _asked(work.query.sql, tables, work, device)
        made = mp.device(device)(placed)(
            table, matched[i], on=work.query.keys, kinds=lowered.kinds,
            keeps=not i and lowered.keeps, rows=lowered.common, **_fields(lowered, work),
        )  # fmt: skip
        there, *factors = flatten(made)[0]  # one value, if it brings keys alone
        sides.append(Reduced(None, there, tuple(factors)))
    return sides


def by_union(
    lowered: LoweredQuery, tables: Mapping[str, MPObject], owners: Sequence[str],
    devices: Sequence[str],
) -> list[Reduced]:  # fmt: skip
    """Return what owners bring of all their rows, which no key joins: one number for each group."""
    sides = []
    for work, device in zip(lowered.works, devices, strict=True):
        table = _asked(work.query.sql, tables, work, device)
        made = mp.device(device)(grouped)(table, **_fields(lowered, work))
        sides.append(Reduced(None, None, tuple(flatten(made)[0])))
    return sides


def _asked(sql: str, tables: Mapping[str, MPObject], work: OwnerWork, device: str) -> Any:
    """Return the result of an owner's SQL."""
    from mplang_ibis.ext import ibis_sql

    names = tuple(name for name in work.tables if f"{{{name}}}" in sql)
    return mp.device(device)(ibis_sql)(*(tables[name] for name in names), text=sql, names=names)


def _fields(lowered: LoweredQuery, work: OwnerWork) -> dict[str, Any]:
    """Return the attributes that tell which numbers an owner brings."""
    return {
        "columns": work.query.factors, "code": work.query.code, "groups": work.groups,
        "limbs": work.limbs, "width": lowered.plan.width, "most": work.most,
    }  # fmt: skip
