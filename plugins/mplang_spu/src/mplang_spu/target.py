"""Lowering target: protocol, field and fixed point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mplang_spu.config import BITS

PRODUCTS = "products"
FEW_BITS = 16
"""Fraction bits below which products err too much."""
ROOM = 2.0**10
"""What products of functions by products are below."""


@dataclass(frozen=True, slots=True)
class Target:
    """Lowering target: protocol, ring and fixed-point representation.

    Attributes:
        protocol: ``ABY3``, ``CHEETAH`` or ``SEMI2K``.
        field: ``FM32``, ``FM64`` or ``FM128``.
        fxp: the fraction bits of a float.
        sort_method: how rows are sorted; see :class:`SpuConfig`.
        exp_mode: how ``exp`` and its like are computed; see :class:`SpuConfig`.
        sigmoid_mode: how the logistic function is computed; see :class:`SpuConfig`.

    Example:
        >>> target = Target("ABY3", "FM64", 18)
        >>> target.step, target.limit, target.factors
        (3.814697265625e-06, 17592186044416.0, 67108864.0)
    """

    protocol: str
    field: str
    fxp: int
    sort_method: str | None = None
    exp_mode: str = PRODUCTS
    sigmoid_mode: str = PRODUCTS

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Target:
        """Return the target of a device's configuration."""
        return cls(
            config["protocol"],
            config["field"],
            config["fxp_fraction_bits"],
            config.get("sort_method"),
            config.get("exp_mode", PRODUCTS),
            config.get("sigmoid_mode", PRODUCTS),
        )

    @property
    def exp_by_products(self) -> bool:
        """Whether ``exp`` and its like are products, which need some bits on both sides."""
        return self.exp_mode == PRODUCTS and self.holds_products

    @property
    def logistic_by_products(self) -> bool:
        """Whether the logistic function is products; see :attr:`exp_by_products`."""
        return self.sigmoid_mode == PRODUCTS and self.holds_products

    @property
    def holds_products(self) -> bool:
        """Whether products have enough bits before the point, and behind it."""
        return self.bits > 32 and self.fxp >= FEW_BITS and self.factors >= ROOM

    @property
    def keeps_order(self) -> bool:
        """Whether an ascending sort leaves equal rows in their order."""
        return self.protocol != "CHEETAH" and self.sort_method in (None, "radix")

    @property
    def bits(self) -> int:
        """Size of the ring in bits."""
        return BITS[self.field]

    @property
    def step(self) -> float:
        """Distance of neighboring fixed-point numbers."""
        return 2.0**-self.fxp

    @property
    def limit(self) -> float:
        """Exclusive bound on the size of a float: comparisons subtract, which takes two bits."""
        return 2.0 ** (self.bits - 2 - self.fxp)

    @property
    def factors(self) -> float:
        """Exclusive bound on the size of a product, which has twice the fraction bits at first."""
        return 2.0 ** (self.bits - 2 - 2 * self.fxp)

    @property
    def integers(self) -> int:
        """Exclusive bound on the size of an integer that the ring can compare."""
        return 1 << (self.bits - 2)
