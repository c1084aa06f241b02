"""Ops of noisy aggregates on shares. Imports no Arrow and no JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mplang_analysis import DELTA, EPSILON, Prepared, PrepareRule, ShareGuard, ShareGuardRule
from mplang_dp.ext import check_amounts, check_values, parts_of
from mplang_spu import ShareType, SpuConfig
from mplang_tables import check_table, is_number

from mplang_core import Mask, TableType, TensorType, simple_op
from mplang_core.ext import AnyType, Attr, Effects, OpDef, Operation
from mplang_joins.dividends import bits_of_dividend
from mplang_joins.noised.form import MAX_DIGITS, STATISTICS, STEPS, SUM_BITS, NoiseForm
from mplang_joins.on_shares import shares_of
from mplang_joins.ops import Kinds, check_column, check_keys, check_side

FAMILY = "dp"
"""The family of guards that rules count it to."""

Values: TypeAlias = tuple[str | int | bool, ...]
_FIELDS = NoiseForm._fields
MAX_NUMBERS = 1 << 27
"""Numbers at most that an owner makes, of eight bytes each."""


def form_of(attrs: Mapping[str, Any]) -> NoiseForm:
    """Return the form of an op, by its attributes."""
    return NoiseForm(**{name: attrs[name] for name in _FIELDS})


def check_form(form: NoiseForm, rows: int) -> None:
    """Refuse a form whose numbers may not fit, or that is none.

    Args:
        form: the form.
        rows: how many units an owner has at most.

    Raises:
        TypeError: an attribute is none that it may be.
        ValueError: a sum over all units may have too many bits.
    """
    whole = (form.side, form.low, form.high, form.digits, form.sides)
    if form.statistic not in STATISTICS or any(type(each) is not int for each in whole):
        raise TypeError(f"it is none of {', '.join(STATISTICS)} with whole bounds, got {form}")
    if any(type(each) is not float for each in (form.epsilon, form.delta)):
        raise TypeError(f"epsilon and delta are floats, got {form}")
    check_amounts(form.epsilon, form.delta)
    if not 0 <= form.side < form.sides or not 0 <= form.digits <= MAX_DIGITS:
        raise ValueError(f"its column is of one of the sides, in steps, got {form}")
    if form.statistic in ("sum", "mean"):
        if not is_number(form.column_type):
            raise TypeError(f"column {form.column!r} is {form.column_type}, and no numbers")
        if form.low > form.high or form.reach < STEPS // 2:
            raise ValueError(f"bounds are in order, and some million steps apart, got {form}")
    elif form.statistic == "histogram":
        check_table(TableType(((form.column, form.column_type),)))
        check_values(form.column_type, form.column, form.values)
    elif any((form.column, form.values, form.side, form.low, form.high, form.digits)):
        raise ValueError(f"units are counted of no column, got {form}")
    if form.statistic != "count" and not form.column:
        raise ValueError(f"a {form.statistic} is of a column")
    if form.planes(form.side, max(rows, 1)) * rows > MAX_NUMBERS:
        raise ValueError(f"a histogram of {rows} units has too many numbers; take fewer values")
    if form.largest_noise >= 1 << SUM_BITS:
        raise ValueError(
            f"noise of epsilon={form.epsilon:g} may have more than {SUM_BITS} bits; take a larger "
            "unit of measure, or a larger epsilon"
        )
    if form.reach.bit_length() + rows.bit_length() > SUM_BITS:
        raise ValueError(f"a sum over {rows} units has more than {SUM_BITS} bits; take a larger "
                         "unit of measure")  # fmt: skip


def _prepared(op: Operation) -> Prepared:
    """Return what each column of the table is used for."""
    form, key = form_of(op.attrs), op.attrs["on"][0]
    uses: dict[str, list[str]] = {}
    if form.statistic == "count" or form.side == op.attrs["mine"]:
        uses[form.column or key] = [form.statistic]
    return Prepared(FAMILY, key, uses, form.waits(op.attrs["mine"]))


@simple_op(
    "joins.noisy_units",
    effects=Effects.FRESH,
    interfaces=[PrepareRule(_prepared)],
    reads=(),
    inputs=({"kind": "Tensor"}, {"kind": "Table"}),
    outputs=({"kind": "Tensor"},),
)
def noisy_units(
    salt: TensorType, x: TableType, *, on: tuple[str, ...], kinds: Kinds, mine: int, rows: int,
    statistic: str, column: str, side: int, column_type: str, values: Values, low: int, high: int,
    digits: int, epsilon: float, delta: float, sides: int,
) -> TensorType:  # fmt: skip
    """Make numbers of each unit of a table, and noise, at the party that has it.

    Args:
        salt: what :func:`mplang_joins.ops.salt` gave, the same for each side.
        x: a table.
        on: the column of its key, which tells whose rows these are.
        kinds: by which it is compared.
        mine: the number of this side, from 0.
        rows: how many units it has at most.
        statistic: ``count``, ``sum``, ``mean`` or ``histogram``.
        column: of which column; empty of ``count``.
        side: the number of the side that has it.
        column_type: its type.
        values: of a histogram the values that are counted.
        low: of a sum or a mean what a unit adds at least, in steps.
        high: what it adds at most.
        digits: a step is ten to the power of minus this.
        epsilon: how much the result may tell of one unit.
        delta: 0 for Laplace noise.
        sides: how many owners there are.

    Returns:
        A tensor of the form :class:`mplang_joins.noised.form.NoiseForm`; i64 ``[planes, rows]``.

    Raises:
        TraceError: a column is not there, or an attribute is none that it may be.
        KernelError: there are more units. Raised at the party that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_joins.noised.ops import noisy_units
        >>> from mplang_joins.ops import salt
        >>> from mplang_tables import table
        >>> def program():
        ...     x = mp.device("P0")(table({"id": ["a", "a"], "city": ["X", "Y"]}))()
        ...     fields = {"on": ("id",), "kinds": (("string", 0),), "mine": 0, "rows": 3}
        ...     fields |= {"statistic": "histogram", "column": "city", "side": 0}
        ...     fields |= {"column_type": "string", "values": ("Y", "X"), "sides": 2}
        ...     fields |= {"low": 0, "high": 0, "digits": 0, "epsilon": 1.0, "delta": 0.0}
        ...     return mp.device("P0")(noisy_units)(mp.device("P0")(salt)(), x, **fields)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))[1:3].tolist()
        [[1, 0, 0], [0, 0, 0]]
    """
    check_table(x)
    check_side(salt, mine, sides, rows)
    check_keys(x, on, kinds)
    if len(on) != 1:
        raise ValueError(f"units differ by one column, got {on}")
    named = (statistic, column, side, column_type, values, low, high, digits, epsilon, delta, sides)
    form = NoiseForm(*named)  # type: ignore[arg-type]
    check_form(form, rows)
    if column and mine == side and check_column(x, column) != column_type:
        raise TypeError(f"column {column!r} is {check_column(x, column)}, not {column_type}")
    return TensorType("i64", (form.planes(mine, rows), rows))


def _share_guard(op: Operation) -> ShareGuard:
    form = form_of(op.attrs)
    epsilon, delta = parts_of(form.epsilon, EPSILON), parts_of(form.delta, DELTA)
    waits = [form.waits(side) for side in range(len(op.inputs))]
    return ShareGuard(waits, 0, epsilon=epsilon, delta=delta)


def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    form = form_of(op.attrs)
    if not 2 <= len(op.inputs) == form.sides:
        raise TypeError(f"it takes the units of {form.sides} parties, two or more")
    _, config = shares_of(op)
    bounds = []
    for side, value in enumerate(op.inputs):
        shape = value.type.plain.shape if isinstance(value.type, ShareType) else ()
        rows = shape[1] if len(shape) == 2 else 0
        check_form(form, rows)
        wanted = TensorType("i64", (form.planes(side, max(rows, 1)), rows))
        if not rows or value.type != ShareType.of(wanted, config):
            raise TypeError(f"an operand of {form} is shared i64 {wanted.shape}, got {value.type}")
        bounds.append(rows)
    if form.statistic != "mean":
        return [ShareType.of(TensorType("i64", (form.numbers,)), config)]
    check_dividend(form, min(bounds), config)
    return [ShareType.of(TensorType("f64", (1,)), config)]


def check_dividend(form: NoiseForm, rows: int, config: SpuConfig) -> None:
    """Refuse a mean that shares would not divide right.

    Raises:
        ValueError: its sum may have too many bits.
    """
    room = config.bits - 2 - config.fxp_fraction_bits
    if max(abs(form.low), abs(form.high)).bit_length() >= room:
        raise ValueError(
            f"bounds in steps of 10^-{form.digits} have more than the {room} bits of a float; "
            "take the field FM128, or numbers that are closer to zero"
        )
    room = bits_of_dividend(config.bits, config.fxp_fraction_bits)
    if (form.reach * rows).bit_length() > room:
        raise ValueError(
            f"a sum of {rows} units' means has more than the {room} bits that shares divide; take "
            "the field FM128, or fewer rows"
        )


NOISED = OpDef(
    "joins.noised",
    _infer,
    attrs={
        "statistic": Attr(str, doc="count, sum, mean or histogram"),
        "column": Attr(str, doc="of which column"),
        "side": Attr(int, doc="the operand that has it"),
        "column_type": Attr(str, doc="its type"),
        "values": Attr(tuple, doc="the values that are counted"),
        "low": Attr(int, doc="what a unit adds at least, in steps"),
        "high": Attr(int, doc="what a unit adds at most, in steps"),
        "digits": Attr(int, doc="digits behind the point of a step"),
        "epsilon": Attr(float, doc="how much it may tell of one unit"),
        "delta": Attr(float, doc="0 for Laplace noise"),
        "sides": Attr(int, doc="how many operands there are"),
        "parties": Attr(Mask, doc="who runs it together"),
        "config": Attr(dict, doc="protocol, field, precision"),
    },
    doc="Aggregates units that several parties have in common, with noise that each of them drew.",
    effects=Effects.FRESH,
    interfaces=[ShareGuardRule(_share_guard)],
    reads=(),
    total=True,
)
