"""Device kinds and the transfers between them. The core has ``PPU``, plugins add others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from mplang_core.display import Displayed
from mplang_core.edsl import MPObject
from mplang_core.feop import FeProgram, misfit, other_form, registry, runs_at_parties
from mplang_core.ir import Program
from mplang_core.mask import Mask
from mplang_core.namespace import Namespace
from mplang_core.types import BaseType, Form

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.config_model import StrictModel
    from mplang_core.feop.meta import FeMeta

PARTY = "party"
"""In a transfer, in place of a kind: no device; as a destination, all parties in plain."""

Consent: TypeAlias = Literal["auto", "put", "reveal"]
"""The consent that a transfer needs from the program: none (``auto``), ``put`` or ``reveal``."""

CONSENTS: tuple[Consent, ...] = get_args(Consent)
"""All of them; each suffices for those before it."""


@dataclass(frozen=True, slots=True)
class Lowering:
    """Compilation of feops of certain dialects for a kind of device.

    Attributes:
        dialects: the dialects that it compiles, as in a feop's metadata; empty for all.
        lower: ``lower(make, types, config)`` returns a program for a device with the
            configuration ``config``. ``types`` are the base types of the operands on the
            device; ``make(types)`` returns the feop's program for other base types.
    """

    dialects: tuple[str, ...]
    lower: Callable[[Callable[[Sequence[BaseType]], FeProgram], Sequence[BaseType], Any], FeProgram]

    def takes(self, meta: FeMeta) -> bool:
        """Return whether it compiles a feop: one of its dialects, of plain values."""
        suits = not self.dialects or not set(meta.dialects).isdisjoint(self.dialects)
        return suits and runs_at_parties(meta) and not other_form(meta, Form.PLAIN)


@dataclass(frozen=True, slots=True)
class Transfer:
    """Transfer of values from devices of a kind or a form to others.

    A kind needs two: from ``Form.PLAIN``, and to it. So it reaches all others whose values are
    plain, and these reach it, whoever brings them.

    Attributes:
        src: the name of the source kind, or the form of its values. ``Form.PLAIN`` includes values
            on no device, which alone are ``PARTY``.
        dst: the name or form of the destination kind. ``Form.PLAIN`` includes all parties, on no
            device, which alone are ``PARTY``.
        move: ``move(value, src, dst)`` emits the ops and returns the moved value; a device is
            ``None`` for no device.
        needs: the consent that it needs, or ``needs(value, src, dst)``, which returns it.
    """

    src: str | Form
    dst: str | Form
    move: Callable[[MPObject, Any, Any], MPObject]
    needs: Consent | Callable[[MPObject, Any, Any], Consent]

    def required(self, value: MPObject, src: Any, dst: Any) -> Consent:
        """Return the consent that the transfer of a value needs.

        A way out of protection needs ``"reveal"``, whatever the transfer says.

        Args:
            value: the value.
            src: its device; ``None`` for no device.
            dst: the destination; ``None`` for all parties.
        """
        if _form(dst) is Form.PLAIN and _form(src) is not Form.PLAIN:
            return "reveal"
        return self.needs(value, src, dst) if callable(self.needs) else self.needs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DeviceKind:
    """Kind of device.

    Attributes:
        name: the name in cluster descriptions, such as ``"SPU"``.
        form: the form of its values at its members.
        config: the model of its configuration; ``None`` if it has none.
        members: the minimum and the maximum number of members; ``None`` for no maximum.
        resolve_config: ``resolve_config(config, members)`` returns the configuration completed
            for the mask of members; it raises ``ValueError`` if it does not suit them.
        dialects: the dialects of the ops that its members run directly on its values; empty for
            all. A feop names the form of these values in its ``targets``.
        unsupported_reasons: ``unsupported_reasons(meta, members)`` returns further reasons against
            running a feop on that many members; an empty sequence means that it runs. By
            default an op of one party runs on one member, an op of several on several.
        lowering: compiles feops of plain values that the kind does not run directly, and what
            frontends compile for a party in plain; ``None`` for none.
        transfers: the transfers from it and to it.
        settle: ``settle(program, devices)`` returns a program that was traced with devices of the
            kind, after they have chosen what they choose for a whole program, such as the size of
            their numbers; the inputs and the results keep their types. What runs, is reviewed and
            has a digest is its result. By default nothing is left to choose.
        doc: one line for tools.

    Example:
        >>> gpu = DeviceKind("GPU", Form.PLAIN, doc="An accelerator of one party.")
        >>> gpu.refuses(2)
        'a GPU has 1 members, got 2'
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
    dialects: tuple[str, ...] = ()
    settle: Callable[[Program, Sequence[Device]], Program] = lambda program, devices: program

    def __repr__(self) -> str:
        return f"<DeviceKind {self.name}>"

    def reasons_against(self, meta: FeMeta, members: int) -> list[str]:
        """Return the reasons against running a feop directly, without its lowering.

        Args:
            meta: the feop's metadata.
            members: the number of members.
        """
        reasons = other_form(meta, self.form)
        known = not self.dialects or not set(meta.dialects).isdisjoint(self.dialects)
        if runs_at_parties(meta) and not known:
            mine, other = ", ".join(self.dialects), ", ".join(meta.dialects) or "none"
            reasons.append(f"its dialect is {other}, the device runs {mine}")
        return [*reasons, *self.unsupported_reasons(meta, members)]

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


@dataclass(frozen=True, slots=True, repr=False)
class Device(Displayed):
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

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class JointRun:
    """Way to run functions of values that stay with their parties, such as queries of tables.

    Attributes:
        name: its name, of a family of its plugin, such as ``"joins.queries"``.
        takes: ``takes(device, values)`` returns whether it runs functions of these values on a
            device that they do not move to.
        run: ``run(device, fn, args, kwargs, **how)`` emits the ops and returns the nest of results,
            which are on the device.
        options: what ``how`` may have, as ``mp.device("SP0", match="psi")`` gives it.
    """

    name: str
    takes: Callable[[Device, Sequence[MPObject]], bool]
    run: Callable[..., object]
    options: Sequence[str] = ()


device_kinds: Namespace[DeviceKind] = Namespace("device kind")
"""Device kinds by name."""

transfers: Namespace[Transfer] = Namespace("transfer")
"""Transfers by ``"SRC->DST"``; a form is ``"any plain"``."""

joint_runs: Namespace[JointRun] = Namespace("joint run")
"""Ways to run functions of values that stay with their parties, by name."""


def find_joint_run(device: Device, values: Sequence[MPObject]) -> JointRun | None:
    """Return what runs functions of values on a device without moving these there."""
    if device.kind.form is Form.PLAIN:
        return None
    registry.load_all()
    return next((each for _, each in joint_runs if each.takes(device, values)), None)


def find_transfer(src: Device | None, dst: Device | None) -> Transfer | None:
    """Return the transfer between two devices; one of a kind goes before one of a form.

    Args:
        src: the source; ``None`` for no device.
        dst: the destination; ``None`` for all parties.
    """
    for one, other in itertools.product(_ends(src), _ends(dst)):
        if (way := transfers.get(_key(one, other))) is not None:
            return way
    return None


def _ends(device: Device | None) -> tuple[str | Form, ...]:
    return (PARTY if device is None else device.kind.name, _form(device))


def _form(device: Device | None) -> Form:
    return Form.PLAIN if device is None else device.kind.form


def _key(src: str | Form, dst: str | Form) -> str:
    return "->".join(f"any {at.value}" if isinstance(at, Form) else at for at in (src, dst))


def add_kind(kind: DeviceKind, provider: str) -> None:
    """Add a device kind and its transfers."""
    device_kinds.add(kind.name, kind, provider=provider)
    for way in kind.transfers:
        add_transfer(way, provider)


def add_transfer(way: Transfer, provider: str) -> None:
    """Add a transfer."""
    transfers.add(_key(way.src, way.dst), way, provider=provider)
