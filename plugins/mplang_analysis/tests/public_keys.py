"""A dialect with public-key encryption, as a plugin from outside may bring it, and its programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import mplang_core as mp
from mplang_core import BaseType, Form
from mplang_core.ext import Effects, OpDef, op_defs, type_classes


class _Bare(BaseType):
    def params(self):
        return ()

    @classmethod
    def from_params(cls, params):
        return cls()


@dataclass(frozen=True)
class PrivateKey(_Bare):
    name: ClassVar[str] = "pke.private"
    form: ClassVar[Form] = Form.KEY


@dataclass(frozen=True)
class PublicKey(_Bare):
    name: ClassVar[str] = "pke.public"


@dataclass(frozen=True)
class Sealed(_Bare):
    name: ClassVar[str] = "pke.sealed"
    form: ClassVar[Form] = Form.CIPHERTEXT


@mp.simple_op("pke.keypair", effects=Effects.FRESH, reads=(), total=True)
def keypair() -> tuple[PrivateKey, PublicKey]:
    """Generates."""
    return PrivateKey(), PublicKey()


@mp.simple_op("pke.publish", effects=Effects.NONE, reads=(), total=True)
def publish(key: PrivateKey) -> PublicKey:
    """Computes the public key of a private one."""
    return PublicKey()


@mp.simple_op("pke.agree", effects=Effects.NONE, reads=(), total=True)
def agree(key: PrivateKey, other: PublicKey) -> PrivateKey:
    """Derives a key from those of two."""
    return key


@mp.simple_op("pke.encrypt", effects=Effects.FRESH, reads=(), total=True)
def encrypt(x: mp.TensorType, key: PublicKey) -> Sealed:
    """Encrypts."""
    return Sealed()


@mp.simple_op("pke.add", effects=Effects.NONE, reads=(), total=True)
def add(x: Sealed, y: Sealed) -> Sealed:
    """Adds within ciphertexts."""
    return Sealed()


@mp.simple_op("pke.decrypt", effects=Effects.NONE, reads=(), total=True)
def decrypt(x: Sealed, key: PrivateKey) -> mp.TensorType:
    """Decrypts."""
    return mp.TensorType("i64")


@mp.simple_op("pke.load", total=True)
def load() -> PrivateKey:
    """Reads a key of the party, and says nothing of it."""
    return PrivateKey()


@dataclass(frozen=True)
class Half(_Bare):
    name: ClassVar[str] = "pke.half"
    form: ClassVar[Form] = Form.SHARE


@mp.simple_op("pke.split", effects=Effects.FRESH, reads=(), total=True)
def split(x: mp.TensorType) -> tuple[Half, Half]:
    """Splits a tensor into two shares."""
    return Half(), Half()


@mp.simple_op("pke.negate", effects=Effects.NONE, reads=(), total=True)
def negate(x: Half) -> Half:
    """Computes on a share."""
    return x


@mp.simple_op("pke.sum", effects=Effects.NONE, execution_model="multi_party", reads=(), total=True)
def sum_shares(x: Half, y: Half) -> Half:
    """Computes on shares, at each party on its own ones."""
    return x


@mp.simple_op("pke.join", effects=Effects.NONE, reads=(), total=True)
def join(x: Half, y: Half) -> mp.TensorType:
    """Puts shares together."""
    return mp.TensorType("i64")


type_classes.add("pke.half", Half, provider="tests")
op_defs.add(
    "opaque.shares",
    OpDef("opaque.shares", lambda op, world: [Half()], doc="Has no feop."),
    provider="tests",
)


def run(rank, op, *args, **attrs):
    return mp.simp.pcall_static(rank, op, *args, **attrs)


def shared(x, holder=0, to=(0, 1)):
    """Split at a party, and hand a half to each of two."""
    halves = run(holder, split, x)
    return mp.pconv(
        [
            half if to_rank == holder else mp.pshfl_s(half, to_rank, [holder])
            for half, to_rank in zip(halves, to, strict=True)
        ]
    )


def send(x, frm, to):
    receivers = mp.Mask.of(to)
    return mp.pshfl_s(x, receivers, [frm] * len(receivers))
