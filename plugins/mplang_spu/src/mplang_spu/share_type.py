"""Share type of SPU: one party's share of a tensor. Imports neither libspu nor JAX."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from mplang_core import BaseType, Form, Mask, MPType, TensorType
from mplang_core.ext import Graph
from mplang_spu.config import BITS, SpuConfig, resolve_config
from mplang_spu.target import Target

MAX_CODE = 4 << 20
"""Maximum StableHLO size in bytes: libspu takes seconds per megabyte, holding the GIL."""


@dataclass(frozen=True, slots=True)
class ShareType(BaseType):
    """Type of one party's share of a tensor.

    Attributes:
        plain: the type of the shared tensor.
        parties: the holders of the shares.
        protocol: the sharing protocol.
        field: the ring of the shares.
        fxp: the fraction bits of fixed-point numbers.
    """

    name: ClassVar[str] = "spu.share"
    form: ClassVar[Form] = Form.SHARE

    plain: TensorType
    parties: Mask
    protocol: str
    field: str
    fxp: int

    def __post_init__(self) -> None:
        if self.plain.dtype.value in ("c64", "c128", "bf16"):
            raise ValueError(f"SPU computes on bools, integers and floats, got {self.plain}")
        if self.field == "FM32" and self.plain.dtype.is_64bit:
            raise ValueError(f"{self.plain} does not fit in FM32; use FM64 or FM128")
        _check_sharing(self.parties, self.protocol, self.field, self.fxp)

    @classmethod
    def of(cls, plain: TensorType, config: SpuConfig) -> ShareType:
        """Return the type of the shares on a device.

        Args:
            plain: the type of the shared tensor.
            config: of the device, with its parties.

        Returns:
            The share type.
        """
        return cls(plain, config.mask, str(config.protocol), config.ring, config.fxp_fraction_bits)

    @property
    def target(self) -> Target:
        """Lowering target of code on such shares."""
        return Target(self.protocol, self.field, self.fxp)

    @property
    def nbytes(self) -> int:
        """Size of one party's share in bytes; in ABY3 each party has two of three pieces."""
        pieces = 2 if self.protocol == "ABY3" else 1
        return pieces * self.plain.size * BITS[self.field] // 8

    def params(self) -> tuple[Any, ...]:
        """Return the plain type, the parties, protocol, field and fraction bits."""
        return (self.plain, self.parties, self.protocol, self.field, self.fxp)

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> ShareType:
        """Construct the type from the result of :meth:`params`."""
        plain, parties, protocol, field, fxp = params
        if not (
            isinstance(plain, TensorType)
            and isinstance(parties, Mask)
            and isinstance(protocol, str)
            and isinstance(field, str)
            and type(fxp) is int
        ):
            raise ValueError("a share has a tensor, parties, protocol, field and fraction bits")
        return cls(plain, parties, protocol, field, fxp)

    def mismatch(self, value: Any) -> str | None:
        """Compare the share type that a value was made with."""
        found = getattr(value, "type", None)
        return None if found == self else f"expected {self}, got {found or type(value).__name__}"


class Sharing(NamedTuple):
    """Way to share tensors: what the types of shares of one device have in common.

    Attributes:
        parties: the holders of the shares.
        protocol: the sharing protocol.
        field: the ring of the shares.
        fxp: the fraction bits of fixed-point numbers.
    """

    parties: Mask
    protocol: str
    field: str
    fxp: int

    @classmethod
    def of(cls, kind: ShareType) -> Sharing:
        """Return the way of a share."""
        return cls(kind.parties, kind.protocol, kind.field, kind.fxp)

    @classmethod
    def of_device(cls, config: SpuConfig) -> Sharing:
        """Return the way of a device, before a program has chosen its field."""
        return cls(config.mask, str(config.protocol), config.ring, config.fxp_fraction_bits)


def share_of(kind: object) -> ShareType | None:
    """Return the type of a share, whoever holds it; ``None`` for another type."""
    base = kind.base if isinstance(kind, MPType) else kind
    return base if isinstance(base, ShareType) else None


def shares_in(graph: Graph) -> list[Sharing]:
    """Return the ways in which the values of a graph are shared, each once."""
    graphs = [graph, *(region for op in graph.walk() for region in op.regions.values())]
    inputs = [value for each in graphs for value in each.inputs]
    values = [*inputs, *(value for op in graph.walk() for value in op.outputs)]
    shares = filter(None, (share_of(value.type) for value in values))
    return list(dict.fromkeys(map(Sharing.of, shares)))


def plain_of(kind: Any) -> Any:
    """Return the type of the tensor that shares stand for, or that of a public tensor."""
    return kind.plain if isinstance(kind, ShareType) else kind


@functools.lru_cache(maxsize=256, typed=True)
def _check_sharing(parties: Mask, protocol: Any, field: Any, fxp: int) -> None:
    """Check what types of shares have in common; each program has hundreds of them.

    Raises:
        ValueError: there is no such way to share.
    """
    config = SpuConfig(protocol=protocol, field=field, fxp_fraction_bits=fxp)
    resolve_config(config, parties)
