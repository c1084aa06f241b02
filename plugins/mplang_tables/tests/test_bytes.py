"""Tables in bytes: they come back without a copy, and damage is a WireError."""

from __future__ import annotations

import contextlib

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from mplang_ibis import query
from mplang_tables import arrow

import mplang_core as mp
from mplang_core.errors import KernelError, WireError
from mplang_core.runtime import decode, encode

KIND = mp.TableType((("a", "int64"),))
TYPES = st.sampled_from(
    [
        (pa.bool_(), st.booleans()),
        (pa.int8(), st.integers(-128, 127)),
        (pa.uint64(), st.integers(0, 2**64 - 1)),
        (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        (pa.float32(), st.floats(width=32, allow_nan=False)),
        (pa.float64(), st.floats(allow_nan=False)),
        (pa.string(), st.text(st.characters(codec="utf-8"))),
        (pa.binary(), st.binary()),
        (pa.date32(), st.dates()),
        (pa.timestamp("us"), st.datetimes()),
        (pa.decimal128(20, 3), st.decimals(-(10**16), 10**16, places=3)),
    ]
)


@st.composite
def tables(draw):
    size = draw(st.integers(0, 20))
    columns = {}
    for i in range(draw(st.integers(1, 4))):
        kind, values = draw(TYPES)
        cells = draw(st.lists(st.none() | values, min_size=size, max_size=size))
        columns[f"c{i}"] = pa.array(cells, kind)
    return pa.table(columns)


def written(value):
    header, buffers = encode(arrow.type_of(value), value)
    return header, [bytes(buffer) for buffer in buffers]


@given(tables())
@settings(deadline=None, max_examples=100)
def test_a_table_comes_back_from_bytes(value):
    kind = arrow.type_of(value)
    found = decode(kind, *written(value))
    assert found.equals(value)
    assert found.schema == arrow.schema(kind)


@given(tables(), st.data())
@settings(deadline=None, max_examples=300)
def test_damaged_bytes_are_a_wire_error_or_a_table_of_that_type(value, data):
    header, buffers = written(value)
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(buffers) - 1))
        raw = bytearray(buffers[i])
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        buffers[i] = bytes(raw[: data.draw(st.sampled_from([None, -1, len(raw) // 2]))])
        buffers[i] += data.draw(st.sampled_from([b"", b"", b"\0", b"\xff" * 8]))
    rows = header["rows"] + data.draw(st.sampled_from([0, 0, 1, -1, 2**31, 2**62]))
    kind = arrow.type_of(value)
    try:
        found = decode(kind, {"rows": rows}, buffers)
    except WireError:
        return
    assert found.schema == arrow.schema(kind)
    found.validate(full=True)
    with contextlib.suppress(duckdb.Error, KernelError):  # a date that is out of SQL's range
        assert query.run_sql("SELECT * FROM x", {"x": found}, kind).num_rows == found.num_rows


def test_a_slice_is_written_without_the_rest():
    value = pa.table({"s": ["SECRET" * 100, "a", "SECRET" * 100], "n": [1, 2, 3]}).slice(1, 1)
    header, buffers = written(value)
    assert sum(map(len, buffers)) == 8 + 1 + 8
    assert decode(arrow.type_of(value), header, buffers).to_pylist() == [{"s": "a", "n": 2}]
    flags = pa.table({"b": [False, True, True, True, None, None]}).slice(0, 1)
    assert written(flags)[1][1] == b"\0"


def test_several_chunks_are_written_as_one():
    value = pa.concat_tables([pa.table({"a": ["x", None]}), pa.table({"a": ["y"]})])
    assert value.column("a").num_chunks == 2
    assert decode(arrow.type_of(value), *written(value)).to_pydict() == {"a": ["x", None, "y"]}


def test_a_table_is_read_without_a_copy_and_cannot_be_changed_by_who_sent_it():
    value = pa.table({"n": list(range(1000))})
    kind = arrow.type_of(value)
    _, (_, raw) = written(value)
    found = arrow.read(kind, 1000, [b"", raw])
    start = np.frombuffer(raw, np.uint8).ctypes.data
    assert found.column("n").chunk(0).buffers()[1].address == start
    writable = bytearray(b"?" + raw)
    found = arrow.read(kind, 1000, [b"", memoryview(writable)[1:]])
    unaligned = arrow.read(kind, 1000, [b"", memoryview(bytes(writable))[1:]])
    assert unaligned.column("n").chunk(0).buffers()[1].address % 16 == 0
    writable[:] = bytes(len(writable))
    assert found.equals(value)
    assert unaligned.equals(value)


TEXT = mp.TableType((("a", "string"),))


def offsets(*values):
    return np.int32(values).tobytes()


@pytest.mark.parametrize(
    ("kind", "header", "buffers"),
    [
        (KIND, {}, [b"", bytes(8)]),
        (KIND, {"rows": 1, "x": 1}, [b"", bytes(8)]),
        (KIND, {"rows": -1}, [b"", bytes(8)]),
        (KIND, {"rows": True}, [b"", bytes(8)]),
        (KIND, {"rows": 1.0}, [b"", bytes(8)]),
        (KIND, {"rows": "1"}, [b"", bytes(8)]),
        (KIND, {"rows": 0}, [b"", bytes(8)]),
        (KIND, {"rows": 2}, [b"", bytes(8)]),
        (KIND, {"rows": 2**61}, [b"", b""]),
        (KIND, {"rows": 1}, []),
        (KIND, {"rows": 1}, [bytes(8)]),
        (KIND, {"rows": 1}, [b"", b"", bytes(8)]),
        (KIND, {"rows": 1}, [b"", bytes(7)]),
        (KIND, {"rows": 1}, [b"", bytes(9)]),
        (KIND, {"rows": 1}, [bytes(2), bytes(8)]),
        (KIND, {"rows": 1}, [b"", 8]),
        (KIND, {"rows": 1}, [None, bytes(8)]),
        (TEXT, {"rows": 1}, [b"", offsets(0), b""]),
        (TEXT, {"rows": 1}, [b"", offsets(0, 2), b"a"]),
        (TEXT, {"rows": 1}, [b"", offsets(-1, 1), b"a"]),
        (TEXT, {"rows": 2}, [b"", offsets(0, 2, 1), b"ab"]),
        (TEXT, {"rows": 1}, [b"", offsets(0, 1), b"\xff"]),
        (mp.TableType((("a", "decimal128(2, 0)"),)), {"rows": 1}, [b"", b"\xff" * 15 + b"\x7f"]),
        (mp.TableType((("a", "time64[us]"),)), {"rows": 1}, [b"", b"\xff" * 8]),
    ],
)
def test_what_is_no_such_table_is_refused(kind, header, buffers):
    with pytest.raises(WireError, match="what came is not of type table"):
        decode(kind, header, buffers)


@pytest.mark.parametrize("value", [None, {"a": [1]}, pa.table({"a": [[1]]}), np.ones(3)])
def test_what_is_no_table_is_not_written(value):
    with pytest.raises(WireError, match="cannot write a table"):
        encode(KIND, value)


@pytest.mark.parametrize(
    "kind",
    [
        pa.bool_(), pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.date32(),
        pa.time64("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.decimal128(38, 3),
    ],
    ids=str,
)  # fmt: skip
def test_no_byte_beneath_a_null_is_written(kind):
    """DuckDB leaves there what its memory held, such as values that a query does not give."""
    size = kind.byte_width if kind.bit_width > 1 else 1
    one = b"\x07" + bytes(size - 1)
    column = pa.Array.from_buffers(kind, 3, [pa.py_buffer(b"\x05"), pa.py_buffer(one * 3)])
    table = pa.table({"x": column.slice(1)})  # null, and a value
    _, (validity, data) = arrow.write(table)
    assert bytes(validity) == b"\x02"
    assert bytes(data) == (bytes(size) + one if kind.bit_width > 1 else b"\x02")
    assert arrow.read(arrow.type_of(table), 2, [validity, data]).equals(table)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()], ids=str)
def test_no_text_beneath_a_null_is_written(kind):
    offsets = pa.array([0, 1, 7, 8], pa.int32()).buffers()[1]
    column = pa.Array.from_buffers(
        kind, 3, [pa.py_buffer(b"\x05"), offsets, pa.py_buffer(b"asecretb")]
    )
    _, (_, _, data) = arrow.write(pa.table({"x": column}))
    assert bytes(data) == b"ab"


@pytest.mark.parametrize(
    "kind", [pa.bool_(), pa.int64(), pa.string(), pa.decimal128(38, 3)], ids=str
)
def test_a_slice_without_what_is_hidden_is_the_slice(kind):
    values = pa.array([1, None, 0, 1, None, None, 1, 0, 1, None, 1]).cast(pa.int8())
    column = (values.cast(pa.bool_()) if kind == pa.bool_() else values).cast(kind)
    for i in range(len(column)):
        shown = arrow.without_hidden(column.slice(i, 5))
        shown.validate(full=True)
        assert shown.equals(column.slice(i, 5))


def test_no_byte_beneath_a_null_is_in_a_result():
    memory = [pa.py_buffer(b"\x01"), pa.py_buffer(b"\x01\x07")]
    hidden = pa.table({"x": pa.Array.from_buffers(pa.int8(), 2, memory)})
    for kind in ("int8", "int64"):
        (chunk,) = arrow.cast(hidden, mp.TableType((("x", kind),))).column("x").chunks
        assert b"\x07" not in chunk.buffers()[1].to_pybytes()
