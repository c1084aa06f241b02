"""Feops, compilers and kernels that fail: an error of ours with the user's line and their name."""

from __future__ import annotations

import pytest
import toy

import mplang_core as mp
from mplang_core.errors import FeConfigError, PartyError, TraceError
from mplang_core.ext import Effects, OpDef, pack, unpack

CLUSTER = mp.ClusterSpec.simple(2)
PEOPLE = mp.MPType(mp.TableType((("age", "int64"),)), mp.Mask.of(0))
LINE = r"test_foreign_errors\.py:\d+: "


def trace(program, *args):
    return mp.trace(mp.TraceContext(CLUSTER), program, *args)


@pytest.fixture
def feop():
    """Declare a feop for one test."""
    names = []

    def declare(fn, **fields):
        names.append(fields["name"])
        return mp.feop(**fields)(fn)

    yield declare
    for name in names:
        mp.registry.feops.remove(name)


def divide(x, y):
    """Divides by a literal, and does not look at it."""
    return toy.scale(x, by=1 // y)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda op, x: op(x, 0), "toy.divide: ZeroDivisionError: integer division"),
        (lambda op, x: op(x), "toy.divide: .*missing 1 required positional argument: 'y'"),
        (lambda op, x: op(x, by=1), "toy.divide: .*unexpected keyword argument 'by'"),
        (lambda op, x: op(1, 1), "toy.scale: it takes multi-party values by position"),
    ],
)
def test_a_plain_feop_that_fails(feop, call, reason):
    op = feop(divide, name="toy.divide")
    with pytest.raises(TraceError, match=LINE + reason):
        trace(lambda: call(mp.device("P0")(op), mp.put("P0", 1)))


def tables(name, **fields):
    return {"name": name, "op_kind": "compiler", "inputs": ({"kind": "Table"},), **fields}


def test_a_compiler_that_fails(feop):
    def compile_nothing(fn, signature):
        raise RuntimeError("out of order")

    feop(compile_nothing, **tables("broken.compile", understands=lambda fn, types: True))
    with pytest.raises(TraceError, match=LINE + "broken.compile: RuntimeError: out of order"):
        trace(lambda t: mp.device("P0")(lambda t: t)(t), PEOPLE)


@pytest.mark.parametrize(
    ("understands", "reason"),
    [
        (lambda fn, types: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda fn, types: "perhaps", "KeyError: 'perhaps'"),
    ],
)
def test_a_compiler_that_fails_when_it_is_asked_is_named(feop, understands, reason):
    for name in ("broken.compile", "other.compile"):
        feop(lambda fn, signature: None, **tables(name, understands=understands))
    with pytest.raises(TraceError, match=rf"understands of \w+\.compile: {reason}"):
        trace(lambda t: mp.device("P0")(lambda t: t)(t), PEOPLE)


class PanicException(BaseException):
    """What extensions in Rust raise: no ``Exception``."""


@mp.simple_op("toy.panic", reads=())
def panic(x: mp.TensorType) -> mp.TensorType:
    """Panics."""
    return x


@mp.kernel("toy.panic")
def _panic(ctx, x):
    raise PanicException("boom")


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_kernel_that_panics(simulate, mode):
    sim = simulate(2)
    with pytest.raises(PartyError, match=r"party 0 failed in toy\.panic at test_foreign_errors"):
        mp.evaluate(sim, lambda: mp.device("P0")(panic)(mp.put("P0", 1)), mode=mode)


@pytest.mark.parametrize(
    ("field", "value"),
    [("total", "no"), ("effects", "fresh"), ("reads", "salary"), ("reads", ["salary"])],
)
def test_a_trait_of_another_type_is_refused(field, value):
    with pytest.raises(FeConfigError, match=f"toy.odd: field '{field}': expected .*{value!r}"):
        OpDef("toy.odd", lambda op, world: [], **{field: value})
    assert OpDef("toy.odd", lambda op, world: [], effects=Effects.NONE, total=lambda op: True)


def test_what_follows_code_is_refused():
    code = pack("SELECT 1")
    assert unpack(code) == "SELECT 1"
    for longer in (code + b" ", code + code):
        with pytest.raises(ValueError, match="padded"):
            unpack(longer)
