"""Attributes in bytes and text: each value comes back as it was, or is refused at once."""

from __future__ import annotations

import itertools
import struct

import ml_dtypes
import numpy as np
import pytest
from ir.same_data import same
from ir.wire_programs import holding, through_bytes, through_text

from mplang_core import Mask, Program, TensorType, parse
from mplang_core.errors import WireError
from mplang_core.ir import Graph, Operation, from_bytes, normalize, to_bytes

# -- canonical

DIFFERENT = [
    None,
    *(0, 1, False, True, 0.0, 1.0, -0.0, float("nan"), float("inf"), float("-inf")),
    *("", "1", "none", b"", b"1", (), (1,), (1.0,), (True,), ((1,),), {}, {"a": 1}, {"b": 1}),
    *(Mask(), Mask(1), TensorType("i64"), TensorType("i64", (1,)), "i64[]"),
    *(np.array(1), np.array([1]), np.array(1.0), np.array(True), np.array(1, np.uint64)),
    *(np.zeros(0), np.zeros((0, 2)), np.array(-0.0), np.array(0.0), np.array(np.nan)),
]


def test_attributes_that_differ_in_anything_have_different_digests():
    digests = [holding(value).digest for value in DIFFERENT]
    assert len(set(digests)) == len(DIFFERENT)


def test_attributes_that_differ_are_not_the_same_and_come_back_as_they_were():
    for a, b in itertools.product(range(len(DIFFERENT)), repeat=2):
        x, y = normalize(DIFFERENT[a]), normalize(DIFFERENT[b])
        assert same(x, y) == (a == b)
    for value in map(normalize, DIFFERENT):
        assert same(through_bytes(value), value)
        assert same(through_text(value), value)


# -- values that are easily lost


@pytest.mark.parametrize("bits", [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001])
def test_a_nan_has_one_digest_in_memory_in_text_and_in_bytes(bits):
    (nan,) = struct.unpack("<d", struct.pack("<Q", bits))
    program = holding(nan)
    assert np.isnan(through_bytes(nan))
    assert np.isnan(through_text(nan))
    assert from_bytes(to_bytes(program)).digest == program.digest
    assert parse(str(program)).digest == program.digest


@pytest.mark.parametrize("through", [through_text, through_bytes])
@pytest.mark.parametrize(
    "value", [-0.0, 0.0, float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308, 0.1]
)
def test_a_float_keeps_its_sign_and_its_last_digit(through, value):
    found = through(value)
    assert type(found) is float
    assert found.hex() == value.hex()


@pytest.mark.parametrize("through", [through_text, through_bytes])
@pytest.mark.parametrize("value", [0, -1, -(2**63), 2**63 - 1, 2**63, 2**64 - 1])
def test_an_integer_of_64_bits_keeps_its_value(through, value):
    assert through(value) == value
    assert type(through(value)) is int


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, [2**64], {"a": 10**30}])
def test_an_integer_beyond_64_bits_is_no_attribute(value):
    with pytest.raises(ValueError, match="integers of 64 bits"):
        normalize(value)


CONSTANTS = {
    "0-d": np.array(3),
    "0-d bool": np.array(False),
    "empty": np.zeros(0, np.float32),
    "empty 3-d": np.zeros((2, 0, 3), np.int8),
    "empty complex": np.zeros((0, 1), np.complex64),
    "empty bfloat16": np.zeros(0, ml_dtypes.bfloat16),
    "bool": np.array([[True, False], [False, True]]),
    "many bools": np.arange(40) % 3 == 0,
    "bfloat16": np.array([1.5, -0.0, np.inf, np.nan], ml_dtypes.bfloat16),
    "0-d bfloat16": np.array(1.5, ml_dtypes.bfloat16),
    "float16": np.array([0.1, -0.0, 6e-8], np.float16),
    "float32": np.array([0.1, 1e-45, 3.4e38], np.float32),
    "specials": np.array([np.nan, np.inf, -np.inf, -0.0, 0.0]),
    "nan with a payload": np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(float),
    "complex": np.array([1 - 2j, complex(-0.0, np.inf)]),
    "0-d complex64": np.array(1j, np.complex64),
    "u64": np.array([2**64 - 1, 0], np.uint64),
    "i64": np.array([-(2**63), 2**63 - 1]),
    "large": np.arange(1000).reshape(10, 100),
    "transposed": np.arange(6).reshape(2, 3).T,
    "strided": np.arange(10)[::-3],
    "big endian": np.array([1, 2, 3], ">i4"),
}


@pytest.mark.parametrize("through", [through_text, through_bytes])
@pytest.mark.parametrize("array", CONSTANTS.values(), ids=CONSTANTS)
def test_a_constant_keeps_every_bit(through, array):
    found = through(array)
    assert found.shape == array.shape
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.tobytes() == array.astype(found.dtype).tobytes()
    assert not found.flags.writeable
    assert same(found, normalize(array))


def test_a_constant_is_not_changed_by_who_made_it():
    array = np.arange(20)
    program = holding(array)
    before = to_bytes(program)
    array[:] = 0
    assert to_bytes(program) == before


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(2.5), 2.5),
        (np.float32(2.5), 2.5),
        (np.int8(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.bytes_(b"a"), b"a"),
        (ml_dtypes.bfloat16(2.5), 2.5),
        ([np.float64(1.0)], (1.0,)),
        ({"a": np.float64(1.0)}, {"a": 1.0}),
    ],
    ids=repr,
)
def test_a_numpy_scalar_becomes_plain_data(value, plain):
    assert same(normalize(value), normalize(plain))
    assert same(through_text(value), normalize(plain))
    assert same(through_bytes(value), normalize(plain))


@pytest.mark.parametrize(
    "value",
    [object(), len, {1}, {1: 2}, 1j, np.complex128(1j), np.longdouble(1), np.datetime64("2020")],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_data_is_no_attribute(value):
    with pytest.raises(TypeError):
        normalize(value)
    with pytest.raises(TypeError):
        normalize([{"a": value}])


# -- names of attributes and ops


@pytest.mark.parametrize(
    "name", ["by", "return", "at", "on", "none", "dict", "dense", "größe", "nan", "inf", "α", "ä1"]
)
def test_an_attribute_may_have_any_name_that_python_allows(name):
    program = holding(1, **{name: 2})
    assert parse(str(program)).graph.ops[1].attrs == {name: 2}
    assert from_bytes(to_bytes(program)).graph.ops[1].attrs == {name: 2}


@pytest.mark.parametrize("opcode", ["toy.x", "a.b.c", "_x.y", "info.x", "inf.x", "nan.mean"])
def test_an_op_may_have_any_name_that_a_feop_may_have(opcode):
    program = Program("p", Mask(1), Graph([], [Operation(opcode, ())]))
    assert parse(str(program)).graph.ops[0].opcode == opcode
    assert from_bytes(to_bytes(program)).graph.ops[0].opcode == opcode


@pytest.mark.parametrize("rank", [0, 7, 8, 300, 65535, 65536])
def test_a_rank_that_text_takes_is_one_that_bytes_take(rank):
    program = Program("p", Mask.of(rank), Graph())
    try:
        parse(str(program))
    except ValueError:
        with pytest.raises(WireError):
            from_bytes(to_bytes(program))
    else:
        assert from_bytes(to_bytes(program)).mask == Mask.of(rank)
