"""Published vectors of ciphers, key agreement, derivation and hashes."""

from __future__ import annotations

import pytest
from crypto_programs import ALICE, ALICE_PUBLIC, BOB, BOB_PUBLIC
from mplang_crypto import kernels, primitives
from mplang_crypto.types import PrivateKey, PublicKey


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
