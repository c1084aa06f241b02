"""Constants in StableHLO text, as JAX and MLIR write them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from mplang_stablehlo import constants_of_code

from mplang_core.ext import pack


def shown(text):
    return [(each.type, each.shown) for each in constants_of_code(pack(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%c = stablehlo.constant dense<true> : tensor<i1>", [("i1", "true")]),
        ("dense<1> : tensor<i64> dense<2> : tensor<i64>", [("i64", "1, 2")]),
        ("dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>", [("2x2xi64", "1, 2, 3, 4")]),
        ("dense<-1.5e+00> : tensor<3x1xf64>", [("3x1xf64", "-1.5e+00")]),
        ("dense<> : tensor<0xi64>", [("0xi64", "")]),
        ("%0 = stablehlo.add %a, %b : tensor<i64>", []),
    ],
)
def test_constants_as_mlir_writes_them(text, expected):
    assert shown(text) == expected


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1"])
def test_long_ones_are_hexadecimal(dtype):
    array = np.arange(100, dtype=f"<{dtype}")
    kind = dtype[0].replace("u", "ui") + str(8 * int(dtype[1]))
    text = f'dense<"0x{array.tobytes().hex().upper()}"> : tensor<100x{kind}>'
    ((told, values),) = shown(text)
    assert told == f"100x{kind}"
    first = ", ".join(str(each) for each in array[:4].tolist())
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    assert values == f"100 values, SHA-256 {digest}, the first: {first}, …"


def test_bytes_that_are_no_whole_elements_are_told_as_bytes():
    assert shown('dense<"0x0102"> : tensor<3xi64>') == [("3xi64", "1, 2")]
    with pytest.raises(ValueError, match="hexadecimal"):
        shown('dense<"0x012"> : tensor<3xi64>')
