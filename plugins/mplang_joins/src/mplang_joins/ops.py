"""Ops of the dialect ``joins``. Imports no Arrow and no JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mplang_analysis import Interval, OpRanges, RangeRule
from mplang_match.ext import KeyKind, kind_of
from mplang_tables import check_table
from mplang_tables.ext import wide_dtype

from mplang_core import TableType, TensorType, simple_op
from mplang_core.ext import Effects, Operation

SALT = 32  # bytes
MAX_ROWS = 1 << 27
MAX_SIDES = 16
MAX_GROUPS = 4096
DIGITS = {"decimal": 38, "time": 9, "timestamp": 9, "timestamp in UTC": 9}
"""How many digits behind the point keys of a kind have at most; 0 if it is not named."""
NUMBER = "match"
"""What a match calls the column with the numbers of keys in common."""
BITS = 62
"""Bits of a token with the number of its side, so that differences fit in a ring of 64 bits."""

Kinds: TypeAlias = tuple[tuple[str, int], ...]
"""For each column of a key the fields of a :class:`mplang_match.ext.KeyKind`."""


@simple_op(
    "joins.salt",
    reads=(),
    total=True,
    effects=Effects.FRESH,
    inputs=(),
    outputs=({"kind": "Tensor"},),
)
def salt() -> TensorType:
    """Draw what tells the tokens of a join from those of any other, from the system's entropy.

    Returns:
        Bytes; u8 of shape ``[32]``.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_joins.ops import salt
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, lambda: mp.device("P0")(salt)())).shape
        (32,)
    """
    return TensorType("u8", (SALT,))


def _ranges(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    values = operands[1] | Interval(0, 0)
    columns = len(op.outputs) - 2
    return OpRanges([Interval(0, (1 << BITS) - 1), Interval(0, 1), *[values] * columns])


def _ranges_of_grouped(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    return OpRanges([operands[0] | Interval(0, 0)] * len(op.outputs))


def _ranges_of_placed(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    values = operands[0] | Interval(0, 0)
    return OpRanges([Interval(0, 1), *[values] * (len(op.outputs) - 1)])


@simple_op(
    "joins.enter",
    effects=Effects.FRESH,
    interfaces=[RangeRule(_ranges)],
    reads=(),
    inputs=({"kind": "Tensor"}, {"kind": "Table"}),
    outputs=({"kind": "Tensor"},),
)
def enter(
    salt: TensorType, x: TableType, *, on: tuple[str, ...], kinds: Kinds, columns: tuple[str, ...],
    side: int, sides: int, rows: int,
) -> tuple[TensorType, ...]:  # fmt: skip
    """Make tensors of a table that can be joined on secret shares, at the party that has it.

    Args:
        salt: what :func:`salt` gave, the same for each side.
        x: a table with at most one row for each key.
        on: the columns of its key. A row in which one of them is null has none, and equals nothing.
        kinds: by which each of them is compared.
        columns: what is shared beside them: columns of numbers without nulls.
        side: the number of this side, from 0.
        sides: how many there are.
        rows: how many rows it has at most, which the types of the results say.

    Returns:
        Tensors of shape ``[rows]``: tokens of the keys, i64 below 2^62, random where there is none;
        whether a row is there, bool; the numbers of each column, 0 where none is.

    Raises:
        TraceError: a column is not there, or is none that a tensor has a place for.
        KernelError: two rows have one key, the table has more rows, or a column has nulls. Raised
            at the party that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_joins.ops import enter, salt
        >>> from mplang_tables import table
        >>> def program():
        ...     x = mp.device("P0")(table({"id": ["a", None], "n": [5, 6]}))()
        ...     fields = {"on": ("id",), "kinds": (("string", 0),), "columns": ("n",)}
        ...     drawn = mp.device("P0")(salt)()
        ...     return mp.device("P0")(enter)(drawn, x, side=0, sides=2, rows=3, **fields)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     tokens, there, n = mp.fetch(sim, mp.evaluate(sim, program))
        >>> there.tolist(), n.tolist()
        ([True, True, False], [5, 6, 0])
    """
    check_table(x)
    check_side(salt, side, sides, rows)
    check_keys(x, on, kinds)
    shared = [TensorType(_dtype(x, name), (rows,)) for name in columns]
    return (TensorType("i64", (rows,)), TensorType("bool", (rows,)), *shared)


@simple_op(
    "joins.reduced",
    effects=Effects.FRESH,
    interfaces=[RangeRule(_ranges)],
    reads=(),
    inputs=({"kind": "Tensor"}, {"kind": "Table"}),
    outputs=({"kind": "Tensor"},),
)
def reduced(
    salt: TensorType, x: TableType, *, on: tuple[str, ...], kinds: Kinds, columns: tuple[str, ...],
    code: str, groups: int, limbs: tuple[int, ...], width: int, most: tuple[int, ...], side: int,
    sides: int, rows: int,
) -> tuple[TensorType, ...]:  # fmt: skip
    """Make tensors of a table that has one row for each key and group, at the party that has it.

    Args:
        salt: what :func:`salt` gave, the same for each side.
        x: the table.
        on: the columns of its key, as in :func:`enter`.
        kinds: by which each of them is compared.
        columns: what is shared: columns of numbers without nulls.
        code: the column with the number of a row's group, from 0; empty if all are in one.
        groups: how many there may be.
        limbs: of each column in how many limbs its absolute values are shared as well.
        width: the bits of a limb.
        most: of each column the bits that its absolute values have at most; 0 if nothing bounds it.
        side: the number of this side, from 0.
        sides: how many there are.
        rows: how many keys it has at most, which the types of the results say.

    Returns:
        Tensors: tokens of the keys, i64 ``[rows]``, and whether a row is there, bool ``[rows]``, as
        of :func:`enter`; the numbers of each column with their limbs, the lowest first,
        ``[1 + limbs, groups, rows]``, 0 where none is.

    Raises:
        TraceError: a column is not there, or is none that a tensor has a place for.
        KernelError: two rows have one key and group, the table has more keys, a group is none of
            those that there may be, a column has nulls, or a number more bits. Raised at the party
            that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_joins.ops import reduced, salt
        >>> from mplang_tables import table
        >>> def program():
        ...     x = mp.device("P0")(table({"id": ["a", "a"], "g": [1, 0], "n": [5, -6]}))()
        ...     fields = {"on": ("id",), "kinds": (("string", 0),), "columns": ("n",)}
        ...     fields |= {"code": "g", "groups": 2, "side": 0, "sides": 2, "rows": 3}
        ...     fields |= {"limbs": (1,), "width": 62, "most": (0,)}
        ...     return mp.device("P0")(reduced)(mp.device("P0")(salt)(), x, **fields)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     tokens, there, n = mp.fetch(sim, mp.evaluate(sim, program))
        >>> n.tolist()
        [[[-6, 0, 0], [5, 0, 0]], [[6, 0, 0], [5, 0, 0]]]
    """
    check_table(x)
    check_side(salt, side, sides, rows)
    check_keys(x, on, kinds)
    shared = _by_group(x, columns, code, groups, limbs, width, most, rows)
    return (TensorType("i64", (rows,)), TensorType("bool", (rows,)), *shared)


@simple_op(
    "joins.placed",
    interfaces=[RangeRule(_ranges_of_placed)],
    reads=(),
    inputs=({"kind": "Table"}, {"kind": "Table"}),
    outputs=({"kind": "Tensor"},),
)
def placed(
    x: TableType, common: TableType, *, on: tuple[str, ...], kinds: Kinds, columns: tuple[str, ...],
    code: str, groups: int, limbs: tuple[int, ...], width: int, most: tuple[int, ...], keeps: bool,
    rows: int,
) -> tuple[TensorType, ...]:  # fmt: skip
    """Make tensors of a table in the order of a match, at the party that has both.

    Args:
        x: a table that has one row for each key and group.
        common: the keys that :func:`mplang_match.match` has found, with their numbers in ``match``.
        on: the columns of the key, in both.
        kinds: by which each of them is compared.
        columns: what is shared, as in :func:`reduced`; likewise ``code``, ``groups``, ``limbs``,
            ``width`` and ``most``.
        code: see there.
        groups: see there.
        limbs: see there.
        width: see there.
        most: see there.
        keeps: whether other keys stay as well, behind those in common.
        rows: how many keys there are at most, which the types of the results say.

    Returns:
        Tensors: whether a key is there, bool ``[rows]``; the numbers of each column with their
        limbs, ``[1 + limbs, groups, rows]``, 0 where none is.

    Raises:
        TraceError: a column is not there, or is none that a tensor has a place for.
        KernelError: two rows have one key and group, there are more keys, a group is none of those
            that there may be, a column has nulls, or a number more bits. Raised at the party.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_joins.ops import placed
        >>> from mplang_tables import table
        >>> def program():
        ...     x = mp.device("P0")(table({"id": ["a", "b", "c"], "n": [5, -6, 7]}))()
        ...     common = mp.device("P0")(table({"id": ["b", "a"], "match": [0, 1]}))()
        ...     fields = {"on": ("id",), "kinds": (("string", 0),), "columns": ("n",), "code": ""}
        ...     fields |= {"groups": 1, "limbs": (0,), "width": 62, "most": (0,), "keeps": False}
        ...     return mp.device("P0")(placed)(x, common, rows=3, **fields)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     there, n = mp.fetch(sim, mp.evaluate(sim, program))
        >>> there.tolist(), n.tolist()
        ([True, True, False], [[[-6, 5, 0]]])
    """
    for table in (x, common):
        check_table(table)
        check_keys(table, on, kinds)
    _check_rows(rows)
    _check_integers(common, NUMBER)
    shared = _by_group(x, columns, code, groups, limbs, width, most, rows)
    return (TensorType("bool", (rows,)), *shared)


@simple_op(
    "joins.grouped",
    interfaces=[RangeRule(_ranges_of_grouped)],
    reads=(),
    inputs=({"kind": "Table"},),
    outputs=({"kind": "Tensor"},),
)
def grouped(
    x: TableType, *, columns: tuple[str, ...], code: str, groups: int, limbs: tuple[int, ...],
    width: int, most: tuple[int, ...],
) -> tuple[TensorType, ...]:  # fmt: skip
    """Make tensors of a table that has one row for each group, at the party that has it.

    Args:
        x: the table.
        columns: what is shared, as in :func:`reduced`; likewise ``code``, ``groups``, ``limbs``,
            ``width`` and ``most``.
        code: see there.
        groups: see there.
        limbs: see there.
        width: see there.
        most: see there.

    Returns:
        Tensors: the numbers of each column with their limbs, ``[1 + limbs, groups, 1]``, 0 where
        there is no row.

    Raises:
        TraceError: a column is not there, or is none that a tensor has a place for.
        KernelError: two rows have one group, a group is none of those that there may be, a column
            has nulls, or a number more bits. Raised at the party that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_joins.ops import grouped
        >>> from mplang_tables import table
        >>> def program():
        ...     x = mp.device("P0")(table({"g": [2, 0], "n": [5, -6]}))()
        ...     fields = {"columns": ("n",), "code": "g", "groups": 3, "limbs": (0,)}
        ...     return mp.device("P0")(grouped)(x, width=62, most=(0,), **fields)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))[0].tolist()
        [[[-6], [0], [5]]]
    """
    check_table(x)
    return tuple(_by_group(x, columns, code, groups, limbs, width, most, 1))


def _by_group(
    x: TableType, columns: Sequence[str], code: str, groups: int, limbs: Sequence[int], width: int,
    most: Sequence[int], rows: int,
) -> list[TensorType]:  # fmt: skip
    """Return the types of columns by group, with the limbs of their absolute values."""
    if type(groups) is not int or not 1 <= groups <= MAX_GROUPS or (groups > 1 and not code):
        raise ValueError(f"groups is a number from 1 to {MAX_GROUPS}, with a code, got {groups!r}")
    if code:
        _check_integers(x, code)
    if not len(limbs) == len(most) == len(columns) or not 1 <= width <= BITS:
        raise ValueError("each column has a number of limbs, and of bits; limbs of 1 to 62 bits")
    shared = []
    for name, digits, bits in zip(columns, limbs, most, strict=True):
        dtype = _dtype(x, name)
        if not 0 <= digits <= BITS or not 0 <= bits <= BITS or (digits and dtype[0] == "f"):
            raise ValueError(f"column {name!r}, {dtype}, has no {digits} limbs or {bits} bits")
        shared.append(TensorType(dtype, (1 + digits, groups, rows)))
    return shared


def _check_integers(x: TableType, column: str) -> None:
    if not check_column(x, column).lstrip("u").startswith("int"):
        raise TypeError(f"the column {column!r} has integers, got {check_column(x, column)}")


def check_side(salt: TensorType, side: int, sides: int, rows: int) -> None:
    """Refuse a salt, a side or a number of rows that no join has."""
    if salt != TensorType("u8", (SALT,)):
        raise TypeError(f"the salt has {SALT} bytes, got {salt}")
    if not 2 <= sides <= MAX_SIDES or not 0 <= side < sides:
        raise ValueError(f"a join has 2 to {MAX_SIDES} sides, from 0, got {side} of {sides}")
    _check_rows(rows)


def _check_rows(rows: int) -> None:
    if type(rows) is not int or not 0 <= rows <= MAX_ROWS:
        raise ValueError(f"rows is a number from 0 to {MAX_ROWS}, got {rows!r}")


def _dtype(x: TableType, column: str) -> str:
    """Return the element type of a column's tensor."""
    kind = check_column(x, column)
    dtype = wide_dtype(kind)
    if dtype is None:
        raise TypeError(
            f"column {column!r} is {kind}, which secret shares have no place for: leave it out, or "
            "make numbers of it at its party first, as mplang_tables.encode and to_integers do"
        )
    return dtype


def check_column(x: TableType, column: str) -> str:
    """Return the type of a column; refuse one that is not there."""
    types = dict(x.columns)
    if column not in types:
        raise TypeError(f"there is no column {column!r}; there are {', '.join(types)}")
    return types[column]


def check_keys(x: TableType, on: Sequence[str], kinds: Kinds) -> None:
    """Refuse columns that are not there, or that are not compared so."""
    if not on or len(on) != len(kinds):
        raise ValueError(f"a key has a column or more, and each of them a kind, got {on}, {kinds}")
    for column, kind in zip(on, kinds, strict=True):
        own, wanted = kind_of(check_column(x, column)), KeyKind(*kind)
        if own.name != wanted.name or not own.scale <= wanted.scale <= DIGITS.get(own.name, 0):
            raise TypeError(
                f"column {column!r} is {check_column(x, column)}, not compared as {wanted}"
            )
