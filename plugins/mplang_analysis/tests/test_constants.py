"""Constants of ops that declare none, and of attributes that are damaged."""

from __future__ import annotations

import numpy as np
from mplang_analysis import Constant, ConstantsRule
from mplang_analysis.constants import constants_of

from mplang_core import Mask
from mplang_core.ext import OpDef, Operation, op_defs, pack


def shown(op):
    return [(each.name, each.shown) for each in constants_of(op)]


def test_of_an_op_without_the_interface_all_that_its_attributes_hold_is_told():
    attrs = {
        "array": np.array([[1, 2]]),
        "raw": b"\x07",
        "code": pack("SELECT 1"),
        "ids": (4711, 815),
        "nested": {"names": ("a", ("b", "c"))},
        "buffers": (pack("SELECT 1"),),
        "parties": Mask.of(0),
        "k": 3,
    }
    told = dict(shown(Operation("nobody.knows", (), (), attrs)))
    assert told["array"] == "1, 2"
    assert told["raw"] == "7"
    assert told["ids"] == "4711, 815"
    assert told["nested.names"] in ('"a"', '"b", "c"')
    assert "buffers" in told  # it is not a code that is listed
    assert told.keys() == {"array", "raw", "ids", "nested.names", "buffers"}


def test_an_attribute_that_its_rule_cannot_read_is_told_by_its_bytes():
    def rule(op):
        raise ValueError("damaged")

    op_def = OpDef("test.damaged", lambda op, world: (), interfaces=[ConstantsRule(rule)])
    op_defs.add("test.damaged", op_def, provider="test")
    try:
        assert shown(Operation("test.damaged", (), (), {"raw": b"\x01\x02"})) == [("raw", "1, 2")]
    finally:
        op_defs.remove("test.damaged")


def test_values_of_any_kind_have_a_text():
    made = Constant.of_values("x", "any", [None, True, "\ud800", object])
    assert made.size == 4
    assert made.first[:2] == ("null", "true")
    assert Constant.of_values("x", "any", []).shown == ""
