"""Values as bytes: what was written comes back, and nothing else is taken for it."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

import mplang_core as mp
from mplang_core.errors import WireError
from mplang_core.runtime import decode, encode
from mplang_core.types import TensorType

DTYPES = ["bool", "int8", "uint64", "int32", "float16", "float32", "float64", "complex64"]


@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=0)))
def test_a_tensor_comes_back(array):
    kind = TensorType.of(array)
    np.testing.assert_array_equal(decode(kind, *encode(kind, array)), array)


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (0, 4)])
def test_every_element_type_comes_back(dtype, shape):
    array = np.ones(shape, dtype)
    kind = TensorType.of(array)
    again = decode(kind, *encode(kind, array))
    assert again.dtype == array.dtype
    np.testing.assert_array_equal(again, array)


def test_strided_arrays_come_back_in_their_order():
    array = np.arange(12).reshape(3, 4).T[::2]
    kind = TensorType.of(array)
    np.testing.assert_array_equal(decode(kind, *encode(kind, array)), array)


def test_a_contiguous_array_is_not_copied():
    array = np.arange(4)
    _, (buffer,) = encode(TensorType.of(array), array)
    assert np.shares_memory(np.frombuffer(buffer, array.dtype), array)


KIND = TensorType("i32", (2,))


@pytest.mark.parametrize(
    ("header", "buffers"),
    [
        ({}, [b"12345678"]),
        ({"dtype": "i32", "shape": [2]}, []),
        ({"dtype": "i32", "shape": [2]}, [b"1234567"]),
        ({"dtype": "i32", "shape": [2]}, [b"12345678", b""]),
        ({"dtype": "i32", "shape": [3]}, [b"123456789012"]),
        ({"dtype": "f32", "shape": [2]}, [b"12345678"]),
        ({"dtype": "object", "shape": [2]}, [b"12345678"]),
        ({"dtype": "i32", "shape": [-2]}, [b"12345678"]),
        ({"dtype": "i32", "shape": "2"}, [b"12345678"]),
        ({"dtype": "i32", "shape": 2}, [b"12345678"]),
    ],
)
def test_what_is_no_such_tensor_is_refused(header, buffers):
    with pytest.raises(WireError, match=r"what came is not of type i32\[2\]"):
        decode(KIND, header, buffers)


def test_a_value_of_another_type_is_not_written():
    with pytest.raises(WireError, match="cannot write"):
        encode(KIND, np.zeros(2))


class Homebound(mp.BaseType):
    name = "outside.homebound"

    def params(self):
        return ()

    @classmethod
    def from_params(cls, params):
        return cls()


def test_a_type_without_a_codec_stays_at_its_party():
    with pytest.raises(WireError, match="no codec"):
        encode(Homebound(), object())


@pytest.mark.needs("jax", "spu")
def test_a_share_comes_back():
    config = {"protocol": "SEMI2K"}
    devices = {"SP0": {"kind": "SPU", "members": [0, 1], "config": config}}
    cluster = mp.ClusterSpec.from_dict({"nodes": [{}, {}], "devices": devices})
    with mp.Simulator(cluster) as sim:
        sealed = mp.evaluate(sim, lambda: mp.seal([1, 2, 3]))
        for share in sealed.value.values:
            assert decode(share.type, *encode(share.type, share)) == share


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (TensorType("bool", (2,)), b"\1\2"),
        (TensorType("f32", (2,)), b"1234567"),
        (TensorType("f32", (0, 2**63)), b""),
        (TensorType("i64", (2**62, 4)), b""),
    ],
)
def test_bytes_that_are_no_such_array(kind, data):
    header = {"dtype": kind.dtype.value, "shape": list(kind.shape)}
    with pytest.raises(WireError, match="what came is not of type"):
        decode(kind, header, [data])
