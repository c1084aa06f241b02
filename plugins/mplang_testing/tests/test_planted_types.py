"""Faults of types and codecs, planted in what is right otherwise."""

from __future__ import annotations

import pytest
from planted_head import HEAD

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.once  # what is faulty gives other results elsewhere


TYPE = (
    HEAD
    + """
from dataclasses import dataclass
from mplang_core.runtime import Codec
from mplang_core.runtime.codec import codecs
from mplang_core.types import type_classes

@dataclass({frozen})
class Box(mp.BaseType):
    size: int
    colour: str = "red"
    name = "fault.box"
    {more}

    def params(self):
        return {params}

    @classmethod
    def from_params(cls, params):
        size, colour = params
        {check}
        return cls(size, colour)

    def mismatch(self, value):
        {mismatch}

def encode(value):
    return {encode}

def decode(kind, header, buffers):
    {decode}

type_classes.add("fault.box", Box, provider="fault")
codecs.add("fault.box", Codec(encode, decode), provider="fault")

class TestBox(TypeSuite):
    kinds = st.builds(Box, st.integers(0, 9), st.sampled_from(["red", "blue"]))

    def values(self, kind):
        return st.binary(min_size=kind.size, max_size=kind.size)
"""
)
DECODE = '(data,) = buffers; assert_size(header["size"], len(data)); return bytes(data)'
SIZE = """
def assert_size(expected, found):
    if expected != found:
        raise ValueError("wrong size")
"""
RIGHT_TYPE = {
    "frozen": "frozen=True",
    "more": "",
    "params": "(self.size, self.colour)",
    "mismatch": "return None if isinstance(value, bytes) and len(value) == self.size else 'no box'",
    "encode": '{"size": len(value)}, [value]',
    "decode": DECODE,
    "check": "if type(size) is not int or type(colour) is not str: raise ValueError",
}


def box(**changes):
    return TYPE.format(**{**RIGHT_TYPE, **changes}) + SIZE


def test_a_type_without_a_fault_passes(run):
    assert run(box()).ret == 0


def test_what_is_short_stands_in_a_text_by_chance(run):
    """The number of this share is 16."""
    piece = """
class Piece(bytes):
    def __repr__(self):
        return "a piece of 16 bits"
"""
    file = piece + box(more="form = mp.Form.SHARE").replace("st.integers(0, 9)", "st.just(2)")
    drawn = "st.binary(min_size=kind.size, max_size=kind.size)"
    assert run(file.replace(drawn, r"st.just(Piece(b'\x00\x10'))")).ret == 0


@pytest.mark.parametrize(
    ("changes", "test", "message"),
    [
        ({"params": "(self.size, 'red')"}, "its_parameters", "does not come back from its param"),
        ({"params": "(self.size, 'red')"}, "text_and_bytes", "does not come back from its text"),
        ({"params": "(self.size, 'red')"}, "equal_types", "defines its own equality"),
        ({"frozen": "eq=True, unsafe_hash=True"}, "frozen", "expected: it is a frozen dataclass"),
        ({"mismatch": "return None"}, "from_others", "takes a NoneType for its value"),
        ({"encode": '{"size": len(value)}, [value[::-1]]'}, "values_come", "does not survive its"),
        ({"encode": '{"size": {1: 2}}, [value]'}, "values_come_back", "writes what cannot be sent"),
        ({"check": "size = int(size)"}, "taken_as_they_are", "Box reads * as something else"),
        ({"check": "colour = str(colour)"}, "taken_as_they_are", "Box reads * as something else"),
        (
            {
                "more": "nbytes = property(lambda self: self.size)",
                "encode": '{"size": len(value)}, [value + bytes(300)]',
            },
            "its_size",
            "fault.box<*> is larger than it says",
        ),
        ({"more": "form = mp.Form.KEY"}, "secrets", "a value of fault.box<*> shows its bytes"),
        ({"more": "form = mp.Form.SHARE"}, "secrets", "a value of fault.box<*> shows its bytes"),
        ({"decode": "return bytes(buffers[0])"}, "damaged", "is read from a header without 'size'"),
        ({"decode": 'header["size"].bit_count(); ' + DECODE}, "damaged", "got: *AttributeError: *"),
    ],
)
def test_a_type_that_loses_something(caught, changes, test, message):
    caught(box(**changes), test, message)
