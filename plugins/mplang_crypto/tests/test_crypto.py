"""Cryptography: published vectors, round trips, and keys that cannot leave their party."""

from __future__ import annotations

import copy
import doctest
import hashlib
import inspect
import pickle
import subprocess
import sys
from dataclasses import replace

import ml_dtypes
import mplang_crypto
import msgspec
import numpy as np
import pytest
from mplang_crypto import (
    CiphertextType,
    PrivateKeyType,
    PublicKeyType,
    SymmetricKeyType,
    agree,
    decrypt,
    encrypt,
    hash as hash_op,
    kernels,
    keygen,
    keypair,
    primitives,
)
from mplang_crypto.types import Ciphertext, PrivateKey, PublicKey, SymmetricKey

import mplang_core as mp
from mplang_core.errors import (
    DisclosureError,
    FeCapabilityError,
    KernelError,
    ParseError,
    PartyError,
    TraceError,
    VerifyError,
    WireError,
)
from mplang_core.runtime import decode, encode
from mplang_core.types import TensorType

OPS = [keygen, keypair, agree, encrypt, decrypt, hash_op]
DTYPES = [d for d in mp.DType if d is not mp.DType.BF16]
PAIR = TensorType("f32", (2,))
SEALED = CiphertextType(PAIR)


@pytest.fixture
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(2), timeout=10.0) as made:
        yield made


@pytest.fixture(params=["standard", "launch"])
def mode(request):
    return request.param


def at(party, op, *args, **attrs):
    return mp.device(party)(op)(*args, **attrs)


def agreed(info0="test", info1="test"):
    """Exchange public keys between two parties; return the key of each."""
    sk0, pk0 = at("P0", keypair)
    sk1, pk1 = at("P1", keypair)
    return (
        at("P0", agree, sk0, mp.put("P0", pk1), info=info0),
        at("P1", agree, sk1, mp.put("P1", pk0), info=info1),
    )


def send(x, **infos):
    k0, k1 = agreed(**infos)
    sealed = at("P0", encrypt, mp.put("P0", x), k0)
    return at("P1", decrypt, mp.put("P1", sealed), k1)


def trace(fn):
    return mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), fn)


class Ctx:
    """Context of the kernel of ``encrypt``."""

    def __init__(self, kind):
        self.step = self
        self.checks = (kind,)


def sealed_pair(key, x=(1, 2)):
    return kernels.encrypt(Ctx(SEALED), np.float32(x), key)


def new_key():
    return kernels.keygen(None)


# -- published vectors


@pytest.mark.parametrize(
    ("key", "nonce", "plain", "associated", "sealed"),
    [  # McGrew and Viega, The Galois/Counter Mode of Operation (GCM), test cases 13, 14, 16
        ("00" * 32, "00" * 12, "", "", "530f8afbc74536b9a963b4f1c4cb738b"),
        (
            "00" * 32,
            "00" * 12,
            "00" * 16,
            "",
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
        ),
        (
            "feffe9928665731c6d6a8f9467308308" * 2,
            "cafebabefacedbaddecaf888",
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
            "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
            "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
            "76fc6ece0f4e1768cddf8853bb2d551b",
        ),
    ],
)
def test_aes_256_gcm_vectors(key, nonce, plain, associated, sealed):
    args = [bytes.fromhex(text) for text in (key, nonce, plain, associated)]
    assert primitives.seal(*args).hex() == sealed
    args[2] = bytes.fromhex(sealed)
    assert primitives.open_sealed(*args).hex() == plain


ALICE = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
ALICE_PUBLIC = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
BOB = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
BOB_PUBLIC = bytes.fromhex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")


def test_x25519_vectors():
    """RFC 7748, sections 5.2 and 6.1."""
    assert primitives.x25519_public(ALICE) == ALICE_PUBLIC
    assert primitives.x25519_public(BOB) == BOB_PUBLIC
    shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    assert primitives.x25519(ALICE, BOB_PUBLIC).hex() == shared
    assert primitives.x25519(BOB, ALICE_PUBLIC).hex() == shared
    scalar = "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"
    point = "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"
    result = "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
    assert primitives.x25519(bytes.fromhex(scalar), bytes.fromhex(point)).hex() == result


def test_hkdf_sha256_vectors():
    """RFC 5869, test cases 1 and 3."""
    secret = b"\x0b" * 22
    found = primitives.hkdf(secret, bytes(range(0xF0, 0xFA)), salt=bytes(range(13)), length=42)
    assert found.hex() == (
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    )
    assert primitives.hkdf(secret, b"", length=42).hex() == (
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
    )


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [  # of "abc": FIPS 180-4, FIPS 202 (NIST's example values), RFC 7693 appendix A
        ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "sha512",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
        ("sha3_256", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        (
            "blake2b",
            "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
            "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923",
        ),
    ],
)
def test_hash_vectors(algorithm, expected):
    assert primitives.digest(algorithm, [b"a", memoryview(b"bc")]).hex() == expected


def test_agreed_keys_are_those_of_the_description():
    """A second implementation derives the same key: HMAC by hand, from the RFC's shared secret."""
    import hmac

    shared = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
    info = b"mplang crypto.agree 1" + ALICE_PUBLIC + BOB_PUBLIC + "Löhne".encode()
    pseudorandom = hmac.digest(bytes(32), shared, "sha256")
    expected = hmac.digest(pseudorandom, info + b"\1", "sha256")
    for mine, other in ((ALICE, BOB_PUBLIC), (BOB, ALICE_PUBLIC)):
        found = kernels.agree(None, PrivateKey(mine), PublicKey(other), info="Löhne")
        assert found.secret == expected


# -- what goes in comes out


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16], ids=str)
def test_every_tensor_comes_back(dtype, shape):
    numpy = dtype.numpy if isinstance(dtype, mp.DType) else dtype
    x = (np.random.default_rng(0).normal(size=shape) * 9).astype(numpy)
    kind = CiphertextType(TensorType.of(x))
    key = new_key()
    again = kernels.decrypt(None, kernels.encrypt(Ctx(kind), x, key), key)
    assert again.dtype == x.dtype
    assert again.shape == x.shape
    assert again.tobytes() == x.tobytes()


def test_a_value_reaches_the_other_party(sim, mode):
    nest = [
        np.ones(shape, dtype)
        for shape in [(), (0,), (2, 3)]
        for dtype in [*(d.numpy for d in DTYPES), ml_dtypes.bfloat16]
    ]
    results = mp.fetch(sim, mp.evaluate(sim, lambda *xs: [send(x) for x in xs], *nest, mode=mode))
    for x, found in zip(nest, results, strict=True):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, x)


def test_strided_arrays_and_special_floats_come_back():
    key = new_key()
    x = np.array([[0.0, -0.0, np.nan], [np.inf, -np.inf, 1e-320]]).T
    kind = CiphertextType(TensorType.of(x))
    again = kernels.decrypt(None, kernels.encrypt(Ctx(kind), x, key), key)
    assert again.tobytes() == x.tobytes()


def test_public_keys_and_ciphertexts_can_be_encrypted(sim, mode):
    def program():
        key = at("P0", keygen)
        _, public = at("P0", keypair)
        twice = at("P0", encrypt, at("P0", encrypt, public, key), key)
        return public, at("P0", decrypt, at("P0", decrypt, twice, key), key)

    before, after = mp.fetch(sim, mp.evaluate(sim, program, mode=mode))
    assert before == after


def test_a_share_can_be_encrypted(sim):
    def program():
        share = mp.seal(np.float32([1, 2]))
        key = mp.invoke(keygen)
        sealed = mp.invoke(encrypt, share, key, rmask=share.pmask)
        return mp.invoke(decrypt, sealed, key), share

    after, before = mp.evaluate(sim, program)
    assert after.base_type == before.base_type
    assert after.value.values == before.value.values


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


# -- hashes


@pytest.mark.parametrize("algorithm", primitives.DIGEST_BYTES)
def test_the_digest_is_of_type_and_elements(sim, mode, algorithm):
    x = np.arange(6, dtype=np.int32).reshape(2, 3).T
    result = mp.evaluate(sim, lambda x: mp.invoke(hash_op, x, algorithm=algorithm), x, mode=mode)
    expected = hashlib.new(algorithm, b"i32[3, 2]\n" + np.ascontiguousarray(x).tobytes()).digest()
    assert result.base_type == TensorType("u8", (len(expected),))
    assert [bytes(found) for found in mp.fetch(sim, result)] == [expected, expected]


def test_other_types_shapes_and_data_have_other_digests():
    values = [
        np.zeros(shape, dtype)
        for shape in [(), (0,), (0, 1), (4,), (2, 2), (1, 4)]
        for dtype in [*(d.numpy for d in DTYPES), ml_dtypes.bfloat16]
    ]
    values += [np.array(-0.0), np.ones(4)]
    digests = {bytes(kernels.hash(None, x, algorithm="sha256")) for x in values}
    assert len(digests) == len(values)


def test_the_same_tensor_has_the_same_digest_however_it_lies_in_memory():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    digests = {
        bytes(kernels.hash(None, y, algorithm="sha256"))
        for y in (x, np.asfortranarray(x), x[::-1][::-1], x.astype(">f4"))
    }
    assert len(digests) == 1


# -- what was changed is refused


def flipped(data, at):
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "change",
    [
        lambda ct: replace(ct, data=flipped(ct.data, 0)),
        lambda ct: replace(ct, data=flipped(ct.data, -1)),
        lambda ct: replace(ct, data=ct.data[:-1]),
        lambda ct: replace(ct, data=ct.data + b"\0"),
        lambda ct: replace(ct, data=ct.data[-16:]),
        lambda ct: replace(ct, data=bytes(16)),
        lambda ct: replace(ct, nonce=flipped(ct.nonce, 3)),
        lambda ct: replace(ct, type=CiphertextType(TensorType("i32", (2,)))),
        lambda ct: replace(ct, type=CiphertextType(TensorType("f32", (1, 2)))),
        lambda ct: replace(ct, type=CiphertextType(ct.type)),
    ],
)
def test_a_changed_ciphertext_is_refused(change):
    key = new_key()
    ct = sealed_pair(key)
    np.testing.assert_array_equal(kernels.decrypt(None, ct, key), [1, 2])
    with pytest.raises(KernelError, match="the ciphertext is not authentic"):
        kernels.decrypt(None, change(ct), key)


def test_every_bit_counts():
    key = new_key()
    ct = sealed_pair(key)
    for i in range(len(ct.data) * 8):
        data = bytearray(ct.data)
        data[i // 8] ^= 1 << i % 8
        with pytest.raises(KernelError):
            kernels.decrypt(None, replace(ct, data=bytes(data)), key)


def test_another_key_is_refused_and_the_error_tells_nothing_secret(sim, mode):
    with pytest.raises(PartyError, match="crypto.decrypt .*the ciphertext is not authent") as error:
        mp.evaluate(sim, lambda: send([1, 2], info1="another purpose"), mode=mode)
    assert error.value.rank == 1
    assert "InvalidTag" not in str(error.value)


@pytest.mark.parametrize(
    "plain",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([1, 2, 3]),
        msgspec.msgpack.encode([{}, []]),
        msgspec.msgpack.encode([{"dtype": "f32", "shape": [2]}, ["12345678"]]),
        msgspec.msgpack.encode([{"dtype": "f32", "shape": [3]}, [bytes(12)]]),
        msgspec.msgpack.encode([{"dtype": "f32", "shape": [2]}, [bytes(8)]]) + b"\0",
        msgspec.msgpack.encode([{"dtype": "f32", "shape": [2]}, [bytes(9)]]),
    ],
)
def test_one_who_has_the_key_cannot_pass_off_another_value(plain):
    key, nonce = new_key(), bytes(12)
    data = primitives.seal(key.secret, nonce, plain, str(SEALED).encode())
    with pytest.raises(KernelError, match=r"^what was encrypted is no f32\[2\]$"):
        kernels.decrypt(None, Ciphertext(SEALED, nonce, data), key)


LOW_ORDER = [
    bytes(32),
    b"\1" + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    bytes.fromhex("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    bytes.fromhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
]


@pytest.mark.parametrize("point", LOW_ORDER, ids=lambda point: point.hex()[:4])
def test_points_of_low_order_are_refused(point):
    with pytest.raises(KernelError, match="low order"):
        kernels.agree(None, PrivateKey(ALICE), PublicKey(point), info="")


def test_a_value_that_is_too_large_is_refused():
    x = np.zeros(1 << 32, np.uint8)  # pages that nobody touches
    with pytest.raises(KernelError, match="split it"):
        kernels.encrypt(Ctx(CiphertextType(TensorType.of(x))), x, new_key())


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
    with pytest.raises(DisclosureError, match="is a ciphertext"):
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


# -- programs and bytes


def test_programs_come_back_from_text():
    def program():
        key, (private, public) = at("P0", keygen), at("P0", keypair)
        twice = at("P0", encrypt, at("P0", encrypt, mp.put("P0", np.float32([1, 2])), key), key)
        return twice, private, at("P0", agree, private, public, info='"ü\n"')

    made = trace(program)
    text = made.compiler_ir()
    again = mp.parse(text)
    mp.verify(again)
    assert again.digest == made.program.digest
    for kind in ("ciphertext<crypto.ciphertext<f32[2]>>", "private_key<>", "public_key<>"):
        assert f"crypto.{kind}" in text


@pytest.mark.parametrize(
    "kind",
    [
        "crypto.ciphertext<>",
        'crypto.ciphertext<"f32">',
        "crypto.ciphertext<f32[2], f32[2]>",
        "crypto.symmetric_key<1>",
        "crypto.public_key<f32[2]>",
    ],
)
def test_what_is_no_type_is_not_read(kind):
    with pytest.raises(ParseError):
        mp.parse(f'program "p" on {{0}} (%0: {kind}@{{0}}) {{ return }}')


def test_what_may_leave_comes_back_from_bytes():
    _, public = kernels.keypair(None)
    assert decode(PublicKeyType(), *encode(PublicKeyType(), public)) == public
    key = new_key()
    ct = sealed_pair(key)
    header, buffers = encode(SEALED, ct)
    again = decode(SEALED, header, [memoryview(buffer) for buffer in buffers])
    assert again == ct
    np.testing.assert_array_equal(kernels.decrypt(None, again, key), [1, 2])


@pytest.mark.parametrize(
    ("kind", "header", "buffers"),
    [
        (PublicKeyType(), {}, []),
        (PublicKeyType(), {}, [bytes(31)]),
        (PublicKeyType(), {}, [bytes(33)]),
        (PublicKeyType(), {}, [bytes(32), b""]),
        (PublicKeyType(), {}, [32]),
        (PublicKeyType(), {}, ["x" * 32]),
        (PublicKeyType(), {}, [None]),
        (PublicKeyType(), {}, None),
        (PublicKeyType(), {"x": 1}, [bytes(32)]),
        (SEALED, {}, []),
        (SEALED, {}, [bytes(28)]),
        (SEALED, {}, [bytes(12), bytes(15)]),
        (SEALED, {}, [bytes(11), bytes(16)]),
        (SEALED, {}, [bytes(13), bytes(16)]),
        (SEALED, {}, [bytes(12), bytes(16), b""]),
        (SEALED, {}, [12, 16]),
        (SEALED, {"type": "f32[2]"}, [bytes(12), bytes(16)]),
    ],
)
def test_what_is_no_such_value_is_refused(kind, header, buffers):
    with pytest.raises(WireError, match="what came is no crypto"):
        decode(kind, header, buffers)


def test_values_of_another_type_are_not_written():
    ct = sealed_pair(new_key())
    for kind, value in [
        (CiphertextType(TensorType("i32", (2,))), ct),
        (SEALED, b"bytes"),
        (PublicKeyType(), PrivateKey(bytes(32))),
        (PublicKeyType(), bytes(32)),
    ]:
        with pytest.raises(WireError, match="cannot write"):
            encode(kind, value)


# -- refusals while tracing


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda: at("P0", encrypt, mp.put("P0", 1), at("P0", keypair)[0]), "SymmetricKeyType"),
        (lambda: at("P0", decrypt, mp.put("P0", 1), at("P0", keygen)), "CiphertextType"),
        (lambda: at("P0", agree, *reversed(at("P0", keypair)), info=""), "PrivateKeyType"),
        (lambda: at("P0", agree, *at("P0", keypair)), "info"),
        (lambda: at("P0", agree, *at("P0", keypair), info=1), "expected str"),
        (lambda: at("P0", agree, *at("P0", keypair), info="\ud800"), "surrogate"),
        (lambda: at("P0", hash_op, at("P0", keygen)), "TensorType"),
        (lambda: at("P0", hash_op, mp.put("P0", 1), algorithm="md5"), "sha256, sha512.*'md5'"),
    ],
)
def test_wrong_operands_are_refused_while_tracing(program, message):
    with pytest.raises(mp.MPLangError, match=message) as error:
        trace(program)
    assert "test_crypto.py:" in str(error.value)


def test_the_ops_are_for_one_party():
    with pytest.raises(FeCapabilityError, match=r"one party.*P0, P1"):
        trace(lambda: at("SP0", keygen))


def test_moving_a_ciphertext_is_said():
    def program():
        k0, k1 = agreed()
        return at("P1", decrypt, at("P0", encrypt, mp.put("P0", 1), k0), k1)

    with pytest.raises(DisclosureError, match=r"mp.put\('P1', x\)"):
        trace(program)


# -- the package


def test_each_op_describes_itself():
    by_name = {meta.name: meta for meta in mp.registry.list_ops("crypto")}
    assert sorted(by_name) == sorted(op.__feop_meta__.name for op in OPS)
    for op in OPS:
        meta = op.__feop_meta__
        assert meta.execution_model == "single_rank"
        assert meta.version
        assert meta.outputs
        assert len(meta.inputs) == len(
            [p for p in inspect.signature(op).parameters.values() if p.kind is not p.KEYWORD_ONLY]
        )
        assert all(part in op.__doc__ for part in ("Returns:", "Example:"))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.__name__)
def test_the_example_of_each_op_runs(op):
    (found,) = doctest.DocTestFinder().find(inspect.unwrap(op), op.__name__, globs={})
    assert found.examples
    assert doctest.DocTestRunner().run(found).failed == 0


def test_nothing_heavy_is_loaded_before_an_op_runs():
    text = trace(lambda: send([1, 2])).compiler_ir()
    source = (
        "import sys, mplang_core as mp, mplang_crypto.plugin\n"
        "[op.name for op in mp.registry.list_ops('crypto')]\n"
        f"mp.verify(mp.parse({text!r}))\n"
        "print([m for m in ('cryptography', 'jax', 'spu') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_public_names_are_there():
    assert all(hasattr(mplang_crypto, name) for name in mplang_crypto.__all__)
