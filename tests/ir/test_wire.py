"""Bytes: canonical, complete, and refused by a WireError whatever is wrong with them."""

from __future__ import annotations

import hashlib
import itertools
import os
import struct
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import msgspec
import numpy as np
import pytest
import toy
from hypothesis import example, given, settings, strategies as st

import mplang_core as mp
from mplang_core import Mask, MPType, Program, TensorType, parse, verify
from mplang_core.errors import WireError
from mplang_core.ir import (
    WIRE_VERSION,
    Graph,
    Location,
    Operation,
    Value,
    from_bytes,
    normalize,
    op_defs,
    print_program,
    to_bytes,
)
from mplang_core.ir.attrs import same

ROOT = Path(__file__).parents[2]
VALID = sorted(Path(__file__).parent.glob("golden/valid/*.mpl"))

# -- programs


def holding(*values: object, **more: object) -> Program:
    """A program of ops with one attribute ``value`` each, and of one with the rest."""
    ops = [Operation("irtest.any", (), (), {"value": normalize(value)}) for value in values]
    if more:
        ops.append(Operation("irtest.any", (), (), {k: normalize(v) for k, v in more.items()}))
    return Program("p", Mask(0b11), Graph([], ops))


def held(program: Program) -> object:
    return program.graph.ops[0].attrs["value"]


def through_bytes(value: object) -> object:
    return held(from_bytes(to_bytes(holding(value))))


def through_text(value: object) -> object:
    return held(parse(print_program(holding(value))))


def traced() -> Program:
    """A program with every op of the core, constants, and the lines of this file."""

    @mp.builtin_function
    def double(x):
        return mp.invoke(toy.add, x, x)

    def program(x):
        y = mp.invoke(toy.scale, x, by=3, rmask=(0, 1))
        z = mp.pshfl_s(mp.put("P0", y, range=(0, 9)), 2, [0])
        pulled = mp.pshfl(x, mp.invoke(toy.rank, rmask=2))
        big = mp.constant(np.linspace(0, 1, 40))
        w = mp.uniform_cond(mp.constant(True), lambda: x, lambda: double(x))
        v = mp.while_loop(
            lambda s: mp.invoke(toy.less, s, w), lambda s: mp.invoke(toy.add, s, w), x
        )
        return mp.pconv([y, z]), pulled, big, v, mp.simp.pcall_dynamic(toy.scale, v)

    ctx = mp.TraceContext(mp.ClusterSpec.simple(3))
    return mp.trace(ctx, program, MPType(TensorType("i64"), Mask(0b111))).program


# -- round trips


def test_a_traced_program_comes_back_with_its_lines():
    program = traced()
    again = from_bytes(to_bytes(program))
    verify(again)
    assert str(again) == str(program)
    in_parts = {"simp.send", "simp.recv", "simp.nothing"}  # see tests/passes
    assert {op.opcode for op in again.graph.walk()} > {
        name for name in op_defs.names() if name.startswith("simp.") and name not in in_parts
    }
    assert "test_wire.py:" in str(again)
    assert (again.name, again.mask, again.digest) == (program.name, program.mask, program.digest)


def test_locations_may_be_left_out():
    program = traced()
    data = to_bytes(program, locations=False)
    again = from_bytes(data)
    assert b"test_wire.py" not in data
    assert len(data) < len(to_bytes(program))
    assert all(op.location is None for op in again.graph.walk())
    assert str(again) == print_program(program, locations=False)
    assert again.digest == program.digest


def test_a_program_has_the_same_text_before_and_after_whatever_the_order_of_its_attributes():
    a = holding(z=1, a=b"x", m=[1])
    b = holding(m=[1], a=b"x", z=1)
    assert str(from_bytes(to_bytes(a))) == str(a) == str(b) == str(parse(str(b)))
    assert to_bytes(a) == to_bytes(b)


def test_the_digest_stays_whatever_the_order_of_attributes_with_buffers():
    """The host and the workers compare digests of one program, written and read."""
    a, b = holding(z=b"zz", a=b"aa"), holding(a=b"aa", z=b"zz")
    assert a.digest == b.digest
    assert from_bytes(to_bytes(a)).digest == a.digest
    assert parse(str(a)).digest == a.digest


def test_bytes_may_come_as_a_memoryview():
    data = to_bytes(traced())
    assert from_bytes(memoryview(data)).digest == from_bytes(data).digest


def test_equal_constants_are_written_once():
    one, two = to_bytes(holding(np.arange(999))), to_bytes(holding(np.arange(999), np.arange(999)))
    assert len(two) - len(one) < 100


# -- canonical

CHILD = """
import sys
from pathlib import Path
from mplang_cli.text import parse
from mplang_core.ir import to_bytes
for path in sorted(Path(sys.argv[1]).glob("golden/valid/*.mpl")):
    try:
        program = parse(path.read_text())
    except Exception as error:
        sys.exit(f"{path.stem}: {error}")
    print(path.stem, program.digest, to_bytes(program).hex())
sys.path.insert(0, sys.argv[1])
import test_wire
print("traced", test_wire.traced().digest, to_bytes(test_wire.traced()).hex())
"""


def run_with_hash_seed(seed: str) -> str:
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "tests")}
    child = [sys.executable, "-c", CHILD, str(Path(__file__).parent)]
    done = subprocess.run(child, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_another_process_with_other_hashes_writes_the_same_bytes():
    first, second = run_with_hash_seed("1"), run_with_hash_seed("2")
    assert first == second
    assert f"traced {traced().digest}" in first
    assert len(first.splitlines()) == len(VALID) + 1


def test_the_name_is_in_the_bytes_but_not_in_the_digest():
    a, b = holding(1), holding(1)
    b.name = "another"
    assert to_bytes(a) != to_bytes(b)
    assert a.digest == b.digest
    assert from_bytes(to_bytes(b)).name == "another"


def test_the_parties_are_in_the_digest():
    program = holding(1)
    assert Program("p", Mask(0b111), program.graph).digest != program.digest


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


# -- where the user's files are is nobody's business


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("/home/alice/secret project/model.py", "model.py:3"),
        ("../secret/alice/a:b.py", "a:b.py:3"),
        ("/alice/secret/", ":3"),
        ("<stdin>", "<stdin>:3"),
        ("/tmp/secret/alice/ipykernel_1/42.py", "42.py:3"),
    ],
)
def test_a_path_never_reaches_text_or_bytes(file, shown):
    program = holding(1)
    program.graph.ops[0].location = Location(file, 3)
    data, text = to_bytes(program), str(program)
    for leaked in ("alice", "secret"):
        assert leaked.encode() not in data
        assert leaked not in text
    assert f'"{shown}"' in text
    assert str(from_bytes(data)) == text
    assert str(parse(text)) == text


def test_a_path_in_foreign_bytes_or_text_is_not_passed_on():
    located = holding(1)
    located.graph.ops[0].location = Location("ABCDEFGH", 3)
    data = to_bytes(located).replace(b"ABCDEFGH", b"/a/b/c/d")
    for program in (from_bytes(data), parse(str(located).replace("ABCDEFGH", "/a/b/c/d"))):
        assert str(program.graph.ops[0].location) == "d:3"
        assert b"/a/b" not in to_bytes(program)
        assert "/a/b" not in str(program)


# -- damage

SMALL = """program "damage" on {0, 1} (%0: i64[]@{0}) {
  %3 = simp.pcall_static(%0) {parties = {0}} do (%1: i64[]) {
    %2 = toy.scale(%1) {by = 3} : i64[] at "model.py:3"
    irtest.any() {value = [none, 1.5, "x", i64[], {0}, dict{"a" = dense<f32[2]>[1.0, 2.0]}]}
    irtest.any() {value = @e3b0c44298fc1c14}
    return %2
  } : i64[]@{0}
  return %3
}
buffers {
  @e3b0c44298fc1c14 = ""
}
"""


def small() -> bytes:
    return to_bytes(parse(SMALL))


def test_nothing_is_no_program():
    with pytest.raises(WireError):
        from_bytes(b"")


def test_a_program_cut_short_anywhere_is_refused():
    data = small()
    for end in range(len(data)):
        with pytest.raises(WireError):
            from_bytes(data[:end])


def test_more_bytes_after_the_end_are_refused():
    for more in (b"\0", b"\xc0", small()):
        with pytest.raises(WireError):
            from_bytes(small() + more)


def survive(data: bytes) -> None:
    """Bytes are refused by a WireError, or give a program that can be passed on."""
    try:
        program = from_bytes(data)
    except WireError:
        return
    assert from_bytes(to_bytes(program)).digest == program.digest


def test_no_single_byte_set_to_anything_does_harm():
    data = small()
    for at in range(len(data)):
        for value in (
            0x00,
            0x01,
            0x7F,
            0x80,
            0x90,
            0xC0,
            0xC1,
            0xC6,
            0xC9,
            0xCB,
            0xD9,
            0xDD,
            0xDF,
            0xFF,
        ):
            survive(data[:at] + bytes([value]) + data[at + 1 :])


def test_no_single_byte_left_out_or_doubled_does_harm():
    data = small()
    for at in range(len(data)):
        survive(data[:at] + data[at + 1 :])
        survive(data[:at] + data[at : at + 1] + data[at:])


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from([small, lambda: to_bytes(traced())]),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1),
)
def test_no_bytes_flipped_anywhere_do_harm(make, flips):
    data = bytearray(make())
    for where, bits in flips:
        data[int(where * len(data))] ^= bits
    survive(bytes(data))


# -- bytes that somebody made on purpose

Ext = msgspec.msgpack.Ext
pack = msgspec.msgpack.encode


def envelope(**changes: object) -> bytes:
    fields = {
        "magic": "mplang",
        "version": WIRE_VERSION,
        "name": "p",
        "mask": b"\x03",
        "types": ["i64[]@{0}"],
        "graph": [[], [], []],
        "buffers": [bytes(8)],
    }
    return pack(list({**fields, **changes}.values()))


def with_op(
    inputs=(),
    types=(),
    attrs=None,
    regions=(),
    location=None,
    outputs=(),
    opcode="irtest.any",
    **more,
) -> bytes:
    op = [opcode, list(inputs), list(types), attrs or {}, list(regions), location]
    return envelope(graph=[[0], [op], list(outputs)], **more)


def with_attr(value: object, **more: object) -> bytes:
    return with_op(attrs={"value": value}, **more)


def tensor(kind: str, buffer: int = 0) -> Ext:
    return Ext(3, pack([kind, buffer]))


def test_the_bytes_made_here_are_a_program_where_nothing_is_changed():
    assert from_bytes(envelope()).mask == Mask(0b11)
    program = from_bytes(with_op([0], [0], {"value": tensor("i64[1]")}, outputs=[0, 1]))
    assert len(program.graph.outputs) == 2
    assert same(program.graph.ops[0].attrs["value"], normalize(np.zeros(1, np.int64)))


@pytest.mark.parametrize("magic", ["", "mplanG", "numpy", "x" * 10000])
def test_another_magic_is_refused(magic):
    with pytest.raises(WireError, match="expected a program of mplang") as caught:
        from_bytes(envelope(magic=magic))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("version", [0, WIRE_VERSION + 1, -1, 2**60])
def test_another_version_is_refused_with_both_versions(version):
    with pytest.raises(
        WireError, match=rf"wire version {version}, .* reads version(s \d+ to)? {WIRE_VERSION};"
    ):
        from_bytes(envelope(version=version))


def test_a_newer_version_is_told_from_damage_even_where_all_else_is_new():
    with pytest.raises(WireError, match=f"wire version {WIRE_VERSION + 1}"):
        from_bytes(pack(["mplang", WIRE_VERSION + 1, {"all": "else"}, None]))


HUGE = "9" * 25

FORGED = {
    "nothing": pack([]),
    "magic only": pack(["mplang"]),
    "a map": pack({"magic": "mplang", "version": 1}),
    "a number": pack(7),
    "a field too many": pack([*msgspec.msgpack.decode(envelope()), 1]),
    "a field too few": pack(msgspec.msgpack.decode(envelope())[:-1]),
    "magic of another kind": envelope(magic=1),
    "version of another kind": envelope(version="1"),
    "version as a float": envelope(version=1.5),
    "name of another kind": envelope(name=None),
    "mask with a zero at the end": envelope(mask=b"\x03\x00"),
    "mask of zeros": envelope(mask=b"\x00"),
    "mask as a number": envelope(mask=3),
    "mask too large": envelope(mask=b"\x01" * 10000),
    "type that is no text": envelope(types=[1]),
    "type that is no type": envelope(types=["i64"]),
    "type with more behind it": envelope(types=["i64[] x"]),
    "type that is unknown": envelope(types=["nosuch<1>"]),
    "type without parameters": envelope(types=["tensor<>"]),
    "type with an odd element type": envelope(types=['tensor<"(,">']),
    "type with an odder element type": envelope(types=['tensor<"f4,(">']),
    "type of wrong parameters": envelope(types=["table<1>"]),
    "type nested deep": envelope(types=["table<" * 5000]),
    "type of huge rank": envelope(types=[f"i64[]@{{{HUGE}}}"]),
    "graph of another kind": envelope(graph=None),
    "graph with a field too many": envelope(graph=[[], [], [], []]),
    "input type out of range": envelope(graph=[[1], [], []]),
    "input type negative": envelope(graph=[[-1], [], []]),
    "output out of range": envelope(graph=[[0], [], [1]]),
    "output negative": envelope(graph=[[0], [], [-1]]),
    "index as a float": envelope(graph=[[0], [], [0.5]]),
    "index huge": envelope(graph=[[2**64 - 1], [], []]),
    "operand out of range": with_op(inputs=[1]),
    "operand negative": with_op(inputs=[-1]),
    "operand that the op itself defines": with_op(inputs=[1], types=[0]),
    "result type out of range": with_op(types=[1]),
    "opcode of another kind": with_op(opcode=1),
    "attributes as a list": envelope(graph=[[], [["x.y", [], [], [], [], None]], []]),
    "attributes with other keys": with_op(attrs={1: 2}),
    "attribute map with other keys": with_attr({1: 2}),
    "attribute of raw bytes": with_attr(b"raw"),
    "attribute of a date": with_attr(Ext(-1, b"\0\0\0\1")),
    "unknown extension": with_attr(Ext(99, b"")),
    "empty extension": with_attr(Ext(3, b"")),
    "extension with more behind it": with_attr(Ext(4, pack([0]) + b"\0")),
    "extension of another shape": with_attr(Ext(3, pack([0]))),
    "type that is no UTF-8": with_attr(Ext(1, b"\xff")),
    "type with a mask": with_attr(Ext(1, b"i64[]@{0}")),
    "type attribute without parameters": with_attr(Ext(1, b"tensor<>")),
    "type attribute of an odd element type": with_attr(Ext(1, b'tensor<"(">')),
    "mask attribute with a zero at the end": with_attr(Ext(2, b"\x03\x00")),
    "mask attribute too large": with_attr(Ext(2, b"\x01" * 10000)),
    "bytes out of range": with_attr(Ext(4, pack([1]))),
    "bytes negative": with_attr(Ext(4, pack([-1]))),
    "constant out of range": with_attr(tensor("i64[1]", 1)),
    "constant negative": with_attr(tensor("i64[1]", -1)),
    "constant of another size": with_attr(tensor("i64[2]")),
    "constant of half an element": with_attr(tensor("c128[1]")),
    "constant of a huge shape": with_attr(tensor("i64[4294967296, 4294967296]")),
    "constant of a shape beyond all": with_attr(tensor(f"i64[{HUGE}]")),
    "constant that is a table": with_attr(tensor("table<>")),
    "constant without a type": with_attr(tensor("tensor<>")),
    "dates in a list": with_attr([[Ext(-1, b"\0\0\0\1")]]),
    "region out of range": with_op(regions=[["do", [[7], [], []]]]),
    "region without a name": with_op(regions=[[[], [], []]]),
    "region that sees the values around it": with_op(regions=[["do", [[], [], [0]]]]),
    "region given twice": with_op(regions=[["do", [[], [], []]], ["do", [[], [], []]]]),
    "location of another kind": with_op(location="model.py:3"),
    "location without a line": with_op(location=["model.py", None]),
    "buffers of another kind": envelope(buffers=["text"]),
    "list that claims to be huge": envelope()[:10] + b"\xdd\xff\xff\xff\xff",
    "map that claims to be huge": with_attr(0)[:-12] + b"\xdf\xff\xff\xff\xff",
}


@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED)
def test_forged_bytes_are_refused(data):
    with pytest.raises(WireError):
        from_bytes(data)


@pytest.mark.parametrize("depth", [150, 1000, 50_000])
def test_bytes_nested_too_deep_are_refused(depth):
    """Text takes 100 levels; what a party accepts as bytes, it can show as text."""
    call = b"\x93\x90\x91\x96\xa9func.call\x90\x90\x81\xa4name\xa1f\x91\x92\xa4body"
    empty, head = b"\x93\x90\x90\x90", envelope().removesuffix(pack([[[], [], []], [bytes(8)]])[1:])
    graph = call * depth + empty + b"\xc0\x90" * depth
    lists = with_attr("@@").replace(pack("@@"), b"\x91" * depth + b"\xc0")
    for data in (head + graph + pack([bytes(8)]), lists):
        with pytest.raises(WireError):
            from_bytes(data)


def test_a_bool_constant_of_other_bytes_than_0_and_1_does_not_change_its_digest():
    data = with_attr(tensor("bool[2]"), buffers=[b"\x02\x01"])
    try:
        program = from_bytes(data)
    except WireError:
        return
    assert parse(str(program)).digest == program.digest
    assert from_bytes(to_bytes(program)).digest == program.digest


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200))
@example(b"\x97")
@example(b"\x92\xa6mplang\x01")
def test_arbitrary_attribute_bytes_do_no_harm(data):
    """The extensions have a format of their own inside; nothing in them gets past."""
    for code in (1, 2, 3, 4, 5, -1):
        survive(with_attr(Ext(code, data)))


def test_digests_are_sha256_in_hex():
    digest = holding(1).digest
    assert len(bytes.fromhex(digest)) == hashlib.sha256().digest_size
    assert holding(1).digest == digest != holding(2).digest


def test_a_value_is_numbered_within_its_graph():
    a = Value(MPType(TensorType("i64"), Mask(1)))
    b = Value(a.type)
    graph = Graph([a], [Operation("simp.converge", (a,), (b,))], [b, a, b])
    again = from_bytes(to_bytes(Program("p", Mask(1), graph))).graph
    (x,), (op,) = again.inputs, again.ops
    assert again.outputs == [op.outputs[0], x, op.outputs[0]]
    assert op.inputs == (x,)
