"""For what a module is lowered: protocol, field and fixed point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mplang_spu.config import BITS

__all__ = ["Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a lowering has to know of an SPU.

    Attributes:
        protocol: ``ABY3``, ``CHEETAH`` or ``SEMI2K``.
        field: ``FM32``, ``FM64`` or ``FM128``.
        fxp: the fraction bits of a float.

    Example:
        >>> target = Target("ABY3", "FM64", 18)
        >>> target.step, target.limit, target.factors
        (3.814697265625e-06, 17592186044416.0, 67108864.0)
    """

    protocol: str
    field: str
    fxp: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Target:
        """Return the target that a device's configuration means."""
        return cls(config["protocol"], config["field"], config["fxp_fraction_bits"])

    @property
    def bits(self) -> int:
        """The bits of the ring."""
        return BITS[self.field]

    @property
    def step(self) -> float:
        """The smallest difference of two floats."""
        return 2.0**-self.fxp

    @property
    def limit(self) -> float:
        """What a float is below in size: two bits are kept, since comparisons subtract."""
        return 2.0 ** (self.bits - 2 - self.fxp)

    @property
    def factors(self) -> float:
        """What a product is below in size: it has the fraction bits of both factors at first."""
        return 2.0 ** (self.bits - 2 - 2 * self.fxp)

    @property
    def integers(self) -> int:
        """What an integer is below in size, so that the ring can compare it with another."""
        return 1 << (self.bits - 2)
