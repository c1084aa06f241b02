"""``mp.dp`` over units that several parties have in common."""

from __future__ import annotations

from typing import cast

from mplang_dp.ext import check_bounds, check_span

import mplang_core as mp
from mplang_core import MPObject, TableType, TensorType
from mplang_core.ext import TraceError, at
from mplang_joins.across.groups import JoinedGroups, ResultColumn
from mplang_joins.noised.form import NoiseForm, Statistic, steps_of
from mplang_joins.noised.ops import check_dividend, check_form, noisy_units
from mplang_joins.on_shares import check_field, run_op, salts
from mplang_joins.published import Label
from mplang_joins.sides import JoinSides


def noised(
    sides: JoinSides, function: str, column: str, bounds: tuple[float, float],
    values: tuple[Label, ...], amounts: tuple[float, float],
) -> JoinedGroups:  # fmt: skip
    """Return a noisy aggregate of units in common.

    Args:
        sides: the tables, and the SPU.
        function: ``count``, ``sum``, ``mean`` or ``histogram``.
        column: of which column; empty of ``count``.
        bounds: what a unit adds at least and at most.
        values: of a histogram the values that are counted.
        amounts: epsilon and delta.

    Raises:
        TraceError: there is no such column, it has no numbers, or a number is none that it may be;
            shows the line.
    """
    check_field(sides.spu)
    form = _form(sides, function, column, bounds, values, amounts)
    shared = []
    for i, (owned, salt) in enumerate(
        zip(sides.owned, salts([each.device for each in sides.owned]), strict=True)
    ):
        made = mp.device(owned.device)(noisy_units)(
            salt, owned.table, on=tuple(sides.keys[i]), kinds=sides.kinds, mine=i,
            rows=sides.bounds[i], **form._asdict(),
        )  # fmt: skip
        shared.append(mp.seal(made, to=sides.spu.name))
    return _result(sides, form, shared)


def _form(
    sides: JoinSides, function: str, column: str, bounds: tuple[float, float],
    values: tuple[Label, ...], amounts: tuple[float, float],
) -> NoiseForm:  # fmt: skip
    what = f"dp.{function}"
    side = sides.side_of(what, column) if column else 0
    kind = sides.owned[side].columns[column] if column else ""
    low = high = digits = 0
    try:
        if function in ("sum", "mean"):
            check_bounds(*bounds)
            largest = max(map(abs, bounds))
            if function == "mean":
                check_span(*bounds)
                largest = (bounds[1] - bounds[0]) / 2
            low, high, digits = steps_of(*bounds, largest)
        named = cast(Statistic, function)
        form = NoiseForm(
            named, column, side, kind, values, low, high, digits, *amounts, len(sides.owned)
        )
        for rows in sides.bounds:
            check_form(form, rows)
        if function == "mean":
            check_dividend(form, min(sides.bounds), sides.spu.config)
    except (TypeError, ValueError) as error:
        raise TraceError(f"{at()}{what}: {error}", code="T015") from None
    return form


def _result(sides: JoinSides, form: NoiseForm, shared: list[MPObject]) -> JoinedGroups:
    """Return the numbers, of what the owners shared."""
    whole = form.statistic in ("count", "histogram")
    is_mean = form.statistic == "mean"
    plain = TensorType("f64", (1,)) if is_mean else TensorType("i64", (form.numbers,))
    made = run_op("joins.noised", shared, [plain], form._asdict(), sides.spu)
    columns = [ResultColumn(None, 0, form.digits if form.digits or whole else None)]
    types = [("count", "int64")] if whole else [(str(form.statistic), "double")]
    if form.statistic == "histogram":
        columns.insert(0, ResultColumn(tuple(form.values)))
        types.insert(0, (form.column, form.column_type))
    return JoinedGroups(None, tuple(made), (None,), None, tuple(columns), TableType(tuple(types)))
