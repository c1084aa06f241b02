"""Limits of text, and signatures, before any parser."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib

import pytest
from mplang_stablehlo import read, signature_of
from mplang_stablehlo.nesting import check_nesting

import mplang_core as mp
from mplang_core.ir.compressed_text import MAX_CODE, pack

F32 = "tensor<3xf32>"


def module(main: str, attributes: str = "") -> str:
    return (
        f"module @main {attributes}{{\n  func.func public @main({main} {{\n    return\n  }}\n}}\n"
    )


@pytest.mark.parametrize(
    ("main", "takes", "gives"),
    [
        (")", [], []),
        (f"%arg0: {F32})", ["f32[3]"], []),
        (f"%arg0: {F32}) -> {F32}", ["f32[3]"], ["f32[3]"]),
        (
            f"%arg0: {F32}, %arg1: tensor<i1>) -> ({F32}, {F32})",
            ["f32[3]", "bool[]"],
            ["f32[3]"] * 2,
        ),
        (") -> tensor<2x0xcomplex<f64>>", [], ["c128[2, 0]"]),
        (") -> (tensor<ui8>, tensor<1x1x1xbf16>)", [], ["u8[]", "bf16[1, 1, 1]"]),
    ],
)
def test_the_types_of_main(main, takes, gives):
    for attributes in (
        "",
        "attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} ",
    ):
        found = signature_of(pack(module(main, attributes)))
        assert [list(map(str, side)) for side in found] == [takes, gives]


@pytest.mark.parametrize(
    "main",
    [
        "%arg0: tensor<?xf32>)",
        "%arg0: tensor<*xf32>)",
        "%arg0: tensor<-1xf32>)",
        "%arg0: tensor<3x>)",
        "%arg0: tensor<²xf32>)",
        "%arg0: tensor<3xf32>>)",
        "%arg0: tensor<3xtensor<f32>>)",
        "%arg0: memref<3xf32>)",
        "%arg0: tensor<3xf32> {jax.buffer_donor = true})",
        "%arg1: tensor<f32>)",
        "%arg0 : tensor<f32>)",
        "%arg0: tensor<f32>,)",
        "%arg0: tensor<f32>) -> f32",
        "%arg0: tensor<f32>) -> (tensor<f32>, )",
        "%arg0: tensor<f32>) attributes {a = 1}",
        "%arg0: tensor<" + "1x" * 70 + "f32>)",
        "%arg0: tensor<" + "9" * 400 + "xf32>)",
        ", ".join(f"%arg{i}: tensor<f32>" for i in range(5000)) + ")",
    ],
)
def test_what_is_no_signature(main):
    with pytest.raises(ValueError, match=r"static tensor|DType|arguments of @main|at most|size"):
        signature_of(pack(module(main)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not StableHLO"),
        ("module {\n", "not StableHLO"),
        ("module @main {\n  func.func public @f() {\n", "not StableHLO"),
        ("module @main attributes {mhlo.num_replicas = 2 : i32} {\n", "not StableHLO"),
        ("#a = 1\n" + module(")"), "has aliases"),
        (module(")") + "// a comment", "has comments"),
        (module(")").replace("return", '"func\\2Ereturn"'), "has escapes"),
        (module(")") + "{-# dialect_resources: {} #-}", "has resources"),
        (module(") -> !stablehlo.token"), "types of other dialects"),
        (module(")").replace("return", "return loc(unknown)"), "source lines"),
        (module(")").replace("return", "a = affine_map<() -> (- - 1)>"), "affine maps"),
        (module(")") * 5001, "over 5000 functions"),
        (module(")") + "#a = [0]", "has aliases"),
        (module(")") + "  #0 = [0]", "has aliases"),
        (module(")") + "#", "has aliases"),
        (module(")") + '"a"#b = [0]', "has aliases"),
        (module(")") + "#stablehloa = [0]", "has aliases"),
        (module(")") + "#stablehlo", "has aliases"),
        (module(")") + "#stablehlo<a", "has aliases"),
        (module(")").replace("return", "9" * 2000), "a name or a number of 2000 characters"),
        (module(")").replace("return", "f" * 1001), "a name or a number of 1001 characters"),
        (module(")").replace("return", "[" * 201), "nests brackets deeper than 200"),
        (module(")").replace("return", '"]"[' * 201), "nests brackets deeper than 200"),
        (module(")").replace("return", "]" * 999 + "[" * 201), "nests brackets deeper than 200"),
    ],
)
def test_what_no_parser_is_given(text, message):
    with pytest.raises(ValueError, match=message):
        signature_of(pack(text))


def test_what_is_large_but_harmless_is_read():
    strings = module(")").replace("return", f'a = "{"[" * 5000}{"0" * 5000}"')
    assert read(pack(strings)) == strings
    deep = module(")").replace("return", "[" * 190 + "]" * 190)
    assert read(pack(deep)) == deep
    arrows = module(")").replace("return", "() -> () " * 5000)
    assert read(pack(arrows)) == arrows


def test_results_and_attributes_are_no_aliases():
    for line in ("return %0#1, %arg#12", "#stablehlo.gather<a>", '"#a = 1"'):
        text = module(")").replace("return", line)
        assert read(pack(text)) == text


def test_a_bomb_is_not_unpacked():
    with pytest.raises(ValueError, match="larger than"):
        read(zlib.compress(b"\0" * (MAX_CODE + 1)))
    with pytest.raises(ValueError, match="larger than 100 bytes"):
        read(pack("x " * 100), 100)


def test_nesting_is_counted_as_a_parser_would():
    """Compare with a plain loop, on random text of brackets, quotes and arrows."""
    dice = random.Random(3)
    for _ in range(300):
        text = "".join(dice.choices(['"', "(", ")", "[", "]", "<", ">", "->", "{", "}", "x"], k=60))
        depth = deepest = 0
        for i, part in enumerate(text.split('"')):
            for mark in part.replace("->", "") if i % 2 == 0 else "":
                depth = max(0, depth + (mark in "([{<") - (mark in ")]}>"))
                deepest = max(deepest, depth)
        check_nesting(text, deepest)
        if deepest:
            with pytest.raises(ValueError, match="deeper than"):
                check_nesting(text, deepest - 1)


def test_the_signature_needs_no_jax():
    source = (
        "import sys\nfrom mplang_core.ir.compressed_text import pack\n"
        "from mplang_stablehlo import signature_of\n"
        f"signature_of(pack({module(')')!r}))\nprint('jax' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )
    assert told.stdout == "False\n"


def test_types_are_those_of_the_core():
    ((kind,), _) = signature_of(pack(module("%arg0: tensor<2x3xui16>)")))
    assert kind == mp.TensorType("u16", (2, 3))
