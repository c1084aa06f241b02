"""Ops of the dialect ``ibis``. Imports no Ibis, DuckDB or Arrow."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_analysis import (
    Constant,
    ConstantsRule,
    DataQuestion,
    EngineRule,
    Interval,
    Lineage,
    LineageRule,
    OpRanges,
    QuestionRule,
    RangeRule,
    SideChannelRule,
    SideChannels,
)
from mplang_tables import check_table

from mplang_core import Mask, TableType
from mplang_core.ext import AnyType, Attr, OpDef, Operation, QueriesSources
from mplang_ibis.sql import check_names, read_sql


def _infer_run(op: Operation, world: Mask) -> Sequence[AnyType]:
    names, gives = op.attrs["names"], op.attrs["gives"]
    check_names(names)
    tables = [value.type for value in op.inputs]
    if len(names) != len(tables):
        raise TypeError(
            f"the SQL takes {len(names)} tables ({', '.join(map(str, names))}), got {len(tables)}"
        )
    for name, kind in zip(names, tables, strict=True):
        if not isinstance(kind, TableType):
            raise TypeError(f"operand {name} is not a table: {kind}")
        check_table(kind)
    check_table(gives)
    read_sql(op.attrs["code"])
    return [gives]


def _ranges(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    from mplang_ibis.ranges import ranges_of

    return ranges_of(op, operands)


def _lineage(op: Operation, rank: int, operands: Sequence[Lineage | None]) -> Lineage | None:
    from mplang_ibis.selection import lineage_of

    return lineage_of(op, rank, operands)


def _constants(op: Operation) -> Sequence[Constant]:
    from mplang_ibis.sql_constants import constants_of_sql

    return constants_of_sql(op.attrs["code"])


def _side_channels(op: Operation) -> SideChannels:
    from mplang_ibis.unbounded import work_of

    work = work_of(read_sql(op.attrs["code"]))
    unbounded = range(len(op.inputs)) if work.is_unbounded else ()
    return SideChannels(duration=unbounded, multiplies=work.multiplies)


def _engine_refusals(op: Operation, engine: str) -> Sequence[str]:
    from mplang_ibis.engines.statements import refusals_of

    names, tables = op.attrs["names"], [value.type for value in op.inputs]
    return refusals_of(read_sql(op.attrs["code"]), engine, tuple(zip(names, tables, strict=True)))


def _question(op: Operation, operands: Sequence[DataQuestion]) -> DataQuestion:
    named = zip(op.attrs["names"], operands, strict=True)
    tables = {name: each.tables[""] for name, each in named}
    return DataQuestion(tables, read_sql(op.attrs["code"]), str(op.attrs["gives"]))


RUN = OpDef(
    "ibis.run",
    _infer_run,
    attrs={
        "code": Attr(bytes, doc="one SELECT in DuckDB's SQL, zlib-compressed"),
        "names": Attr(tuple, doc="what the SQL calls the operands"),
        "gives": Attr(TableType, doc="the columns of the result, to which it is cast"),
        "ibis": Attr(str, doc="the version of Ibis that made it; empty for text"),
    },
    doc="Runs one SELECT on DuckDB: tables in, a table out. It reaches nothing but its operands.",
    interfaces=[
        RangeRule(_ranges),
        LineageRule(_lineage),
        ConstantsRule(_constants),
        SideChannelRule(_side_channels),
        QueriesSources(),
        QuestionRule(_question),
        EngineRule(_engine_refusals),
    ],
    reads=(),
)
