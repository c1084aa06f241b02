"""Tolerance of fixed-point results against float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mplang_spu.reference_check.reference import Array

RELATIVE = 1e-3
"""Relative tolerance, as a fraction of the largest number of the tensor."""
STEPS = 4
"""Absolute tolerance in smallest steps, 2^-fxp_fraction_bits."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Worst element of a tensor compared with its reference.

    Attributes:
        severity: its error in tolerances; above 1 it is wrong.
        index: of the element.
        found: SPU's number.
        exact: the number in float64.
        vanishes: whether the whole tensor is below the smallest step.
        pair: the two numbers that decide about it, if it is a decision.
    """

    severity: float
    index: tuple[int, ...] = ()
    found: float = 0
    exact: float = 0
    vanishes: bool = False
    pair: tuple[float, float] | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether the error exceeds the tolerance."""
        return self.severity > 1


def compare(found: Array, exact: Array, step: float, scale: float = 0) -> Difference:
    """Return the worst difference between a result and its reference in float64.

    Integers and bools must be equal. A float is wrong if its error exceeds ``RELATIVE`` of the
    tensor's largest number plus ``STEPS`` steps; if float64 gives NaN or infinity, which SPU lacks;
    or if the whole tensor is below the smallest step.

    Args:
        found: SPU's result.
        exact: the reference.
        step: the smallest step.
        scale: a magnitude that replaces the tensor's largest number, if larger.

    Returns:
        The worst element.

    Example:
        >>> compare(np.array([1.0, 2.1]), np.array([1.0, 2.0]), 2**-18).index
        (1,)
        >>> compare(np.array([1e-9]), np.array([1e-7]), 2**-18).vanishes
        True
    """
    if exact.size == 0:
        return Difference(0)
    if exact.dtype.kind != "f":
        return _worst(np.where(found != exact, np.inf, 0.0), found, exact)
    sizes = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    largest = float(sizes.max())
    if scale == 0 and 0 < largest < step:
        return _worst(np.where(sizes == largest, 2.0, 0.0), found, exact, vanishes=True)
    allowed = RELATIVE * max(largest, scale) + STEPS * step
    with np.errstate(invalid="ignore"):
        off = np.abs(found - exact) / allowed
    return _worst(np.where(np.isfinite(exact), off, 1.5), found, exact)


def is_off(found: Array, exact: Array, step: float) -> Array:
    """Return which elements are off a reference by more than the tolerance.

    Args:
        found: a result.
        exact: the reference.
        step: the smallest step.
    """
    if exact.dtype.kind != "f":
        return np.asarray(found != exact)
    largest = float(np.max(np.abs(exact), initial=0, where=np.isfinite(exact)))
    with np.errstate(invalid="ignore"):
        return np.asarray(~(np.abs(found - exact) <= RELATIVE * largest + STEPS * step))


def _worst(severity: Array, found: Array, exact: Array, vanishes: bool = False) -> Difference:
    at = tuple(map(int, np.unravel_index(int(severity.argmax()), severity.shape)))
    number = float if exact.dtype.kind == "f" else int
    return Difference(float(severity[at]), at, number(found[at]), number(exact[at]), vanishes)
