"""Keys: each party has its own, none leaves it, and no key or nonce comes twice."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from crypto_programs import PAIR, agreed, at, new_key, sealed_pair, send, trace
from mplang_crypto import (
    CiphertextType,
    PrivateKeyType,
    SymmetricKeyType,
    decrypt,
    encrypt,
    kernels,
    keygen,
    keypair,
)
from mplang_crypto.types import PrivateKey, PublicKey, SymmetricKey

import mplang_core as mp
from mplang_core.errors import DisclosureError, ParseError, TraceError, VerifyError, WireError
from mplang_core.runtime import decode, encode

# -- what goes in comes out


def test_keys_go_through_control_flow(sim, mode):
    """A loop may carry a key, which stays at its party."""

    def program(n):
        key = mp.invoke(keygen)
        again = lambda i, key, ct: mp.invoke(encrypt, mp.invoke(decrypt, ct, key), key)  # noqa: E731
        _, key, ct = mp.while_loop(
            lambda state: state[0] < n,
            lambda state: (state[0] + 1, state[1], again(*state)),
            (0, key, mp.invoke(encrypt, mp.constant([5, 6]), key)),
        )
        return mp.invoke(decrypt, ct, key)

    for found in mp.fetch(sim, mp.evaluate(sim, program, 3, mode=mode)):
        np.testing.assert_array_equal(found, [5, 6])


def test_each_party_makes_its_own_key(sim, mode):
    keys = mp.evaluate(sim, lambda: mp.invoke(keygen), mode=mode)
    assert keys.pmask == mp.Mask(0b11)
    assert len({key.secret for key in keys.value.values}) == 2


def test_agreement_gives_both_the_same_key_and_every_run_another(sim, mode):
    seen = set()
    for _ in range(2):
        k0, k1 = mp.evaluate(sim, agreed, mode=mode)
        mine, other = k0.value.values[0], k1.value.values[1]
        assert mine.secret == other.secret
        assert k0.value.values[1] is None
        seen.add(mine.secret)
    assert len(seen) == 2


# -- keys stay where they are

KEYS = {
    "symmetric": lambda: at("P0", keygen),
    "private": lambda: at("P0", keypair)[0],
    "agreed": lambda: agreed()[0],
}


@pytest.mark.parametrize("make", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize(
    "move",
    [
        lambda key: mp.put("P1", key),
        lambda key: mp.reveal(key),
        lambda key: mp.reveal(key, to="P1"),
        lambda key: mp.pshfl_s(key, [1], [0]),
        lambda key: mp.pshfl_s(key, [0], [0]),
        lambda key: mp.pshfl(key, mp.constant(0)),
    ],
)
def test_a_key_is_not_moved(make, move):
    with pytest.raises(TraceError, match="a key stays with its party"):
        trace(lambda: move(make()))


def test_a_key_that_is_used_elsewhere_is_told_where_it_can_be_used():
    def program():
        key = at("P0", keygen)
        return at("P1", encrypt, mp.put("P1", 1), key)

    with pytest.raises(DisclosureError, match="a key stays with its party; run what uses it on P0"):
        trace(program)


@pytest.mark.parametrize("make", KEYS.values(), ids=KEYS)
def test_a_key_is_not_encrypted_shared_or_fetched(sim, mode, make):
    with pytest.raises(TraceError, match="a key stays with its party"):
        trace(lambda: at("P0", encrypt, make(), at("P0", keygen)))
    with pytest.raises(TraceError, match="SPU takes tensors"):
        trace(lambda: mp.seal(make()))
    with pytest.raises(DisclosureError, match="is a key"):
        mp.fetch(sim, mp.evaluate(sim, make, mode=mode))


def test_a_ciphertext_is_not_fetched(sim):
    ct = mp.evaluate(sim, lambda: mp.invoke(encrypt, mp.constant(1), mp.invoke(keygen)))
    with pytest.raises(DisclosureError, match="is a ciphertext.*Instead, return the plain result"):
        mp.fetch(sim, ct)


@pytest.mark.parametrize("kind", [SymmetricKeyType(), PrivateKeyType()], ids=str)
def test_a_worker_refuses_a_program_that_moves_a_key(kind):
    text = (
        f'program "p" on {{0, 1}} (%0: {kind}@{{0}}) {{ '
        f"%1 = simp.shuffle_static(%0) {{routing = [[1, 0]]}} : {kind}@{{1}} return %1 }}"
    )
    with pytest.raises(VerifyError, match="a key stays with its party"):
        mp.verify(mp.parse(text))
    with pytest.raises(ParseError, match="a key stays with its party"):
        mp.parse(f'program "p" on {{0}} (%0: crypto.ciphertext<{kind}>@{{0}}) {{ return }}')
    with pytest.raises(WireError, match="no codec"):
        encode(kind, kind.value(bytes(32)))
    with pytest.raises(WireError, match="no codec"):
        decode(kind, {}, [bytes(32)])


@pytest.mark.parametrize("key", [SymmetricKey(b"k" * 32), PrivateKey(b"k" * 32)], ids=repr)
def test_a_key_is_neither_pickled_nor_copied(key):
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="stays with its party"):
            leak(key)


def test_no_text_of_a_value_shows_its_bytes():
    secret = b"SECRETsecretSECRETsecretSECRETse"
    ct = replace(sealed_pair(new_key()), nonce=secret[:12], data=secret)
    shown = [SymmetricKey(secret), PrivateKey(secret), PublicKey(secret), ct]
    texts = [f"{value} {value!r}" for value in shown]
    texts.append(str([*shown, CiphertextType(PAIR).mismatch(shown[0])]))
    for text in texts:
        assert "secret" not in text.replace("type", "")
        assert "SECRET" not in text
        assert secret.hex()[:6] not in text
    assert repr(shown[0]) == "SymmetricKey()"


def test_keys_are_not_in_a_program():
    """No randomness is compiled in: tracing twice gives the same program."""
    assert trace(lambda: send(1)).program.digest == trace(lambda: send(1)).program.digest


# -- nonces


def test_no_nonce_is_used_twice():
    key = new_key()
    made = [sealed_pair(key) for _ in range(20_000)]
    assert len({ct.nonce for ct in made}) == len(made)
    assert len({ct.data for ct in made}) == len(made)
    ones = np.unpackbits(np.frombuffer(b"".join(ct.nonce for ct in made), np.uint8))
    assert ones.mean() == pytest.approx(0.5, abs=0.005)


def test_keys_do_not_repeat():
    keys = {new_key().secret for _ in range(1000)}
    assert len({len(key) for key in keys}) == 1
    assert len(keys) == 1000
    assert len({kernels.keypair(None)[1] for _ in range(100)}) == 100
