"""Device kinds and the transfers between them. The core has ``PPU``, plugins add others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from mplang_core.edsl import MPObject
from mplang_core.feop import FeProgram, misfit
from mplang_core.mask import Mask
from mplang_core.namespace import Namespace
from mplang_core.types import BaseType, Form

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.config_model import StrictModel
    from mplang_core.feop.meta import FeMeta

PARTY = "party"
"""In a transfer: values on no device, held by parties in plain."""

Consent: TypeAlias = Literal["auto", "put", "reveal"]
"""The consent that a transfer needs from the program: none (``auto``), ``put`` or ``reveal``."""

CONSENTS: tuple[Consent, ...] = get_args(Consent)
"""All of them; each suffices for those before it."""


@dataclass(frozen=True, slots=True)
class Lowering:
    """Compilation of feops of certain dialects for a kind of device.

    Attributes:
        dialects: the dialects that it compiles, as in a feop's metadata.
        lower: ``lower(make, types, config)`` returns a program for a device with the
            configuration ``config``. ``types`` are the base types of the operands on the
            device; ``make(types)`` returns the feop's program for other base types.
    """

    dialects: tuple[str, ...]
    lower: Callable[[Callable[[Sequence[BaseType]], FeProgram], Sequence[BaseType], Any], FeProgram]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Transfer of values from one kind of device to another.

    Attributes:
        src: the name of the source kind; ``PARTY`` for values on no device.
        dst: the name of the destination kind; ``PARTY`` for all parties.
        move: ``move(value, src, dst)`` emits the ops and returns the moved value; a device is
            ``None`` for ``PARTY``.
        needs: the consent that it needs, or ``needs(value, src, dst)``, which returns it.
    """

    src: str
    dst: str
    move: Callable[[MPObject, Any, Any], MPObject]
    needs: Consent | Callable[[MPObject, Any, Any], Consent]

    def required(self, value: MPObject, src: Any, dst: Any) -> Consent:
        """Return the consent that the transfer of a value needs.

        A way out of protection needs ``"reveal"``, whatever the transfer says.

        Args:
            value: the value.
            src: its device; ``None`` for ``PARTY``.
            dst: the destination; ``None`` for ``PARTY``.
        """
        src_plain, dst_plain = (at is None or at.kind.form is Form.PLAIN for at in (src, dst))
        if dst_plain and not src_plain:
            return "reveal"
        return self.needs(value, src, dst) if callable(self.needs) else self.needs


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """Kind of device.

    Attributes:
        name: the name in cluster descriptions, such as ``"SPU"``.
        form: the form of its values at its members.
        config: the model of its configuration; ``None`` if it has none.
        members: the minimum and the maximum number of members; ``None`` for no maximum.
        resolve_config: ``resolve_config(config, members)`` returns the configuration completed
            for the mask of members; it raises ``ValueError`` if it does not suit them.
        unsupported_reasons: ``unsupported_reasons(meta, members)`` returns the reasons against
            running a feop on that many members; an empty sequence means that it runs. By
            default an op of one party runs on one member, an op of several on several.
        lowering: compiles feops that the kind does not run directly; ``None`` for none.
        transfers: the transfers from it and to it.
        doc: one line for tools.

    Example:
        >>> tee = DeviceKind("TEE", Form.HANDLE, members=(1, 1), doc="An attested enclave.")
        >>> tee.refuses(2)
        'a TEE has 1 members, got 2'
    """

    name: str
    form: Form
    config: type[StrictModel] | None = None
    members: tuple[int, int | None] = (1, 1)
    resolve_config: Callable[[Any, Mask], Any] = lambda config, members: config
    unsupported_reasons: Callable[[FeMeta, int], Sequence[str]] = misfit
    lowering: Lowering | None = None
    transfers: Sequence[Transfer] = ()
    doc: str = ""

    def refuses(self, members: int) -> str | None:
        """Return why a number of members is not supported, or ``None``.

        Args:
            members: the number of members.
        """
        low, high = self.members
        if members < low or (high is not None and members > high):
            wanted = f"{low}" if low == high else f"{low} to {high or 'any number of'}"
            return f"a {self.name} has {wanted} members, got {members}"
        return None


@dataclass(frozen=True, slots=True)
class Device:
    """Device of a cluster.

    Attributes:
        name: its name, unique in the cluster, such as ``"SP0"``.
        kind: its kind.
        mask: its members.
        config: its complete configuration, an instance of the kind's model.
        frontends: the families of compilers that it prefers; see :func:`mplang_core.frontend`.
    """

    name: str
    kind: DeviceKind
    mask: Mask
    config: Any = field(default=None)
    frontends: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} ({self.kind.name} of {self.mask})"


device_kinds: Namespace[DeviceKind] = Namespace("device kind")
"""Device kinds by name."""

transfers: Namespace[Transfer] = Namespace("transfer")
"""Transfers by ``"SRC->DST"``."""


def add_kind(kind: DeviceKind, provider: str) -> None:
    """Add a device kind and its transfers."""
    device_kinds.add(kind.name, kind, provider=provider)
    for way in kind.transfers:
        add_transfer(way, provider)


def add_transfer(way: Transfer, provider: str) -> None:
    """Add a transfer."""
    transfers.add(f"{way.src}->{way.dst}", way, provider=provider)
