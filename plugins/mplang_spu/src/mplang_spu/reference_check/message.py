"""Warning text for a wrong number."""

from __future__ import annotations

import math

from mplang_core import DType, TensorType
from mplang_spu.reference_check.rerun import Setting
from mplang_spu.reference_check.tolerance import Difference
from mplang_spu.target import Target

ENOUGH = "field: FM128, fxp_fraction_bits: 40"


def message(
    label: str,
    kind: TensorType,
    difference: Difference,
    setting: Setting,
    result: Difference | None = None,
) -> str:
    """Format a warning that names the op, both numbers, and the remedy.

    Args:
        label: the op's name in NumPy's terms.
        kind: the type of its result.
        difference: its worst element.
        setting: the configuration of the run.
        result: the worst result of the whole function, if another op gives it.

    Returns:
        The text.

    Example:
        >>> wrong = Difference(9.0, (3,), 45.8, 50.0)
        >>> config = {"protocol": "ABY3", "field": "FM64", "fxp_fraction_bits": 18}
        >>> print(message("divide", TensorType("f32", (8,)), wrong, Setting(config, 3, (True,))))
        SPU's divide gives 45.8 where float64 gives 50 at [3] of f32[8] (ABY3, FM64, 18 fraction \
bits). Take more bits (field: FM128, fxp_fraction_bits: 40), scale the data, or write it in \
another way: center before you square, say; check_numbers=False skips this check.
    """
    field, bits = setting.config["field"], setting.config["fxp_fraction_bits"]
    where = f" at {list(difference.index)} of {kind}" if kind.shape else ""
    found, exact = _number(difference.found), _number(difference.exact)
    so = _apart(difference, setting)
    if result is not None:
        so += f", so a result is {_number(result.found)} instead of {_number(result.exact)}"
    return (
        f"SPU's {label} gives {found} where float64 gives {exact}{where}{so} "
        f"({setting.config['protocol']}, {field}, {bits} fraction bits). "
        f"{_remedy(label, kind, difference, setting)}; check_numbers=False skips this check."
    )


def wrapped(word: str, kind: TensorType, value: int) -> str:
    """Return a text about a sum that its type does not hold.

    Args:
        word: the op.
        kind: the type of its result.
        value: the sum.
    """
    return (
        f"{word} is {value}, which {kind.dtype.value} does not hold, so it wraps; NumPy adds in 64 "
        "bits, JAX in those of its operands. Convert them first, x.astype('int64'); "
        "check_numbers=False skips this check."
    )


def beyond(label: str, size: float, setting: Setting) -> str:
    """Return a message about a product that is right in some runs only.

    Args:
        label: of the op.
        size: of its largest number.
        setting: the configuration of the run.
    """
    target = Target.of(setting.config)
    how = "Scale" if target.field == "FM128" else "Take more bits (field: FM128), or scale"
    return (
        f"SPU's {label} reaches {size:.3g}, and {target.field} with {target.fxp} fraction bits "
        f"holds products below {target.factors:.1e}: the result is right in this run, and may be "
        f"far off in another. {how} the data down, or write it in another way; "
        "check_numbers=False skips this check."
    )


_OF_WHOLE_NUMBERS = {
    "divide": "see that no divisor is 0",
    "remainder (%)": "see that no divisor is 0",
    "convert": "see that all numbers fit the type that they are converted to, and scale or round "
    "floats before",
    "shift_left": "see that numbers are shifted by fewer bits than they have",
    "shift_right_logical": "see that numbers are shifted by fewer bits than they have",
    "shift_right_arithmetic": "see that numbers are shifted by fewer bits than they have",
    "sort": "see that the keys are far enough apart, and scale them up",
    "topk": "see that the keys are far enough apart, and scale them up",
}
"""What to do about a wrong whole number, by the op; of others, it is too large for its type."""


def _apart(difference: Difference, setting: Setting) -> str:
    """Return which two numbers SPU has not told apart, and how far they are."""
    if difference.pair is None or difference.pair[0] == difference.pair[1]:
        return ""
    shown = ([f"{x:.{digits}g}" for x in difference.pair] for digits in (7, 10, 13, 17))
    one, other = next(pair for pair in shown if pair[0] != pair[1])
    steps = abs(difference.pair[0] - difference.pair[1]) / setting.step
    return f", of {one} and {other}, which are {steps:.2g} steps apart"


def _remedy(label: str, kind: TensorType, difference: Difference, setting: Setting) -> str:
    field, bits = setting.config["field"], setting.config["fxp_fraction_bits"]
    if not math.isfinite(difference.exact):
        return "SPU has neither NaN nor infinity; choose operands that give none, by jnp.where"
    if _apart(difference, setting):
        more = f"Take more bits ({ENOUGH}), or scale" if bits < 40 else "Scale"
        return (
            f"SPU takes computed numbers that are some steps apart for equal. {more} what it "
            "decides about, so that it is further apart"
        )
    if isinstance(difference.exact, int):
        more = "" if field == "FM128" else "Take field: FM128; "
        large = "see that all numbers fit their type: x.astype('int64') first"
        remedy = more + _OF_WHOLE_NUMBERS.get(label, large)
        if kind.dtype is DType.BOOL:
            remedy = f"{more}see that what is compared is far enough apart, and scale it up"
        return remedy[0].upper() + remedy[1:]
    more = f"Take more bits ({ENOUGH})" if bits < 40 else ""
    if difference.vanishes:
        remedy = f"{more} or scale the data up" if more else "Scale the data up"
        return f"That is below the smallest step, 2^-{bits}. {remedy}"
    return (f"{more}, scale" if more else "Scale") + (
        " the data, or write it in another way: center before you square, say"
    )


def _number(value: float) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)
