"""Configuration of an SPU device."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal, TypeAlias

from mplang_analysis import Link
from pydantic import Field

from mplang_core import Mask
from mplang_core.ext import AdmissionError, ConfigError, Operation, StrictModel

Protocol: TypeAlias = Literal["SEMI2K", "ABY3", "CHEETAH"]

Address: TypeAlias = Annotated[str, Field(pattern=r"^[^\s/@]+:\d{1,5}$")]

ENV = "MPLANG_SPU_USE_CHANNELS"

BITS = {"FM32": 32, "FM64": 64, "FM128": 128}
FRACTION_BITS = {"FM32": 8, "FM64": 18, "FM128": 40}
"""Default fraction bits of each field."""
AUTO, WIDE, NARROW = "auto", "FM128", "FM64"
"""The setting that leaves the field to each program; what shares are at first, and may become."""


class SpuConfig(StrictModel):
    """Configuration of an SPU: protocol, fixed-point representation, approximations and links.

    Attributes:
        protocol: ``SEMI2K`` (two parties or more; its first party deals the randomness and is
            trusted with it, so it is for debugging), ``ABY3`` (three parties, honest majority),
            ``CHEETAH`` (two parties). The default is CHEETAH for two, ABY3 for three, SEMI2K for
            more.
        field: the ring of the shares: ``FM128``, or for speed, if numbers are known to stay small,
            ``FM64`` or ``FM32``. ``auto`` takes ``FM64`` in each program of integers that is
            certain to be right in it, and ``FM128`` in all others; see
            :mod:`mplang_spu.field_choice`.
        fxp_fraction_bits: fraction bits f of a fixed-point number; the default is 40 of 128, 18 of
            64, 8 of 32. Numbers are below 2^(bits - 2 - f), products below 2^(bits - 2 - 2f):
            7.7e25 and 7.0e13 in FM128, 1.8e13 and 6.7e7 in FM64.
        sigmoid_mode: approximation of the logistic function: ``products`` of mplang's own has an
            error of 2e-7 in FM128; ``real``, libspu's ``default``, has 2e-5, and takes two to six
            times as long; ``seg3`` and ``mm1`` are coarse.
        exp_mode: approximation of the exponential function: ``products`` of mplang's own has an
            error of 2e-6 in FM128; ``pade``, which smaller fields have for numbers of either sign,
            a relative error of about 1e-4; ``taylor``, libspu's ``default``, 0.8 % at 2, 3.0 % at
            4, 23.9 % at 12.
        sort_method: how secret rows are sorted. Messages of ``radix`` and ``network`` do not depend
            on data; ``radix`` takes a shuffle, which CHEETAH has not, where it costs twelve times
            as much as ``network``. ``quick`` opens comparisons of rows that were shuffled and are
            told apart by their places. The default is libspu's: radix, and quick on CHEETAH.
        ot: oblivious transfers of CHEETAH, which compare: ``softspoken`` is set up at once, and
            sends more than ten megabytes for 16,384 comparisons; ``ferret`` takes seconds to set
            up, and sends a tenth. ``auto``, the default, begins with the former, and takes the
            latter where what a session compares is worth it on the ``link``.
        link: the network between the members: ``lan``, the default, ``wan``, or its figures, as
            ``{rtt: 20, rate: 100}``, in milliseconds and megabits a second.
        use_mplang_channel: whether SPU's messages go through the workers' communicator, which needs
            no further port; the default, but on a simulator, which has links in memory.
            ``MPLANG_SPU_USE_CHANNELS`` in a worker's environment takes precedence.
        brpc_addresses: ``host:port`` of each member in the order of ranks, for SPU's own BRPC
            links. These are unencrypted and unauthenticated, so a worker makes them only if it is
            ``insecure``. Without addresses the links are in memory, which works within one process.
        parties: the members' ranks; set by the device.
        protocol_is_default: whether nobody asked for the protocol; set by the device.
    """

    protocol: Protocol | None = None
    field: Literal["auto", "FM32", "FM64", "FM128"] = "FM128"
    fxp_fraction_bits: int = Field(
        default_factory=lambda data: FRACTION_BITS[ring_of(data.get("field", WIDE))], ge=1
    )
    sigmoid_mode: Literal["products", "default", "real", "seg3", "mm1"] = "products"
    exp_mode: Literal["products", "default", "pade", "taylor"] = "products"
    sort_method: Literal["quick", "radix", "network"] | None = None
    ot: Literal["auto", "ferret", "softspoken"] | None = None
    link: Link | None = None
    use_mplang_channel: bool | None = None
    brpc_addresses: tuple[Address, ...] | None = None
    parties: tuple[int, ...] = ()
    protocol_is_default: bool = Field(default=False, exclude=True)

    def attrs(self) -> dict[str, Any]:
        """Return the configuration without the parties, as an attribute of an op."""
        return {**self.model_dump(exclude={"parties"}, exclude_none=True), "field": self.ring}

    def with_oblivious_sort(self) -> SpuConfig:
        """Return a copy that sorts by the fastest method whose messages depend on no data.

        Example:
            >>> SpuConfig(protocol="CHEETAH").with_oblivious_sort().sort_method
            'network'
        """
        method = "network" if self.protocol == "CHEETAH" else "radix"
        return self.model_copy(update={"sort_method": method})

    @property
    def ring(self) -> str:
        """The field of its shares, before a program has chosen one where that is ``auto``."""
        return ring_of(self.field)

    @property
    def bits(self) -> int:
        """The bits of its ring."""
        return BITS[self.ring]

    @property
    def mask(self) -> Mask:
        """The members."""
        return Mask.from_ranks(self.parties)


def ring_of(field: str) -> str:
    """Return the field of shares before a program has chosen one: that of ``auto`` is FM128."""
    return WIDE if field == AUTO else field


def from_env() -> bool | None:
    """Return the channel setting of this worker's environment, ``None`` if unset.

    Raises:
        ConfigError: the value is neither yes nor no.
    """
    value = os.environ.get(ENV, "").strip().lower()
    if value in ("", "1", "true", "yes", "on"):
        return True if value else None
    if value in ("0", "false", "no", "off"):
        return False
    raise ConfigError(f"{ENV} is 1 or 0, got {value!r}", code="C002")


def admit_protocol(protocol: str, insecure: bool) -> None:
    """Refuse a protocol for debugging at a worker that is not insecure.

    Raises:
        AdmissionError: the protocol is SEMI2K, and the worker does not allow it.
    """
    if protocol == "SEMI2K" and not insecure:
        raise AdmissionError(
            "SEMI2K trusts its first party with the randomness, so it is for debugging only; "
            "use CHEETAH (2 parties) or ABY3 (3). Of more parties, make the SPU of three: the "
            "others hand their shares to them, and learn results all the same, as in "
            "examples/auction.py. "
            "To debug, set insecure: true at every worker",
            code="A007",
        )


def config_of(op: Operation) -> SpuConfig:
    """Return the configuration that an op has, completed for its members.

    Args:
        op: an op with the attributes ``config``, as of :meth:`SpuConfig.attrs`, and ``parties``.

    Raises:
        ValueError: it is none, does not suit the members, or leaves the field open.
    """
    config = resolve_config(SpuConfig(**op.attrs["config"]), op.attrs["parties"])
    if config.field == AUTO:
        raise ValueError(f"field 'field': an op has the field that was chosen, got {AUTO!r}")
    return config


def resolve_config(config: SpuConfig, members: Mask) -> SpuConfig:
    """Complete a configuration for its members.

    Args:
        config: as the user wrote it.
        members: the parties of the device.

    Returns:
        A copy with protocol and parties.

    Raises:
        ValueError: the protocol does not support this number of members, the fraction bits do not
            fit in the field, or the addresses do not match the members.
    """
    n = len(members)
    if n < 2:
        raise ValueError(f"an SPU has two members or more, got {members}")
    protocol: Protocol = config.protocol or {2: "CHEETAH", 3: "ABY3"}.get(n, "SEMI2K")  # type: ignore[assignment]
    wanted = {"ABY3": 3, "CHEETAH": 2}.get(protocol)
    if wanted is not None and n != wanted:
        raise ValueError(f"field 'protocol': {protocol} takes {wanted} members, got {n}")
    if config.fxp_fraction_bits > BITS[config.ring] // 2 - 2:
        raise ValueError(
            f"field 'fxp_fraction_bits': a product of two numbers must fit in {config.ring}, "
            f"so at most {BITS[config.ring] // 2 - 2}, got {config.fxp_fraction_bits}"
        )
    if config.ot is not None and protocol != "CHEETAH":
        raise ValueError(f"field 'ot': {protocol} has no oblivious transfers; CHEETAH has")
    addresses = config.brpc_addresses
    if addresses is not None and not len(addresses) == len(set(addresses)) == n:
        raise ValueError(
            f"field 'brpc_addresses': expected one of each of {n} members, got {list(addresses)}"
        )
    chosen = {"protocol": protocol, "parties": tuple(members)}
    return config.model_copy(update={**chosen, "protocol_is_default": config.protocol is None})
