"""Sizes of ciphertexts tell that of a table to a tenth; tensors have that of their type."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from crypto_programs import Ctx, new_key
from hypothesis import given, strategies as st
from mplang_crypto import CiphertextType, kernels, primitives
from mplang_crypto.padding import padded_size, read_content, write_content
from mplang_crypto.types import NONCE_BYTES, TAG_BYTES, Ciphertext

import mplang_core as mp
from mplang_core.ext import encode, type_of

TABLE = pa.table({"id": [1], "name": ["a"]})
KIND = type_of(TABLE)


@given(st.integers(1, 1 << 40))
def test_a_padded_size_is_12_percent_larger_at_most_and_stays(size):
    padded = padded_size(size)
    assert size <= padded <= size * 1.12 or padded - size <= 1
    assert padded_size(padded) == padded


def test_there_are_few_padded_sizes():
    """Of a million sizes."""
    assert len({padded_size(size) for size in range(1 << 10, 1 << 20, 64)}) < 256


@given(
    st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=3),
    st.lists(st.binary(max_size=2000), max_size=3),
)
def test_content_comes_back_from_bytes_of_a_padded_size(header, buffers):
    plain = write_content(KIND, header, buffers)
    assert read_content(plain) == (header, buffers)
    assert padded_size(len(plain)) == len(plain)


def table_of(rows):
    return pa.table({"id": list(range(rows)), "name": ["a"] * rows})


def sealed_size(table, key):
    kind = CiphertextType(KIND)
    sealed = kernels.encrypt(Ctx(kind), table, key)
    assert kernels.decrypt(None, sealed, key).equals(table)
    return len(sealed.data)


def test_tables_of_nearly_as_many_rows_have_ciphertexts_of_one_size():
    key = new_key()
    sizes = {sealed_size(table_of(rows), key) for rows in range(10_000, 10_100)}
    assert len(sizes) <= 2


def test_a_tensor_is_not_padded():
    x = np.zeros(1000)
    kind = mp.TensorType.of(x)
    sealed = kernels.encrypt(Ctx(CiphertextType(kind)), x, new_key())
    header, buffers = encode(kind, x)
    assert len(sealed.data) - TAG_BYTES == len(msgspec.msgpack.encode((header, buffers)))


@pytest.mark.parametrize("value", [TABLE, np.float32([1, 2])], ids=["table", "tensor"])
def test_a_ciphertext_of_an_earlier_version_is_read(value):
    """It had no padding."""
    kind = CiphertextType(KIND if value is TABLE else mp.TensorType.of(value))
    key, nonce = new_key(), bytes(NONCE_BYTES)
    plain = msgspec.msgpack.encode(encode(kind.inner, value), order="deterministic")
    old = Ciphertext(kind, nonce, primitives.seal(key.secret, nonce, plain, str(kind).encode()))
    found = kernels.decrypt(None, old, key)
    assert found.equals(value) if value is TABLE else (found == value).all()
