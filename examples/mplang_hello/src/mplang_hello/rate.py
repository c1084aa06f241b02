"""An attribute of a kind of its own: a rate, by which ``hello.convert`` multiplies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mplang_core import Attribute, TensorType, simple_op


@dataclass(frozen=True, slots=True)
class Rate(Attribute):
    """What one unit is worth in another one, as a fraction: nothing is rounded.

    Attributes:
        unit: the unit of the result, such as ``"EUR"``.
        above: what stands above the line.
        below: what stands below it, more than 0.

    Example:
        >>> print(Rate("EUR", 9, 10))
        hello.rate<"EUR", 9, 10>
    """

    name: ClassVar[str] = "hello.rate"

    unit: str
    above: int
    below: int

    def __post_init__(self) -> None:
        if self.below <= 0:
            raise ValueError(f"a rate has something above 0 below the line, got {self.below}")

    def params(self) -> tuple[Any, ...]:
        """Return what stands between ``<`` and ``>``."""
        return (self.unit, self.above, self.below)

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> Rate:
        """Make the rate of what :meth:`params` gives; other things come from the network."""
        if [type(each) for each in params] != [str, int, int]:
            raise ValueError("a rate has a unit and two integers")
        return cls(*params)


@simple_op(
    "hello.convert",
    version="1",
    reads=(),
    total=True,
    inputs=({"kind": "Tensor", "visibility": ("PUBLIC", "PRIVATE")},),
    outputs=({"kind": "Tensor", "visibility": ("PUBLIC", "PRIVATE")},),
)
def convert(x: TensorType, *, rate: Rate) -> TensorType:
    """Convert amounts to another unit.

    Args:
        x: a tensor of integers or floats.
        rate: by what they are multiplied.

    Returns:
        A tensor of f64 of the same shape.

    Raises:
        TraceError: the tensor has other elements, or the rate is none.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_hello import Rate, convert
        >>> def program():
        ...     dollars = mp.put("P0", [100.0, 250.0])
        ...     return mp.device("P0")(convert)(dollars, rate=Rate("EUR", 9, 10))
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        array([ 90., 225.])
    """
    if not isinstance(rate, Rate):
        raise TypeError(f"rate: expected a Rate, got {rate!r}")
    if x.dtype.value[0] not in "iuf":
        raise TypeError(f"expected amounts, integers or floats, got {x}")
    return TensorType("f64", x.shape)
