"""Masks and types: what a user may write for them, what they print, what they refuse."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from mplang_core import DType, Form, Mask, MPType, TableType, TensorType
from mplang_core.types import array_of, type_classes

ranks = st.frozensets(st.integers(0, 200))

# -- Mask


def test_a_mask_is_made_of_bits_or_of_ranks():
    assert Mask(0b1011) == Mask.from_ranks([3, 0, 1]) == Mask.from_ranks(iter((0, 1, 3, 3)))
    assert Mask.from_ranks([]) == Mask() == Mask(0) == Mask.all(0)
    assert Mask.all(3) == Mask.from_ranks(range(3))
    assert Mask.from_ranks([1000]).bits == 1 << 1000


def test_parties_are_written_as_a_mask_a_rank_or_several_ranks():
    mask = Mask.from_ranks([1, 4])
    assert Mask.of(mask) is mask
    assert Mask.of(4) == Mask(0b10000)
    assert Mask.of((4, 1)) == Mask.of({1, 4}) == Mask.of(range(1, 5, 3)) == mask


@pytest.mark.parametrize("bits", ["3", 3.0, True, None, np.int64(3)])
def test_bits_are_an_int(bits):
    with pytest.raises(TypeError, match="made of int bits"):
        Mask(bits)


def test_negative_bits_and_ranks_are_refused():
    with pytest.raises(ValueError, match="no negative bits, got -1"):
        Mask(-1)
    for make in (Mask.from_ranks, Mask.of):
        with pytest.raises(ValueError, match="not negative, got -2"):
            make([0, -2])
    with pytest.raises(ValueError, match="not negative, got -1"):
        Mask.of(-1)


def test_a_mask_iterates_its_ranks_in_order():
    mask = Mask.from_ranks([9, 2, 70])
    assert list(mask) == [2, 9, 70]
    assert mask.first == 2
    assert len(mask) == mask.num_parties() == 3
    assert bool(mask)


def test_the_empty_mask_is_false_and_has_no_first_rank():
    assert not Mask()
    assert list(Mask()) == []
    with pytest.raises(ValueError, match="empty mask"):
        _ = Mask().first


def test_only_ranks_in_the_mask_are_in_it():
    mask = Mask.from_ranks([0, 2])
    assert [rank in mask for rank in (-1, 0, 1, 2, 3, 10**9)] == [0, 1, 0, 1, 0, 0]
    assert "0" not in mask
    assert None not in mask


def test_a_global_rank_becomes_its_position_in_the_mask():
    mask = Mask.from_ranks([1, 4, 70])
    assert [mask.global_to_relative_rank(rank) for rank in mask] == [0, 1, 2]
    for rank in (0, 2, 71, -1):
        with pytest.raises(ValueError, match=rf"rank {rank} is not in \{{1, 4, 70\}}"):
            mask.global_to_relative_rank(rank)


def test_a_mask_cannot_be_changed_and_is_a_key():
    mask = Mask(3)
    with pytest.raises(AttributeError):
        mask.bits = 1
    assert {Mask(3): "both"}[Mask.from_ranks([1, 0])] == "both"
    assert Mask(3) != Mask(1)
    assert Mask(3) != 3


@pytest.mark.parametrize(
    ("mask", "text"), [(Mask(), "{}"), (Mask(1), "{0}"), (Mask(11), "{0, 1, 3}")]
)
def test_a_mask_prints_its_ranks(mask, text):
    assert str(mask) == text
    assert eval(repr(mask)) == mask


@given(ranks, ranks)
def test_set_operators_are_those_of_sets(a, b):
    x, y = Mask.from_ranks(a), Mask.from_ranks(b)
    assert set(x & y) == a & b
    assert set(x | y) == a | b
    assert set(x - y) == a - b
    assert (x <= y) == (a <= b)
    assert (x >= y) == (a >= b)
    assert (x == y) == (a == b)


@given(ranks)
def test_a_mask_counts_and_numbers_its_ranks(a):
    mask = Mask.from_ranks(a)
    assert list(mask) == sorted(a)
    assert len(mask) == len(a)
    assert [mask.global_to_relative_rank(rank) for rank in mask] == list(range(len(a)))


# -- DType

SHORT = {
    "bool": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}


@pytest.mark.parametrize(("short", "name"), SHORT.items())
def test_an_element_type_is_written_as_a_short_name_or_as_numpy_has_it(short, name):
    dtype = DType(short)
    assert DType.of(short) is dtype
    assert DType.of(name) is dtype
    assert DType.of(np.dtype(name)) is dtype
    assert DType.of(np.dtype(name).type) is dtype
    assert DType.of(np.dtype(name).newbyteorder(">")) is dtype
    assert DType.of(dtype) is dtype
    assert dtype.numpy == np.dtype(name)


def test_every_element_type_is_tested_here():
    assert {*SHORT, "bf16"} == {dtype.value for dtype in DType}


@pytest.mark.parametrize(
    "spelling", ["bf16", "bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16)]
)
def test_bfloat16_is_the_one_of_ml_dtypes(spelling):
    assert DType.of(spelling) is DType.BF16
    assert DType.BF16.numpy == np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("builtin", [bool, int, float, complex])
def test_an_element_type_may_be_a_python_number(builtin):
    assert DType.of(builtin).numpy == np.dtype(builtin)


@pytest.mark.parametrize(
    "dtype",
    [
        object,
        str,
        bytes,
        "datetime64[s]",
        "timedelta64",
        np.dtype("S3"),
        np.dtype([("a", "i4")]),
        ml_dtypes.float8_e4m3fn,
    ],
)
def test_what_a_tensor_cannot_hold_is_refused(dtype):
    with pytest.raises(TypeError, match=r"a tensor cannot hold elements of type .*expected one of"):
        DType.of(dtype)


@pytest.mark.parametrize("dtype", [None, 3, "f31", "no such type", "(,", "f4,(", [], TensorType])
def test_what_is_no_element_type_at_all_is_refused(dtype):
    with pytest.raises(TypeError):
        DType.of(dtype)


def test_element_types_tell_their_width_and_whether_they_count():
    assert [d.value for d in DType if d.is_64bit] == ["i64", "u64", "f64", "c128"]
    assert [d.value for d in DType if d.is_integer] == [
        *("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
    ]


# -- TensorType


def test_a_tensor_type_has_an_element_type_and_a_shape():
    kind = TensorType("float32", [2, 3])
    assert (kind.dtype, kind.shape, kind.size) == (DType.F32, (2, 3), 6)
    assert kind == TensorType(np.float32, (np.int64(2), 3))
    assert hash(kind) == hash(TensorType("f32", (2, 3)))
    assert kind.form is Form.PLAIN
    assert TensorType("i64").shape == ()
    assert TensorType("i64").size == 1
    assert TensorType("i64", (4, 0)).size == 0


@pytest.mark.parametrize("shape", [(-1,), (2, -3), (1,) * 65])
def test_an_impossible_shape_is_refused(shape):
    with pytest.raises(ValueError, match="no tensor has the shape"):
        TensorType("f32", shape)


@pytest.mark.parametrize("shape", [(2.5,), ("3",), (None,), 3])
def test_a_size_is_an_int(shape):
    with pytest.raises((TypeError, ValueError)):
        TensorType("f32", shape)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "i64[]"),
        (True, "bool[]"),
        (1.5, "f64[]"),
        ([[1, 2, 3]], "i64[1, 3]"),
        (np.zeros((0, 2), np.uint8), "u8[0, 2]"),
        (np.float32(1), "f32[]"),
        (np.zeros(2, ml_dtypes.bfloat16), "bf16[2]"),
        (np.zeros(2, ">f4"), "f32[2]"),
    ],
)
def test_the_type_of_a_value(value, text):
    assert str(TensorType.of(value)) == text


@pytest.mark.parametrize("value", ["text", object(), [[1], [1, 2]], {"a": 1}, None, b"raw"])
def test_what_is_no_tensor_has_no_tensor_type(value):
    with pytest.raises(TypeError, match="is not a tensor"):
        TensorType.of(value)
    with pytest.raises(TypeError, match="is not a tensor"):
        array_of(value)


def test_a_value_of_the_type_does_not_mismatch():
    assert TensorType("f32", (2,)).mismatch(np.zeros(2, np.float32)) is None
    assert TensorType("i64").mismatch(np.int64(3)) is None
    assert TensorType("bool", (0,)).mismatch(np.zeros(0, bool)) is None
    assert TensorType("bf16", (1,)).mismatch(np.zeros(1, ml_dtypes.bfloat16)) is None


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.zeros(2), "f64[2]"),
        (np.zeros(3, np.float32), "f32[3]"),
        (np.zeros((2, 1), np.float32), "f32[2, 1]"),
        (np.float32(0), "f32[]"),
        ([0.0, 0.0], "list"),
        (0.0, "float"),
        (None, "NoneType"),
        (np.array(["a", "b"]), "ndarray"),
    ],
)
def test_a_mismatch_says_what_was_expected_and_what_came(value, found):
    assert TensorType("f32", (2,)).mismatch(value) == f"expected f32[2], got {found}"


# -- TableType


def test_a_table_type_keeps_its_columns_in_order():
    kind = TableType((("b", "int64"), ("a", "string")))
    assert str(kind) == 'table<["b", "int64"], ["a", "string"]>'
    assert kind != TableType((("a", "string"), ("b", "int64")))
    assert TableType.from_params(kind.params()) == kind
    assert str(TableType(())) == "table<>"


def test_a_table_names_each_column_once():
    with pytest.raises(ValueError, match=r"names each column once, got \['a', 'c'\] twice"):
        TableType((("a", "int64"), ("b", "int64"), ("c", "int64"), ("a", "string"), ("c", "bool")))


@pytest.mark.parametrize("params", [(1,), ("a",), (("a",),), (("a", 1),), (("a", "b", "c"),)])
def test_a_column_is_a_name_and_a_type(params):
    with pytest.raises(ValueError, match=r"a column is \[name, type\]"):
        TableType.from_params(params)


# -- MPType


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (MPType(TensorType("f32", (3,)), Mask(0b101)), "f32[3]@{0, 2}"),
        (MPType(TensorType("i64"), None), "i64[]@?"),
        (MPType(TensorType("bool", (1, 0)), Mask()), "bool[1, 0]@{}"),
        (MPType(TableType((("a", "int8"),)), Mask(1)), 'table<["a", "int8"]>@{0}'),
    ],
)
def test_a_multi_party_type_prints_what_is_held_and_by_whom(kind, text):
    assert str(kind) == text


def test_multi_party_types_differ_in_what_and_in_who():
    kind = MPType(TensorType("f32"), Mask(1))
    assert kind == MPType(TensorType("float32"), Mask.of(0))
    assert hash(kind) == hash(MPType(TensorType("f32"), Mask(1)))
    assert kind not in (
        MPType(TensorType("f64"), Mask(1)),
        MPType(TensorType("f32"), Mask(2)),
        MPType(TensorType("f32"), None),
    )


@settings(deadline=None)
@given(st.sampled_from(DType), st.lists(st.integers(0, 9), max_size=4))
def test_a_type_is_made_again_of_its_parameters(dtype, shape):
    kind = TensorType(dtype, shape)
    assert type_classes.get("tensor").from_params(kind.params()) == kind
