"""Kinds of devices, and the ways between them. Core brings ``PPU``, plugins the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mplang_core.edsl import MPObject
from mplang_core.feop import FeProgram, misfit
from mplang_core.mask import Mask
from mplang_core.namespace import Namespace
from mplang_core.types import BaseType, Form

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.config_model import StrictModel
    from mplang_core.feop.meta import FeMeta

PARTY = "party"
"""Stands in a transfer for values that are on no device: held by parties, in plain."""

Consent: TypeAlias = Literal["auto", "put", "reveal"]
"""What the program must say for a value to move: nothing, ``put``, or ``reveal``."""


@dataclass(frozen=True, slots=True)
class Lowering:
    """How a kind of device runs what was not made for it: it compiles a dialect.

    Attributes:
        dialects: what it can compile, as in a feop's metadata.
        lower: ``lower(make, types, config)`` returns a program for a device of that
            configuration. ``types`` are the base types of the operands there; ``make`` gives
            the program of the feop for operands of other base types.
    """

    dialects: tuple[str, ...]
    lower: Callable[[Callable[[Sequence[BaseType]], FeProgram], Sequence[BaseType], Any], FeProgram]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A way for values from one kind of device to another.

    Attributes:
        src: a kind's name; ``PARTY`` for values that are on no device.
        dst: likewise.
        move: ``move(value, src, dst)`` emits the ops and returns the value there; a device is
            ``None`` for ``PARTY``.
        needs: what the program must say for it, or ``needs(value, src, dst)`` that returns it.
    """

    src: str
    dst: str
    move: Callable[[MPObject, Any, Any], MPObject]
    needs: Consent | Callable[[MPObject, Any, Any], Consent]

    def required(self, value: MPObject, src: Any, dst: Any) -> Consent:
        """Return what the program must say for this value to move."""
        return self.needs(value, src, dst) if callable(self.needs) else self.needs


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """A kind of device.

    Attributes:
        name: as in a cluster's description, ``"SPU"``.
        form: how its members see the values on it.
        config: the model of its configuration; ``None`` if it takes none.
        members: how many it takes, from and to; ``None`` for any number.
        resolve_config: returns the configuration completed for the members; raises ``ValueError``
            where it does not suit them.
        unsupported_reasons: ``unsupported_reasons(meta, members)`` returns the reasons against
            running a feop on that many members; an empty sequence means that it runs. By
            default an op of one party runs on one member, an op of several on several.
        lowering: how it runs a feop of a dialect that it can compile, if it can.
        transfers: the ways from it and to it.
        doc: one line.
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
        """Return why it does not take so many members, or ``None``."""
        low, high = self.members
        if members < low or (high is not None and members > high):
            wanted = f"{low}" if low == high else f"{low} to {high or 'any number of'}"
            return f"a {self.name} has {wanted} members, got {members}"
        return None


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a cluster.

    Attributes:
        name: unique in the cluster, ``"SP0"``.
        kind: what it is.
        mask: its members.
        config: its configuration, an instance of the kind's model.
    """

    name: str
    kind: DeviceKind
    mask: Mask
    config: Any = field(default=None)

    def __str__(self) -> str:
        return f"{self.name} ({self.kind.name} of {self.mask})"


device_kinds: Namespace[DeviceKind] = Namespace("device kind")
"""All kinds of devices by name."""

transfers: Namespace[Transfer] = Namespace("transfer")
"""All ways, by ``"SRC->DST"``."""


def add_kind(kind: DeviceKind, provider: str) -> None:
    """Add a kind of device and its transfers."""
    device_kinds.add(kind.name, kind, provider=provider)
    for way in kind.transfers:
        transfers.add(f"{way.src}->{way.dst}", way, provider=provider)
