"""A key that is one of several: the one from outside is not forgotten beside one that was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from disclosure_rows import BOOL, SCALAR, at, moves, trace
from public_keys import PrivateKey, PublicKey, Sealed, encrypt, keypair, publish, run, send

import mplang_core as mp
from mplang_core import BaseType, Form, analysis
from mplang_core.ext import Effects, OpDef, op_defs


@dataclass(frozen=True)
class Wrapped(BaseType):
    """A ciphertext of a key, or of a public one."""

    name: ClassVar[str] = "pke.wrapped"
    form: ClassVar[Form] = Form.CIPHERTEXT

    inner: BaseType

    def params(self):
        return (self.inner,)

    @classmethod
    def from_params(cls, params):
        return cls(*params)


@mp.simple_op("pke.pick", effects=Effects.NONE, reads=(), total=True)
def pick(a: PublicKey, b: PublicKey, which: mp.TensorType) -> PublicKey:
    """Chooses one of two public keys."""
    return PublicKey()


@mp.simple_op("pke.encrypt_for_two", effects=Effects.FRESH, reads=(), total=True)
def encrypt_for_two(x: mp.TensorType, a: PublicKey, b: PublicKey) -> Sealed:
    """Encrypts for two readers."""
    return Sealed()


@mp.simple_op("pke.wrap", effects=Effects.FRESH, reads=(), total=True)
def wrap(content: BaseType, key: PublicKey) -> Wrapped:
    """Encrypts a key."""
    return Wrapped(content)


@mp.simple_op("pke.wrap_for_itself", effects=Effects.FRESH, reads=(), total=True)
def wrap_for_itself(content: BaseType, key: PrivateKey) -> Wrapped:
    """Encrypts a key under one's own."""
    return Wrapped(content)


@mp.simple_op("pke.unwrap", effects=Effects.NONE, reads=(), total=True)
def unwrap(x: Wrapped, key: PrivateKey) -> BaseType:
    """Decrypts a key."""
    return x.inner


@mp.simple_op("pke.export", effects=Effects.NONE, reads=(), total=True)
def export(key: PublicKey) -> mp.TensorType:
    """Writes a public key as bytes."""
    return SCALAR


@mp.simple_op("pke.read", effects=Effects.NONE, reads=(), total=True)
def read(x: mp.TensorType) -> PublicKey:
    """Reads a public key from bytes."""
    return PublicKey()


@mp.simple_op(
    "pke.choose", effects=Effects.NONE, execution_model="multi_party", reads=(), total=True
)
def choose(key: PublicKey) -> PublicKey:
    """Parties agree on one of their public keys."""
    return PublicKey()


op_defs.add(
    "opaque.relay",
    OpDef("opaque.relay", lambda op, world: [PublicKey()], doc="Has no feop."),
    provider="tests",
)


def made_and_brought(brought):
    """Return a public key that party 1 made, and one that party 2 brought, at party 0."""
    _, made = run(1, keypair)
    return send(made, 1, 0), send(brought, 2, 0)


def by_condition(brought, x, flag):
    keys = made_and_brought(brought)
    key = mp.uniform_cond(flag, lambda a, b: a, lambda a, b: b, *keys)
    return run(0, encrypt, x, key)


def by_loop(brought, x, flag):
    state = flag, *made_and_brought(brought)
    _, key, _ = mp.while_loop(lambda s: s[0], lambda s: (s[0], s[2], s[2]), state)
    return run(0, encrypt, x, key)


def by_index(brought, x, flag):
    _, made = run(1, keypair)
    index = run(0, lambda x: x * 0, x)
    return run(0, encrypt, x, mp.pshfl(mp.pconv([made, brought]), index))


def by_an_op(brought, x, flag):
    return run(0, encrypt, x, run(0, pick, *made_and_brought(brought), x))


def for_two(brought, x, flag):
    return run(0, encrypt_for_two, x, *made_and_brought(brought))


def by_bytes(brought, x, flag):
    made, other = made_and_brought(brought)
    numbers = run(0, export, made), run(0, export, other)
    key = run(0, read, run(0, lambda a, b: a + b * 0, *numbers))
    return run(0, encrypt, x, key)


PUT = {rank: {rank: analysis.own(rank, "put")} for rank in range(3)}
PUBLIC = dict.fromkeys(range(3), analysis.PUBLIC)


@pytest.mark.needs("jax")
@pytest.mark.parametrize("sealed", [by_condition, by_loop, by_index, by_an_op, for_two, by_bytes])
def test_a_public_key_that_was_brought_is_not_forgotten(sealed):
    types = at(PublicKey(), 2), at(SCALAR, 0), at(BOOL, 0, 1, 2)
    labels = [PUT[2], PUT[0], PUBLIC]
    found = moves(lambda *args: send(sealed(*args), 0, 2), *types, labels=labels)
    assert found == [(0, 2, (0, 2), (0,))]


def test_keys_that_were_stored_under_one_name():
    pytest.importorskip("mplang_data")

    def first(brought):
        _, made = run(0, keypair)
        mp.store((made, send(brought, 2, 0)), "keys")

    def second(x):
        _, key = mp.load("P0", "keys", type=(PublicKey(), PublicKey()))
        return send(run(0, encrypt, x, key), 0, 2)

    before = analysis.follow(trace(first, at(PublicKey(), 2), parties=3).program, [PUT[2]])
    program = trace(second, at(SCALAR, 0), parties=3).program
    found = analysis.follow(program, [PUT[0]], before.held, stored=before.stores)
    rows = [row for row in found.disclosure.rows if row.what == "move"]
    assert [row.discloses for row in rows] == [(0,)]


@pytest.mark.parametrize("op", ["pke.choose", "opaque.relay"])
def test_parties_that_run_an_op_together_may_bring_keys_of_their_own(op):
    def program(x):
        _, public = run(1, keypair)
        everywhere = send(public, 1, [0, 1, 2])
        pfunc = mp.PFunction(op, (PublicKey(),), (PublicKey(),), {})
        (key,) = mp.peval(pfunc, [everywhere], mp.Mask.of((0, 1, 2)))
        return send(run(0, encrypt, x, key), 0, 2)

    assert moves(program, at(SCALAR, 0), labels=[PUT[0]])[-1][3][0] == 0


def test_who_hands_on_an_encrypted_key_may_encrypt_its_own_instead():
    def program(x):
        private, public = run(0, keypair)
        theirs, _ = run(2, keypair)
        sealed = run(2, wrap, theirs, send(public, 0, 2))
        key = run(0, unwrap, send(send(sealed, 2, 1), 1, 0), private)
        return send(run(0, encrypt, x, run(0, publish, key)), 0, 1)

    assert moves(program, at(SCALAR, 0), labels=[PUT[0]])[-1] == (0, 1, (0,), (0,))


def test_a_public_key_that_is_encrypted_has_no_part_in_who_decrypts_it():
    def program(brought):
        made, _ = run(0, keypair)
        return send(run(0, wrap_for_itself, brought, made), 0, 2)

    assert moves(program, at(PublicKey(), 0), labels=[PUT[0]]) == [(0, 2, (0,), ())]
