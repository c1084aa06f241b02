"""Damaged and forged bytes: refused by a WireError, whatever is wrong with them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from ir.same_data import same
from ir.wire_programs import survive, traced

from mplang_core import Mask, parse
from mplang_core.errors import WireError
from mplang_core.ir import WIRE_VERSION, from_bytes, normalize, to_bytes

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
    "type that is not text": envelope(types=[1]),
    "type that is not a type": envelope(types=["i64"]),
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
    "type that is not UTF-8": with_attr(Ext(1, b"\xff")),
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
