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
from mplang_joins.across.plan import Reduced
from mplang_joins.across.refused import QueryRefusedError
from mplang_joins.on_shares import on_shares, salts
from mplang_joins.ops import reduced
from mplang_joins.published import PublishedColumn, published_column

if TYPE_CHECKING:
    from mplang_joins.across.groups import JoinedGroups
    from mplang_joins.across.lowered import LoweredQuery


def takes(device: Device, values: Sequence[MPObject]) -> bool:
    """Return whether a function of values is a query that runs on a device: one of tables alone."""
    tables = [isinstance(each.base_type, TableType) for each in values]
    return isinstance(device.config, SpuConfig) and len(tables) > 1 and all(tables)


def run(
    device: Device, fn: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, Any]
) -> JoinedGroups:
    """Run a query over tables that stay with their owners.

    Args:
        device: an SPU.
        fn: a function of Ibis tables, or what makes SQL.
        args: its arguments.
        kwargs: its keyword arguments.

    Raises:
        TraceError: it is none that can be run; says which part of it, why, and what to write.
    """
    from mplang_ibis.ext import read_sql

    from mplang_joins.across.lowered import NumberBits, lower

    program = fe_materialize(fn, *args, **kwargs)
    if program.pfunc.fn_type != "ibis.run":
        raise TraceError(
            f"{at()}{device.name}: tables of several parties are asked by functions of Ibis tables "
            f"or SQL, got {getattr(fn, '__name__', fn)!r}"
        )
    tables = _Tables(program)
    sql, gives = read_sql(program.pfunc.attrs["code"]), program.pfunc.attrs["gives"]
    try:
        bits = NumberBits(device.config.bits, device.config.fxp_fraction_bits)
        lowered = lower(sql, tables, gives, bits)
    except QueryRefusedError as error:
        raise TraceError(f"{at()}{device.name}: the query cannot run: {error}") from error
    return _run(device, lowered, tables)


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


def _run(device: Device, lowered: LoweredQuery, tables: _Tables) -> JoinedGroups:
    """Run what a query was lowered to."""
    from mplang_ibis.ext import ibis_sql

    from mplang_joins.across.totals import answer

    names = [tables.cluster.nodes[each.owner].name for each in lowered.works]
    devices = [device_of_party(tables.cluster, name) for name in names]
    drawn = salts([each.name for each in devices])
    sides = []
    for i, (work, owner) in enumerate(zip(lowered.works, devices, strict=True)):
        read = {name: tables.values[name] for name in work.tables}
        text, called = work.query.sql, tuple(read)
        table = mp.device(owner.name)(ibis_sql)(*read.values(), text=text, names=called)
        made = mp.device(owner.name)(reduced)(
            drawn[i], table, on=work.query.keys, kinds=lowered.kinds, columns=work.query.factors,
            code=work.query.code, groups=work.groups, limbs=work.limbs, width=lowered.plan.width,
            most=work.most, side=i, sides=len(devices), rows=work.rows,
        )  # fmt: skip
        tokens, there, *factors = made
        sides.append(mp.seal(Reduced(tokens, there, tuple(factors)), to=device.name))
    return lowered.result(on_shares(device, partial(answer, plan=lowered.plan), sides))
