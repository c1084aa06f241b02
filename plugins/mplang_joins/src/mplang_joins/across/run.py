"""Queries over tables of several parties, run on an SPU. Imports no sqlglot before one is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mplang_match.ext import published_keys
from mplang_spu import SpuConfig

import mplang_core as mp
from mplang_core import ClusterSpec, FeProgram, MPObject, TableType, fe_materialize
from mplang_core.ext import Device, TraceError, at, device_of_party, the_holder
from mplang_joins.across.bring import Bringing, by_match, by_tokens, by_union
from mplang_joins.across.refused import QueryRefusedError
from mplang_joins.on_shares import on_shares
from mplang_joins.published import PublishedColumn, published_column

if TYPE_CHECKING:
    from mplang_joins.across.groups import JoinedGroups
    from mplang_joins.across.lowered import LoweredQuery


def takes(device: Device, values: Sequence[MPObject]) -> bool:
    """Return whether a function of values is a query that runs on a device: one of tables alone."""
    tables = [isinstance(each.base_type, TableType) for each in values]
    return isinstance(device.config, SpuConfig) and len(tables) > 1 and all(tables)


def run(
    device: Device, fn: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, Any],
    *, match: object = "secret",
) -> JoinedGroups:  # fmt: skip
    """Run a query over tables that stay with their owners.

    Args:
        device: an SPU.
        fn: a function of Ibis tables, or what makes SQL.
        args: its arguments.
        kwargs: its keyword arguments.
        match: ``"secret"``, or ``"psi"``: both owners learn which keys are in common.

    Raises:
        TraceError: it is none that can be run; says which part of it, why, and what to write.
    """
    from mplang_ibis.ext import read_sql

    from mplang_joins.across.lowered import NumberBits, lower

    if match not in _WAYS:
        ways = " or ".join(map(repr, _WAYS))
        raise TraceError(f"{at()}{device.name}: match is {ways}, got {match!r}", code="T010")
    program = fe_materialize(fn, *args, **kwargs)
    if program.pfunc.fn_type != "ibis.run":
        raise TraceError(
            f"{at()}{device.name}: tables of several parties are asked by functions of Ibis tables "
            f"or SQL, got {getattr(fn, '__name__', fn)!r}",
            code="T010",
        )
    tables = _Tables(program)
    sql, gives = read_sql(program.pfunc.attrs["code"]), program.pfunc.attrs["gives"]
    try:
        bits = NumberBits(device.config.bits, device.config.fxp_fraction_bits)
        lowered = lower(sql, tables, gives, bits, learns=match == "psi")
    except QueryRefusedError as error:
        raise TraceError(
            f"{at()}{device.name}: the query cannot run: {error}", code="T010"
        ) from error
    return _run(device, lowered, tables, by_union if lowered.plan.union else _WAYS[match])


_WAYS: Mapping[object, Bringing] = {"secret": by_tokens, "psi": by_match}
"""How keys are found that are in common, by the word of ``match=``."""


class _Tables:
    """The tables of a query by name: their values, types, owners, and what is published of them."""

    def __init__(self, program: FeProgram) -> None:
        names = program.pfunc.attrs["names"]
        self.values: dict[str, MPObject] = dict(zip(names, program.inputs, strict=True))
        self.parties = {name: the_holder(each) for name, each in self.values.items()}
        types = {name: each.base_type for name, each in self.values.items()}
        self.kinds = {name: each for name, each in types.items() if isinstance(each, TableType)}
        cluster = mp.cur_ctx().cluster_spec
        assert isinstance(cluster, ClusterSpec)
        self.cluster = cluster

    def owner_of(self, table: str) -> str:
        """Return the name of the party that has a table."""
        return self.cluster.nodes[self.parties[table]].name

    def look(self, table: str, column: str) -> PublishedColumn:
        """Return what is published of a column."""
        return published_column(self.values[table], self.owner_of(table), column)

    def bound(self, keys: Sequence[tuple[str, str]]) -> int | None:
        """Return how many keys there are at most, ``None`` if nobody says.

        Args:
            keys: table and column of each column of the key.
        """
        if len({table for table, _ in keys}) != 1:
            return None
        table = keys[0][0]
        columns = [column for _, column in keys]
        return published_keys(self.values[table], self.owner_of(table), columns)


def _run(device: Device, lowered: LoweredQuery, tables: _Tables, bring: Bringing) -> JoinedGroups:
    """Run what a query was lowered to."""
    from mplang_joins.across.totals import answer

    owners = [tables.cluster.nodes[each.owner].name for each in lowered.works]
    devices = [device_of_party(tables.cluster, name).name for name in owners]
    brought = bring(lowered, tables.values, owners, devices)
    sides = [mp.seal(each, to=device.name) for each in brought]
    return lowered.result(on_shares(device, partial(answer, plan=lowered.plan), sides))
