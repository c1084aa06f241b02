"""Slots without a row tell nothing: whoever encrypts may put more rows there than it says."""

from __future__ import annotations

import numpy as np
import pytest
from he_values import FLOATS, SMALL, encrypted, keys
from mplang_he import compute
from mplang_he.circuit import FunctionOperand, is_masked
from mplang_he.types import FLOATS as FLOATS_OF, INTEGERS
from mplang_jax import jax_compile

from mplang_core import FeSignature, TensorType

ROWS = 2
X = {"ckks": np.array([[0.5], [1.0], [-0.25], [0.75]]), "bfv": np.array([[3], [-4], [5], [7]])}
W = {"ckks": np.array([0.5]), "bfv": np.array([9])}


def all_slots(parameters, masked):
    """Run ``x * w + w`` on two rows, with two more in their ciphertext; return four slots."""
    x, w = X[parameters.scheme], W[parameters.scheme]
    two = FeSignature((TensorType.of(x[:ROWS]), TensorType.of(w)))
    code = jax_compile(lambda x, w: x * w + w, two).pfunc.attrs["code"]
    private, public, relin = keys(parameters)
    sealed = encrypted(parameters, x, -9, 9)
    about = {"parameters": parameters.params(), "rows": ROWS, "masked": masked}
    kind = FLOATS_OF if parameters.scheme == "ckks" else INTEGERS
    shapes = [(0, (ROWS, 1), 1), (kind, (1,), 0)]
    buffers = [public.data, relin.data, code, *sealed.parts, w.tobytes()]
    made = compute.run("run", {**about, "operands": shapes}, buffers).buffers
    del about["masked"]
    (data,) = compute.run(
        "decrypt", {**about, "rows": len(x), "count": 1}, [private.data, *made]
    ).buffers
    return np.frombuffer(data, "<f8" if parameters.scheme == "ckks" else "<i8")


@pytest.mark.parametrize("parameters", [FLOATS, SMALL], ids=["ckks", "bfv"])
def test_rows_beyond_those_that_are_said_are_hidden(parameters):
    x, w = X[parameters.scheme][:, 0], W[parameters.scheme]
    np.testing.assert_allclose(all_slots(parameters, masked=False), x * w + w, atol=1e-4)
    hidden = all_slots(parameters, masked=True)
    np.testing.assert_allclose(hidden[:ROWS], (x * w + w)[:ROWS], atol=1e-4)
    assert not np.allclose(hidden[ROWS:], (x * w + w)[ROWS:], atol=1e-2)
    if parameters.scheme == "ckks":
        np.testing.assert_allclose(hidden[ROWS:], 0, atol=1e-4)
    else:
        assert (all_slots(parameters, masked=True)[ROWS:] != hidden[ROWS:]).any()


def operand(rows, encrypted):
    return FunctionOperand(TensorType("f64", (rows, 3)), 0, 1, encrypted=encrypted)


@pytest.mark.parametrize(
    ("rows", "plain", "masked"),
    [(4, True, True), (4096, True, False), (4097, True, True), (4, False, False)],
)
def test_they_are_hidden_where_the_evaluator_has_operands_in_plain(rows, plain, masked):
    operands = [operand(rows, True), *([operand(3, False)] if plain else [])]
    assert is_masked(operands, FLOATS) is masked
