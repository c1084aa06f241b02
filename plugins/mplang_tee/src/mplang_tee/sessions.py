"""Sessions with an enclave: one for each owner in a program, in the state of its context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mplang_core import MPObject, TraceContext
from mplang_core.ext import Device

STATE = ("tee", "sessions")
"""Where the state of a context has them (seed 002)."""


class SessionContext(Protocol):
    """Protocol of a context, as state goes with it."""

    @property
    def fe_state(self) -> MutableMapping[Any, Any]:
        """The states of feops by name."""

    def ancestors(self) -> Iterator[Any]:
        """Yield it and the contexts around it, the innermost one first."""

    def emit(
        self, opcode: str, inputs: Sequence[MPObject], attrs: Mapping[str, Any] | None = None
    ) -> list[MPObject]:
        """Apply an op, and return its results."""


@dataclass(slots=True)
class TeeSession:
    """Session of an owner with an enclave.

    Attributes:
        owner: rank of the owner.
        key: the key at the owner.
        enclave_key: the same inside of the enclave.
        slots: values that were sealed so far.
    """

    owner: int
    key: MPObject
    enclave_key: MPObject
    slots: int = 0

    def next_slot(self) -> int:
        """Return which value of the session the next one is."""
        self.slots += 1
        return self.slots


def session_of(ctx: SessionContext, device: Device, owner: int) -> TeeSession:
    """Return the session of an owner in a program, which has a new one in each program.

    Where ops run one by one, each value has a session of its own: a quote is of one run.

    Args:
        ctx: where it is used.
        device: of kind ``TEE``.
        owner: rank of the owner.
    """
    name = device.name, owner
    if isinstance(ctx, TraceContext):
        known = _known(ctx, name)
        if known is not None:
            return known
    attrs = {"owner": owner, "enclave": device.mask.first, "provider": device.config.provider}
    key, enclave_key = ctx.emit("tee.attest", [], attrs)
    made = TeeSession(owner, key, enclave_key)
    if isinstance(ctx, TraceContext):
        _state(ctx)[name] = made
    return made


def _known(ctx: SessionContext, name: tuple[str, int]) -> TeeSession | None:
    """Return a session that was made here, or around here; what is sealed here counts here."""
    if name in _state(ctx):
        return _state(ctx)[name]
    for each in ctx.ancestors():
        around = _state(each).get(name)
        if around is not None:
            return _state(ctx).setdefault(name, replace(around))
    return None


def _state(ctx: SessionContext) -> MutableMapping[tuple[str, int], TeeSession]:
    made: MutableMapping[tuple[str, int], TeeSession] = ctx.fe_state.setdefault(STATE, {})
    return made
