"""Sessions with an enclave: one for each party in a program, in the state of its context."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
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
    """Session of a party with an enclave that it has verified.

    Attributes:
        party: rank of the party, which owns what goes in, or reads what comes out.
        key: the key at the party.
        enclave_key: the same inside of the enclave.
        slots: numbers of the values that are sealed next; no two of a program have the same.
    """

    party: int
    key: MPObject
    enclave_key: MPObject
    slots: Iterator[int] = field(default_factory=lambda: itertools.count(1))


def session_of(ctx: SessionContext, device: Device, party: int) -> TeeSession:
    """Return the session of a party in a program, which has a new one in each program.

    Where ops run one by one, each value has a session of its own: a quote is of one run.

    Args:
        ctx: where it is used.
        device: of kind ``TEE``.
        party: rank of the party.
    """
    name = device.name, party
    if isinstance(ctx, TraceContext):
        known = _known(ctx, name)
        if known is not None:
            return known
    attrs = {"owner": party, "enclave": device.mask.first, "provider": device.config.provider}
    key, enclave_key = ctx.emit("tee.attest", [], attrs)
    made = TeeSession(party, key, enclave_key)
    if isinstance(ctx, TraceContext):
        _state(ctx)[name] = made
    return made


def _known(ctx: SessionContext, name: tuple[str, int]) -> TeeSession | None:
    """Return a session that was made here, or around here."""
    sessions = (_state(each).get(name) for each in ctx.ancestors())
    return next((each for each in sessions if each is not None), None)


def _state(ctx: SessionContext) -> MutableMapping[tuple[str, int], TeeSession]:
    made: MutableMapping[tuple[str, int], TeeSession] = ctx.fe_state.setdefault(STATE, {})
    return made
