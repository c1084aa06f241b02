"""Changed ciphertexts and keys end in an error, or in other numbers, and in nothing else."""

from __future__ import annotations

import random

import pytest
from mplang_phe import compute
from mplang_phe.types import CIPHERTEXT_CODEC, PUBLIC_KEY_CODEC, PhePublicKeyType
from phe_keys import BITS, decrypted, encrypted, key_pair

MANY = 10_000


def mutant(r, data):
    """Return bytes with some changed, at the beginning more often than elsewhere."""
    changed = bytearray(data)
    for _ in range(r.choice([1, 1, 2, 9])):
        changed[r.randrange(r.choice([2, 40, len(data)]))] = r.randrange(256)
    return bytes(changed)


def used(data):
    """Add what came as a ciphertext, and decrypt it; an error is one of ours."""
    _, public = key_pair()
    key = [public.modulus, public.base]
    try:
        (total,) = compute.run("add", {}, [*key, data, encrypted([1]).data])
        decrypted(total, (1,), size=BITS // 8)
    except ValueError:
        return False
    return True


def check(count):
    r, one = random.Random(7), encrypted([5]).data
    ran = [used(mutant(r, one)) for _ in range(count)]
    assert any(ran)  # most are numbers, of no meaning


def test_mutated_ciphertexts_do_no_harm():
    check(60)


@pytest.mark.long("ten thousand mutated ciphertexts")
@pytest.mark.timeout(900)
def test_ten_thousand_mutated_ciphertexts_do_no_harm():
    check(MANY)


@pytest.mark.parametrize(
    "data", [bytes(BITS // 4), b"\xff" * (BITS // 4), bytes(BITS // 4 - 1) + b"\x01"]
)
def test_numbers_at_the_ends_are_no_ciphertexts_or_no_harm(data):
    assert used(data) == (data[-1] == 1)


def test_a_ciphertext_of_another_size_is_refused():
    made = encrypted([1, 2])
    for buffers in ([made.data[:-1]], [made.data + b"x"], [made.data, b""], []):
        with pytest.raises(ValueError, match="bytes|buffers"):
            CIPHERTEXT_CODEC.decode(made.type, {}, buffers)
    with pytest.raises(ValueError, match="header is empty"):
        CIPHERTEXT_CODEC.decode(made.type, {"x": 1}, [made.data])


def keys():
    _, public = key_pair()
    n, h = public.modulus, public.base
    one = (1).to_bytes(len(h), "big")
    square = (int.from_bytes(n, "big") ** 2).to_bytes(len(h), "big")
    return {
        "even": (n[:-1] + bytes([n[-1] & 0xFE]), h), "short": (b"\0" + n[1:], h),
        "cut": (n[:-1], h), "no base": (n, b""), "a base of 1": (n, one),
        "a base of 0": (n, bytes(len(h))), "a base too large": (n, square),
    }  # fmt: skip


@pytest.mark.parametrize("parts", keys().values(), ids=keys())
def test_what_is_no_public_key_is_refused(parts):
    with pytest.raises(ValueError, match="key|modulus"):
        PUBLIC_KEY_CODEC.decode(PhePublicKeyType(BITS), {}, list(parts))


def test_a_modulus_that_is_no_product_of_primes_does_no_harm():
    """Who sends it harms nobody but those who encrypt to it, as with any key of its own."""
    n = (1 << (BITS - 1)) + 3**800 * 2 + 1
    base = (12345).to_bytes(BITS // 4, "big")
    made = compute.run("encrypt", {}, [n.to_bytes(BITS // 8, "big"), base, bytes(8)])
    assert len(made[0]) == BITS // 4
