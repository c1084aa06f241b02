"""Changed ciphertexts, keys and types end in an error, or in other numbers, and in nothing else."""

from __future__ import annotations

import random

import numpy as np
import pytest
from he_values import FLOATS, SMALL, decrypted, encrypted, keys, rotation
from mplang_he import compute, interpreter
from mplang_he.circuit import FunctionOperand, fresh, results_of
from mplang_he.types import (
    CIPHERTEXT_CODEC,
    KEY_CODEC,
    EncryptedColumns,
    HeCiphertextType,
    HePublicKeyType,
)
from mplang_jax import jax_compile

from mplang_core import FeSignature, TensorType
from mplang_core.ext import KernelError, pack

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


def test_keys_of_rotations_are_no_relinearization_keys():
    """SEAL takes them, as both switch keys, and reads beyond their end."""
    code = jax_compile(lambda x: x * x, FeSignature((TensorType.of(X),))).pfunc.attrs["code"]
    sealed, other = encrypted(SMALL, X, -9, 9), rotation(SMALL, (1,))
    about = {"parameters": SMALL.params(), "rows": 2, "masked": False}
    shapes = [(0, X.shape, len(sealed.parts))]
    buffers = [keys(SMALL)[1].data, other.data, code, *sealed.parts]
    with pytest.raises(ValueError, match="not a RelinKeys"):
        compute.run("run", {**about, "operands": shapes}, buffers)


PARTITIONS = "mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32"
MODULE = """module @main attributes {{PARTITIONS}} {{
  func.func public @main(%arg0: tensor<1x500xf64>) -> tensor<1x500xf64> {{
    %0 = stablehlo.add %arg0, %arg0 : tensor<1x500xf64>
{}
    return %{} : tensor<1x500xf64>
  }}
}}
"""


def test_code_that_computes_much_is_refused(monkeypatch):
    """Whoever analyses a program does not do the work of it."""
    monkeypatch.setattr(interpreter, "MAX_ELEMENTS", 20_000)
    add = "    %{} = stablehlo.add %{}, %arg0 : tensor<1x500xf64>"
    text = MODULE.replace("PARTITIONS", PARTITIONS).format(
        "\n".join(add.format(i + 1, i) for i in range(100)), 100
    )
    kind = TensorType("f64", (1, 500))
    operand = FunctionOperand(kind, -1.0, 1.0, fresh(kind, FLOATS, -1.0, 1.0), encrypted=True)
    with pytest.raises(ValueError, match="too large"):
        results_of(pack(text), FLOATS, (operand,))


TYPES = {
    "few bits of security": ("bfv", 4096, (60, 60, 60), 20),
    "a scheme": ("bgv", 4096, (36, 37), 20),
    "a degree": ("bfv", 5000, (36, 37), 20), "no primes": ("bfv", 4096, (), 20),
    "a scale of other bits": ("ckks", 8192, (60, 31, 31, 60), 44),
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
