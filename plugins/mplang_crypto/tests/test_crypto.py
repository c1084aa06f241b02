"""The ops in programs, text and bytes, what they refuse, and the package."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys

import numpy as np
import pytest
from crypto_programs import OPS, SEALED, agreed, at, new_key, sealed_pair, send, trace
from mplang_crypto import (
    CiphertextType,
    PublicKeyType,
    agree,
    decrypt,
    encrypt,
    hash as hash_op,
    kernels,
    keygen,
    keypair,
)
from mplang_crypto.types import PrivateKey

import mplang_core as mp
from mplang_core.errors import DisclosureError, FeCapabilityError, ParseError, WireError
from mplang_core.runtime import decode, encode
from mplang_core.types import TensorType

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
    with pytest.raises(WireError, match="what came is not of type crypto"):
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
        (
            lambda: at("P0", encrypt, mp.put("P0", 1), at("P0", keypair)[0]),
            "takes PRIVATE crypto.symmetric_key",
        ),
        (
            lambda: at("P0", decrypt, mp.put("P0", 1), at("P0", keygen)),
            "takes SECRET crypto.ciphertext",
        ),
        (
            lambda: at("P0", agree, *reversed(at("P0", keypair)), info=""),
            "takes PRIVATE crypto.private_key",
        ),
        (lambda: at("P0", agree, *at("P0", keypair)), "info"),
        (lambda: at("P0", agree, *at("P0", keypair), info=1), "expected str"),
        (lambda: at("P0", agree, *at("P0", keypair), info="\ud800"), "surrogate"),
        (lambda: at("P0", hash_op, at("P0", keygen)), "takes PUBLIC or PRIVATE Tensor"),
        (lambda: at("P0", hash_op, mp.put("P0", 1), algorithm="md5"), "sha256, sha512.*'md5'"),
    ],
)
def test_wrong_operands_are_refused_while_tracing(program, message):
    with pytest.raises(mp.MPLangError, match=message) as error:
        trace(program)
    assert "crypto_programs.py:" in str(error.value)


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
