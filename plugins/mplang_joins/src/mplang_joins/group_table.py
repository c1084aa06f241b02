"""Op ``joins.table``: the groups of a query as a table. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_tables import check_table

from mplang_core import FeProgram, Mask, PFunction, TableType, TensorType, feop
from mplang_core.ext import AnyType, Attr, Effects, OpDef, Operation, flatten


def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    attrs, tensors = op.attrs, [value.type for value in op.inputs]
    gives, labels, present = attrs["gives"], attrs["labels"], attrs["present"]
    check_table(gives)
    if len(tensors) != attrs["grouped"] + len(present) + sum(present) + attrs["checked"]:
        raise TypeError(f"it takes tensors as grouped=, present=, checked= say, got {len(tensors)}")
    if attrs["checked"] and tensors.pop() != TensorType("bool"):
        raise TypeError("the last tensor tells whether all numbers fit, bool")
    shapes = {each.shape for each in tensors if isinstance(each, TensorType)}
    groups = next(iter(shapes), (1,))
    if len(shapes) > 1 or len(groups) != 1 or any(type(e) is not TensorType for e in tensors):
        raise TypeError("it takes tensors of one shape, [groups]")
    aggregates, columns = attrs["aggregates"], len(labels)
    lengths = {columns, *(len(attrs[name]) for name in ("aggregates", "scales", "roots"))}
    if len(lengths) > 1 or columns < len(gives.columns):
        raise TypeError("each column has labels or an aggregate, and a scale")
    for values, aggregate in zip(labels, aggregates, strict=True):
        if len(values) not in (0, *groups) or (not values and not 0 <= aggregate < len(present)):
            raise TypeError(f"a column is of {groups[0]} labels, or of an aggregate that is there")
    if any(len(each) != 3 or not 0 <= each[0] < columns for each in attrs["order"]):
        raise TypeError("rows are in order by columns that are there")
    return [gives]


TABLE = OpDef(
    "joins.table",
    _infer,
    attrs={
        "grouped": Attr(bool, doc="whether the first tensor tells which groups are there"),
        "checked": Attr(bool, doc="whether the last tensor tells whether all numbers fit"),
        "present": Attr(tuple, doc="of each aggregate whether it may be null"),
        "labels": Attr(tuple, doc="of each column its value by group; empty of an aggregate"),
        "aggregates": Attr(tuple, doc="of each column the position of its aggregate"),
        "scales": Attr(tuple, doc="the power of ten that it is multiplied by; -1 of floats"),
        "roots": Attr(tuple, doc="of each column whether it is the root of its number"),
        "order": Attr(tuple, doc="columns by position, whether descending, whether nulls first"),
        "gives": Attr(TableType, doc="the columns of the table"),
    },
    doc="Makes a table of the groups of a query: whether one is there, and its aggregates.",
    effects=Effects.NONE,
    reads=(),
)


@feop(
    name="joins.group_table",
    dialects=("joins",),
    execution_model="single_rank",
    inputs=({"kind": "Tensor"},),
    outputs=({"kind": "Table"},),
)
def group_table(*tensors: Any, **attrs: Any) -> FeProgram:
    """Make a table of the groups of a query; :meth:`mplang_joins.JoinedGroups.table` calls it.

    Args:
        *tensors: whether a group is there, if that is secret; the aggregates; of those that may be
            null whether they are not, of the shape ``[groups]``; whether all integers fit.
        **attrs: the attributes of the op ``joins.table``.

    Returns:
        A program of that op. Its result is a table with the groups that are there.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_joins.group_table import group_table
        >>> fields = {"labels": (("A", "B"), ()), "aggregates": (0, 0), "scales": (0, 0)}
        >>> fields |= {"roots": (False, False)}
        >>> fields |= {"gives": mp.TableType((("city", "string"), ("n", "int64")))}
        >>> def program():
        ...     there, n = mp.put("P0", [True, False]), mp.put("P0", [3, 0])
        ...     return mp.device("P0")(group_table)(
        ...         there, n, grouped=True, present=(False,), checked=False, order=(), **fields)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()
        [{'city': 'A', 'n': 3}]
    """
    inputs, in_tree = flatten(tensors)
    kinds = tuple(each.base_type for each in inputs)
    return FeProgram(
        PFunction("joins.table", kinds, (attrs["gives"],), attrs),
        in_tree=in_tree,
        out_tree=flatten(0)[1],
        inputs=tuple(inputs),
        meta={"name": "joins.group_table", "dialect": "joins", "version": "1"},
    )
