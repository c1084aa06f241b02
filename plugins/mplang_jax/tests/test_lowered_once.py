"""A function that has no key is traced each time, and lowered once."""

from __future__ import annotations

import numpy as np
import pytest
from mplang_jax import frontend, jax_compile

from mplang_core import FeSignature, TensorType

pytestmark = pytest.mark.needs("jax")

SIGNATURE = FeSignature((TensorType("f32", (3,)),))
RATE = 1.0


@pytest.fixture
def lowered(monkeypatch):
    """What was lowered, in a state of the compiler that has nothing yet."""
    found, original = [], frontend._lowered
    monkeypatch.setattr(frontend, "_lowered", lambda traced: found.append(1) or original(traced))
    return found


def reads(x):
    return x * globals()["RATE"]


def test_a_changed_number_is_lowered_again_and_an_old_one_is_not(lowered, monkeypatch):
    first = jax_compile(reads, SIGNATURE)
    monkeypatch.setitem(globals(), "RATE", 3.5)
    changed = jax_compile(reads, SIGNATURE)
    assert changed.pfunc.attrs["code"] != first.pfunc.attrs["code"]
    assert len(lowered) == 2
    monkeypatch.setitem(globals(), "RATE", 1.0)
    assert jax_compile(reads, SIGNATURE).pfunc == first.pfunc
    assert jax_compile(reads, SIGNATURE).pfunc == first.pfunc
    assert len(lowered) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda jax: lambda x: jax.nn.relu(x) + len(globals()) * 0,
        lambda jax: lambda x: jax.random.normal(jax.random.key(len(globals()) * 0), (3,)) + x,
        lambda jax: jax.grad(lambda x: jax.nn.relu(x * (len(globals()) > 0)).sum()),
        lambda jax: (
            lambda x: jax.lax.scan(lambda c, v: (c + v, c), x[0] * (len(globals()) > 0), x)[1]
        ),
    ],
)
def test_functions_of_all_kinds_have_a_structural_key(lowered, make):
    import jax

    fn = make(jax)
    codes = {jax_compile(fn, SIGNATURE).pfunc.attrs["code"] for _ in range(3)}
    assert len(codes) == len(lowered) == 1


def test_captured_arrays_are_operands_and_their_values_no_part_of_the_key(lowered):
    def made(weights):
        return lambda x: x * weights + 0 * len(globals())

    one, other = np.float32([1, 2, 3]), np.float32([4, 5, 6])
    programs = [jax_compile(made(each), SIGNATURE) for each in (one, other, one.reshape(1, 3))]
    assert len(lowered) == 2
    np.testing.assert_array_equal(programs[1].consts[0], other)


def test_the_same_code_at_another_line_has_its_own_line(lowered):
    from mplang_stablehlo.ext import lines_of

    def first(x):
        return x * globals()["RATE"]

    def second(x):
        return x * globals()["RATE"]

    for fn in (first, second):
        code = jax_compile(fn, SIGNATURE).pfunc.attrs["code"]
        lines = {line.line for line in lines_of(code) if line}
        assert fn.__code__.co_firstlineno + 1 in lines
    assert len(lowered) == 2
