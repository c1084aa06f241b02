"""Changed ciphertexts, keys and types end in an error, or in other numbers, and in nothing else."""

from __future__ import annotations

import random

import numpy as np
import pytest
from he_values import FLOATS, SMALL, decrypted, encrypted, keys
from mplang_he import compute
from mplang_he.types import (
    CIPHERTEXT_CODEC,
    KEY_CODEC,
    EncryptedColumns,
    HeCiphertextType,
    HePublicKeyType,
)

from mplang_core.ext import KernelError

MANY = 10_000
X = np.array([[3, -4], [5, 0]])


def mutant(r, data):
    """Return bytes with some changed, at the beginning more often than elsewhere, or cut."""
    changed = bytearray(data)
    for _ in range(r.choice([1, 1, 2, 9])):
        changed[r.randrange(r.choice([17, 200, len(data)]))] = r.randrange(256)
    return bytes(changed[: r.randrange(len(data))] if r.random() < 0.1 else changed)


def used(parameters, parts):
    """Load what came as ciphertexts, and decrypt it; an error is one of ours."""
    kind = encrypted(parameters, X[:, :1], -9, 9).type
    try:
        decrypted(EncryptedColumns(kind, tuple(parts)))
    except ValueError:
        return False
    return True


def encrypts(parameters, data):
    about = {"parameters": parameters.params(), "rows": 1}
    try:
        compute.run("encrypt", about, [data, bytes(8)])
    except ValueError:
        return False
    return True


def check(count):
    r = random.Random(7)
    for parameters in (SMALL, FLOATS):
        (one,) = encrypted(parameters, X[:, :1], -9, 9).parts
        key = keys(parameters)[1].data
        assert used(parameters, [one])
        for _ in range(count // 4):
            used(parameters, [mutant(r, one)])
            encrypts(parameters, mutant(r, key))


def test_mutated_ciphertexts_and_keys_do_no_harm():
    check(200)


@pytest.mark.long("ten thousand mutated ciphertexts and keys")
@pytest.mark.timeout(1800)
def test_ten_thousand_mutated_ciphertexts_and_keys_do_no_harm():
    check(MANY)


def test_a_ciphertext_of_other_parameters_is_refused():
    other = encrypted(FLOATS, X[:, :1] / 9, -1, 1).parts
    assert not used(SMALL, other)
    assert not used(FLOATS, encrypted(SMALL, X[:, :1], -9, 9).parts)


def test_buffers_of_other_numbers_and_sizes_are_refused():
    made = encrypted(SMALL, X, -9, 9)
    for buffers in ([], [b"x"], [*made.parts, b"x"], [b"", made.parts[0]]):
        with pytest.raises(ValueError, match="buffer"):
            CIPHERTEXT_CODEC.decode(made.type, {}, buffers)
    with pytest.raises(ValueError, match="header is empty"):
        CIPHERTEXT_CODEC.decode(made.type, {"x": 1}, made.parts)
    with pytest.raises(ValueError, match="bytes"):
        KEY_CODEC.decode(HePublicKeyType(SMALL), {}, [bytes(10**8)])


TYPES = {
    "few bits of security": ("bfv", 4096, (60, 60, 60), 20),
    "a scheme": ("bgv", 4096, (36, 37), 20),
    "a degree": ("bfv", 5000, (36, 37), 20), "no primes": ("bfv", 4096, (), 20),
    "a plain modulus": ("bfv", 4096, (36, 36, 37), 61), "texts": ("bfv", "4096", (36, 37), 20),
}  # fmt: skip


@pytest.mark.parametrize("params", TYPES.values(), ids=TYPES)
def test_wrong_parameters_are_refused(params):
    with pytest.raises((ValueError, TypeError)):
        HePublicKeyType.from_params(params)


def test_wrong_bounds_of_a_type_are_refused():
    kind = encrypted(SMALL, X, -9, 9).type
    *params, low, high, error = kind.params()
    for wrong in (
        ("1.50", high, error),
        ("nan", high, error),
        (high, low, error),
        (low, high, "-1"),
    ):
        with pytest.raises(ValueError, match="bound|range"):
            HeCiphertextType.from_params([*params, *wrong])


def test_the_service_refuses_what_is_none():
    from mplang_he.service import HeService

    for method, args in (("x", {}), ("run", {"parameters": [1, 2, 3, 4]}), ("keygen", {})):
        with pytest.raises(KernelError, match=r"he\."):
            HeService().call("run", method, args, [])
