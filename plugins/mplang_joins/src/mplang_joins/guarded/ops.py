"""Ops of a guard on shares. Imports no Arrow and no JAX."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mplang_analysis import WHOLE, Prepared, PrepareRule, Role, ShareGuard, ShareGuardRule
from mplang_spu import ShareType, SpuConfig
from mplang_tables import check_table, is_number

from mplang_core import Mask, TableType, TensorType, simple_op
from mplang_core.ext import OPTIONAL, AnyType, Attr, Effects, OpDef, Operation
from mplang_joins.guarded.form import (
    FUNCTIONS,
    MAX_DIGITS,
    WHOLE_BITS,
    Functions,
    UnitAggregate,
    UnitForm,
    digits_of,
    room_of,
    room_of_means,
)
from mplang_joins.on_shares import shares_of
from mplang_joins.ops import MAX_GROUPS, Kinds, check_column, check_keys, check_side
from mplang_joins.published import Label

FAMILY = "guard"
"""The family of guards that rules count it to: its functions are those of that family."""

MAX_K = 1 << 40
By: TypeAlias = tuple[tuple[str, tuple[Label, ...]], ...]
"""For each column that is grouped by all values that it may have."""


def _prepared(op: Operation) -> Prepared:
    """Return what each column of the table is used for."""
    uses: dict[str, list[str]] = {name: [Role.BY] for name, _ in op.attrs["by"]}
    for column, functions in op.attrs["functions"]:
        uses.setdefault(column, []).extend(functions)
    table = op.inputs[1].type
    assert isinstance(table, TableType)
    return Prepared(FAMILY, op.attrs["on"][0], uses, unit_form(table, op.attrs).waits)


def unit_form(table: TableType, attrs: Mapping[str, Any]) -> UnitForm:
    """Return the form of what an op ``joins.units`` makes of a table, by its attributes."""
    kinds = dict(table.columns)
    return UnitForm(
        math.prod(len(labels) for _, labels in attrs["by"]),
        attrs["functions"],
        tuple(kinds[column] for column, _ in attrs["functions"]),
        *(attrs[name] for name in ("bits", "counts", "bounded", "side", "sides")),
    )


@simple_op(
    "joins.units",
    effects=Effects.FRESH,
    interfaces=[PrepareRule(_prepared)],
    reads=(),
    inputs=({"kind": "Tensor"}, {"kind": "Table"}),
    outputs=({"kind": "Tensor"},),
)
def units(
    salt: TensorType, x: TableType, *, on: tuple[str, ...], kinds: Kinds, by: By,
    functions: Functions, bits: int, counts: int, bounded: bool, side: int, sides: int, rows: int,
) -> TensorType:  # fmt: skip
    """Make numbers of each unit of a table for a guard on shares, at the party that has it.

    Args:
        salt: what :func:`mplang_joins.ops.salt` gave, the same for each side.
        x: a table.
        on: the column of its key, which tells whose rows these are.
        kinds: by which it is compared.
        by: columns to group by, each with all values that it may have.
        functions: for columns what is computed of them on shares. Decimals are integers of their
            last digit, floats are rounded to a millionth, once for each value.
        bits: how many bits sums and sizes of a unit have at most.
        counts: how many bits its counts have at most.
        bounded: whether the part of one unit is bounded.
        side: the number of this side, from 0.
        sides: how many there are.
        rows: how many units it has at most.

    Returns:
        A tensor of the form :class:`mplang_joins.guarded.form.UnitForm`; i64 ``[planes, rows]``.

    Raises:
        TraceError: a column is not there, or has no numbers.
        KernelError: there are more units, a row is in a group that is none of those that there may
            be, or a number has more bits. Raised at the party that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_joins.guarded.ops import units
        >>> from mplang_joins.ops import salt
        >>> from mplang_tables import table
        >>> def program():
        ...     x = mp.device("P0")(table({"id": ["a", "a"], "pay": [5, -6]}))()
        ...     fields = {"on": ("id",), "kinds": (("string", 0),), "by": (), "side": 0, "sides": 2}
        ...     fields |= {"functions": (("pay", ("sum",)),), "bounded": False}
        ...     fields |= {"bits": 9, "counts": 9, "rows": 3}
        ...     return mp.device("P0")(units)(mp.device("P0")(salt)(), x, **fields)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))[1:].tolist()
        [[1, 0, 0], [-1, 0, 0], [1, 0, 0]]
    """
    check_table(x)
    check_side(salt, side, sides, rows)
    check_keys(x, on, kinds)
    if len(on) != 1:
        raise ValueError(f"units differ by one column, got {on}")
    for name, labels in by:
        _check_labels(check_column(x, name), name, labels)
    columns = [column for column, _ in functions]
    if len(set(columns)) < len(columns):
        raise ValueError(f"each column stands once among functions, got {columns}")
    for column, names in functions:
        _check_functions(x, on[0], column, names)
    numbers = (bits, counts, side, sides)
    if any(type(each) is not int for each in numbers) or type(bounded) is not bool:
        raise TypeError(f"bits, counts and sides are integers, got {numbers}, bounded={bounded!r}")
    if not (0 <= bits <= WHOLE_BITS and 0 <= counts <= WHOLE_BITS):
        raise ValueError(f"numbers have 0 to {WHOLE_BITS} bits, got {bits} and {counts}")
    attrs = {"by": by, "functions": functions, "bits": bits, "counts": counts}
    form = unit_form(x, {**attrs, "bounded": bounded, "side": side, "sides": sides})
    _check_groups([form])
    return TensorType("i64", (form.planes, rows))


def _check_labels(kind: str, column: str, labels: Sequence[Label]) -> None:
    """Refuse values of groups that a column cannot have."""
    word: type = {"string": str, "bool": bool}.get(kind, int)
    known = kind in ("string", "bool") or kind.lstrip("u").startswith("int")
    if not known or not labels or any(type(each) is not word for each in labels):
        raise TypeError(f"column {column!r} is {kind}, and is not grouped by {labels!r:.60}")
    if len(set(labels)) < len(labels):
        raise ValueError(f"column {column!r} has different values, got {labels!r:.60}")


def _check_functions(x: TableType, key: str, column: str, names: Sequence[str]) -> None:
    """Refuse functions that a column does not have."""
    kind = check_column(x, column)
    for name in names:
        if name not in FUNCTIONS:
            raise TypeError(f"there is no {name!r} on shares; there are {', '.join(FUNCTIONS)}")
        if name == "units" and column != key:
            raise TypeError(f"units are counted by the key, {key!r}, not by {column!r}")
        if name in ("sum", "mean") and not has_sum(kind):
            raise TypeError(f"column {column!r} is {kind}, and has no {name} on shares")


def has_sum(kind: str) -> bool:
    """Return whether columns of a type have sums on shares."""
    return (is_number(kind) or kind.startswith("decimal")) and digits_of(kind) <= MAX_DIGITS


def _check_groups(forms: Sequence[UnitForm]) -> int:
    groups = math.prod(form.groups for form in forms)
    if not 1 <= groups <= MAX_GROUPS:
        raise ValueError(f"there are 1 to {MAX_GROUPS} groups, got {groups}")
    return groups


def _share_guard(op: Operation) -> ShareGuard:
    max_share = op.attrs.get("max_share", WHOLE)
    return ShareGuard([form.waits for form in forms_of(op.attrs)], op.attrs["k"], max_share)


def forms_of(attrs: Mapping[str, Any]) -> list[UnitForm]:
    """Return the forms of the operands of an op ``joins.guarded``, by its attributes.

    Raises:
        TypeError: one is none.
    """
    fields = len(UnitForm._fields)
    for each in attrs["sides"]:
        whole = isinstance(each, tuple) and len(each) == fields and isinstance(each[1], tuple)
        if not whole or any(type(n) is not int for n in (each[0], *each[3:5], *each[6:])):
            raise TypeError(f"sides has the {fields} fields of a form for each operand")
    return [UnitForm(*each) for each in attrs["sides"]]


def wanted_of(attrs: Mapping[str, Any]) -> list[UnitAggregate]:
    """Return the aggregates of an op ``joins.guarded``, by its attributes.

    Raises:
        TypeError: one is none.
    """
    for each in attrs["wanted"]:
        if not isinstance(each, tuple) or [type(x) for x in each] != [str, int, str]:
            raise TypeError("wanted has function, number of the side and column of each aggregate")
    return [UnitAggregate(*each) for each in attrs["wanted"]]


def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    attrs, forms = op.attrs, forms_of(op.attrs)
    k, bounded = attrs["k"], "max_share" in attrs
    max_share = attrs.get("max_share", 1)
    if type(k) is not int or not 1 <= k <= MAX_K:
        raise TypeError(f"k is a number of units, at least 1, got {k!r}")
    if type(max_share) is not int or not 0 < max_share < WHOLE:
        raise TypeError(f"max_share is a part, in millionths from 1 to 999999, got {max_share!r}")
    if not 2 <= len(forms) == len(op.inputs):
        raise TypeError(f"it takes the units of two parties or more, got {len(op.inputs)}")
    if bounded and not all(form.bounded for form in forms):
        raise ValueError("the part of one unit is bounded only if all owners share sizes")
    like, config = shares_of(op)
    groups, wanted = _check_groups(forms), wanted_of(attrs)
    for side, (form, value) in enumerate(zip(forms, op.inputs, strict=True)):
        if (form.side, form.sides) != (side, len(forms)):
            raise ValueError(f"operand {side} of {len(forms)} is of side {form.side}/{form.sides}")
        rows = _rows_of(form, value.type, like)
        _check_room(form, rows, [each for each in wanted if each.side == side], config, bounded)
    outs = [TensorType("bool", (groups,))]
    for each in wanted:
        _check_declared(forms, each)
        outs.append(TensorType("f64" if each.function == "mean" else "i64", (groups,)))
    return [ShareType(kind, like.parties, like.protocol, like.field, like.fxp) for kind in outs]


def _check_declared(forms: Sequence[UnitForm], wanted: UnitAggregate) -> None:
    """Refuse an aggregate that an owner has not made its units for: rules know of no other."""
    if wanted.function == "units":
        declared = all(any("units" in names for _, names in form.functions) for form in forms)
    else:
        declared = 0 <= wanted.side < len(forms)
        declared = declared and forms[wanted.side].tells(wanted.function, wanted.column)
    if not declared:
        raise ValueError(f"{wanted.function} of {wanted.column!r} is not what its owner computes")


def _rows_of(form: UnitForm, kind: AnyType, like: ShareType) -> int:
    """Return how many units an operand has; refuse one of another form."""
    if not isinstance(kind, ShareType) or len(kind.plain.shape) != 2:
        raise TypeError(f"its operands are shares of i64 [planes, units], got {kind}")
    rows = kind.plain.shape[1]
    wanted = TensorType("i64", (form.planes, rows))
    if kind != ShareType(wanted, like.parties, like.protocol, like.field, like.fxp):
        raise TypeError(f"an operand of the form {form} is i64 [{form.planes}, units], got {kind}")
    return rows


def _check_room(
    form: UnitForm, rows: int, wanted: Sequence[UnitAggregate], config: SpuConfig, bounded: bool
) -> None:
    """Refuse a form whose sums may not fit, or are not divided right."""
    sums = counts = room_of(rows, bounded=bounded)
    for each in wanted:
        if each.function == "mean" and form.tells("mean", each.column):
            kind = form.type_of(each.column)
            room = room_of_means(rows, config.bits, config.fxp_fraction_bits, kind)
            sums, counts = min(sums, room[0]), min(counts, room[1])
    if form.bits > sums or form.counts > counts:
        raise ValueError(
            f"numbers of {rows} units have {sums} bits at most, and counts {counts}; got {form}"
        )


GUARDED = OpDef(
    "joins.guarded",
    _infer,
    attrs={
        "sides": Attr(tuple, doc="the form of each operand"),
        "wanted": Attr(tuple, doc="the aggregates: function, side, column"),
        "k": Attr(int, doc="how many units each number is made of, at least"),
        "max_share": Attr(int, OPTIONAL, doc="the largest part of one unit, in millionths"),
        "parties": Attr(Mask, doc="who runs it together"),
        "config": Attr(dict, doc="protocol, field, precision"),
    },
    doc="Aggregates units that several parties have in common, on shares; each makes its code.",
    effects=Effects.FRESH,
    interfaces=[ShareGuardRule(_share_guard)],
    reads=(),
    total=True,
)
