"""Keys of a device: made once in a program for each set of parameters, and sent once."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mplang_core import Mask, MPObject, pshfl_s
from mplang_core.ext import Device, TraceError, at, run_program
from mplang_he.ops import keygen, rotation_keys
from mplang_he.parameters import Parameters

STATE = "he.keys"


class StateContext(Protocol):
    """Protocol of a context, as state goes with it."""

    @property
    def fe_state(self) -> MutableMapping[str, Any]:
        """The states of feops by name."""

    def ancestors(self) -> Iterator[Any]:
        """Yield it and the contexts around it, the innermost one first."""


@dataclass(slots=True)
class Keys:
    """Keys of a device.

    Attributes:
        parameters: of the scheme.
        holder: who has the private one.
        evaluator: who computes.
        private: the private key.
        public: the public key, at each party that has it.
        relin: the keys by which products are relinearized, likewise.
        rotations: the keys by which slots are rotated, likewise, by steps.
    """

    parameters: Parameters
    holder: int
    evaluator: int
    private: MPObject
    public: dict[int, MPObject] = field(default_factory=dict)
    relin: dict[int, MPObject] = field(default_factory=dict)
    rotations: dict[tuple[int, ...], dict[int, MPObject]] = field(default_factory=dict)

    def copy(self) -> Keys:
        """Return the same keys; what is sent later goes to the copy alone."""
        rotations = {steps: {**keys} for steps, keys in self.rotations.items()}
        return replace(self, public={**self.public}, relin={**self.relin}, rotations=rotations)

    def public_at(self, party: int) -> MPObject:
        """Return the public key at a party."""
        return self._at(self.public, party)

    def relin_at(self, party: int) -> MPObject:
        """Return the relinearization keys at a party."""
        return self._at(self.relin, party)

    def rotation_at(self, party: int, steps: tuple[int, ...]) -> MPObject:
        """Return the keys of some rotations at a party."""
        if steps not in self.rotations:
            made: Any = rotation_keys(self.private, steps=steps)
            self.rotations[steps] = {self.holder: run_program(made, Mask.of(self.holder))}
        return self._at(self.rotations[steps], party)

    def _at(self, keys: dict[int, MPObject], party: int) -> MPObject:
        if party not in keys:
            keys[party] = pshfl_s(keys[self.holder], party, [self.holder])
        return keys[party]


def keys_of(ctx: StateContext, device: Device, parameters: Parameters) -> Keys:
    """Return the keys of a device in a program, which has new ones in each program."""
    known = known_keys(ctx, device, parameters)
    if known is not None:
        return known
    holder = device.config.holder
    scheme, degree, primes, plain = parameters.params()
    made: Any = keygen(scheme=scheme, degree=degree, primes=primes, plain=plain)
    private, public, relin = run_program(made, Mask.of(holder))
    public_keys, relin_keys = {holder: public}, {holder: relin}
    evaluator = device.config.evaluator
    keys = Keys(parameters, holder, evaluator, private, public_keys, relin_keys)
    _state(ctx)[device.name, parameters] = keys
    return keys


def known_keys(ctx: StateContext, device: Device, parameters: Parameters) -> Keys | None:
    """Return keys that were made here, or around here; what is sent here stays here."""
    if (device.name, parameters) in _state(ctx):
        return _state(ctx)[device.name, parameters]
    for each in ctx.ancestors():
        known = _state(each).get((device.name, parameters))
        if known is not None:
            keys = known.copy()
            return _state(ctx).setdefault((device.name, parameters), keys)
    return None


def private_key(ctx: StateContext, device: Device, parameters: Parameters) -> MPObject:
    """Return the private key of what is on a device.

    Raises:
        TraceError: another program made it, or a branch or loop that has ended.
    """
    known = known_keys(ctx, device, parameters)
    if known is None:
        raise TraceError(
            f"{at()}the key of what is on {device} was made in another program, or within a branch "
            "or loop: reveal it there",
            code="T012",
        )
    return known.private


def _state(ctx: StateContext) -> MutableMapping[Any, Keys]:
    made: MutableMapping[Any, Keys] = ctx.fe_state.setdefault(STATE, {})
    return made
