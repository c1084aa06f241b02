"""Operands of functions on ciphertexts: what is known of them, and how they are encrypted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
from mplang_analysis import Interval, ranges
from mplang_stablehlo import facts_of

from mplang_core import Mask, MPObject, Program, TensorType, TraceContext, TraceVar, pshfl_s
from mplang_core.ext import Device, Graph, TraceError, at, run_program
from mplang_he.config import HeConfig
from mplang_he.keys import Keys
from mplang_he.ops import ops_of
from mplang_he.parameters import Scheme


def tensor_of(value: MPObject, device: Device) -> TensorType:
    """Return the type of a plain tensor whose holders are known.

    Raises:
        TraceError: it is none.
    """
    kind = value.base_type
    if not isinstance(kind, TensorType) or kind.dtype.value.startswith(("c", "bf")):
        raise TraceError(
            f"{at()}{device} takes tensors of real numbers, got {value!s}", code="T012"
        )
    if value.pmask is None:
        raise TraceError(
            f"{at()}the holder of {value!s} is known only at run time; name its party", code="T012"
        )
    return kind


def check_rows(value: MPObject, device: Device) -> None:
    """Check that a tensor has rows, which go to the slots of ciphertexts.

    Raises:
        TraceError: it has none.
    """
    kind = value.base_type
    assert isinstance(kind, TensorType)
    if not kind.shape or not kind.shape[0]:
        raise TraceError(
            f"{at()}{device} encrypts tensors by rows, along the first axis, and {value!s} has "
            "none: reshape it to one row",
            code="T012",
        )


def scheme_of(kinds: Iterable[TensorType], code: bytes | None = None) -> Scheme:
    """Return BFV for integers alone, which are exact, and CKKS for others.

    Args:
        kinds: of the operands.
        code: of the function, which may have floats as well.
    """
    floats = any(kind.dtype.value.startswith("f") for kind in kinds)
    return "ckks" if floats or (code is not None and not facts_of(code).is_exact) else "bfv"


def range_of(value: MPObject, kind: TensorType, device: Device) -> tuple[float, float]:
    """Return the range of a plain value: what the program tells, the device, or the type.

    Raises:
        TraceError: nobody says how large a float is.
    """
    interval, name = _range_so_far(value), kind.dtype.value
    limit = device.config.limit
    if interval.known:
        low, high = interval.low, interval.high
    elif limit is not None:
        low, high = -limit, limit
    elif name.startswith("f"):
        raise TraceError(
            f"{at()}{device}: how large the numbers of {value!s} are is not known, and parameters "
            "follow from it: write mp.put(…, x, range=(low, high)) where its party puts it, or say "
            f"limit: in the configuration of {device.name}",
            code="T012",
        )
    else:
        limits = np.iinfo(kind.dtype.numpy)
        low, high = limits.min, limits.max
    if not name.startswith("f"):
        return int(low), int(high)
    if kind.dtype.numpy.itemsize == 8:
        return float(low), float(high)
    step = float(np.finfo(kind.dtype.numpy).eps)  # ends of a range are rounded to the type, too
    return low - step * abs(low), high + step * abs(high)


def encrypted(value: MPObject, owner: int, keys: Keys, ends: tuple[float, float]) -> MPObject:
    """Encrypt a value at a party that has it, and send it to the evaluator.

    Args:
        value: a plain tensor with rows.
        owner: the party.
        keys: of the device.
        ends: its smallest and its largest number.
    """
    program = ops_of(keys.parameters).encrypt(
        value, keys.public_at(owner), low=ends[0], high=ends[1]
    )
    sealed = cast("MPObject", run_program(program, Mask.of(owner)))
    return sealed if owner == keys.evaluator else pshfl_s(sealed, keys.evaluator, [owner])


def is_at_evaluator(value: MPObject, device: Device) -> bool:
    """Return whether the evaluator has a value in plain."""
    config = device.config
    assert isinstance(config, HeConfig)
    return value.pmask is not None and config.evaluator in value.pmask


def _range_so_far(value: MPObject) -> Interval:
    """Return what the program so far tells of the numbers of a value."""
    origin = _origin(value)
    if not isinstance(origin, TraceVar) or not isinstance(origin.ctx, TraceContext):
        return Interval()
    graph = origin.ctx.graph
    so_far = Graph(list(graph.inputs), list(graph.ops), [origin.value])
    return ranges(Program("so far", origin.ctx.mask, so_far)).rows[-1].interval


def _origin(value: MPObject) -> MPObject:
    """Return the value of an enclosing function that one is captured from, if it is."""
    ctx = value.ctx
    if isinstance(ctx, TraceContext) and isinstance(value, TraceVar):
        for outer, inner in ctx.captures.values():
            if inner.value is value.value:
                return _origin(outer)
    return value
