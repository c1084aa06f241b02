"""The interpreter of StableHLO gives what XLA gives, for each op and number that it is given."""

from __future__ import annotations

import jax
import numpy as np
import op_samples
import pytest
from jaxlib.mlir import ir
from mplang_stablehlo import interpreted as module
from mplang_stablehlo.ext import compile_for_xla, interpreted, parse
from mplang_stablehlo.interpreted import SAFE

from mplang_core import DType, TensorType

OPS = sorted(SAFE - {"return"})
WILD = [np.nan, np.inf, -np.inf, -0.0, 6e4]


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Interpret however long compiling would take."""
    monkeypatch.setattr(module, "QUICKER", 0)


def types_of(text):
    parsed = parse(text)
    (main,) = parsed.body.operations
    block = main.operation.regions[0].blocks[0]
    *_, end = block.operations
    return [list(map(kind_of, values)) for values in (block.arguments, end.operation.operands)]


def kind_of(value):
    kind = ir.RankedTensorType(value.type)
    name = str(kind.element_type)
    return TensorType(DType("bool" if name == "i1" else name.replace("ui", "u")), kind.shape)


def numbers(kind, wild):
    dtype, size = kind.dtype.numpy, kind.size
    rng = np.random.default_rng(0)
    if dtype.kind == "b":
        found = rng.integers(0, 2, size)
    elif dtype.kind == "f":
        found = np.resize(WILD, size) if wild else rng.normal(size=size) * 3
    else:
        limits = np.iinfo(dtype)
        found = np.resize([limits.min, limits.max, 0, 1], size) if wild else np.arange(size) % 4
    return np.asarray(found).astype(dtype).reshape(kind.shape)


def modules(name):
    """Yield the samples of an op that are valid."""
    for element in op_samples.ELEMENTS:
        if element == "f16":  # checks compute in 32 and 64 bits
            continue
        try:
            text = op_samples.sample(name, element)
            takes, gives = types_of(text)
        except (KeyError, ir.MLIRError):  # there is no such op
            continue
        yield text, takes, gives


@pytest.mark.parametrize("name", OPS)
def test_each_op_gives_what_xla_gives(name):
    seen = 0
    for text, takes, gives in modules(name):
        run = interpreted(text, takes, gives)
        if run is None:  # integers that a 0 divides
            assert name in ("divide", "remainder")
            continue
        with jax.enable_x64(True), np.errstate(all="ignore"):
            compiled = compile_for_xla(text, takes, gives)
            for wild in (False, True):
                given = [numbers(kind, wild) for kind in takes]
                for mine, theirs in zip(run(*given), compiled(*given), strict=True):
                    assert mine.dtype == theirs.dtype
                    np.testing.assert_allclose(
                        mine.astype(float), np.asarray(theirs).astype(float), 1e-5, 1e-6
                    )
        seen += 1
    assert seen


@pytest.mark.parametrize(
    "name", ["custom_call", "while", "select_and_scatter", "optimization_barrier"]
)
def test_what_it_cannot_do_is_left_to_xla(name):
    text, takes, gives = next(iter(modules(name)))
    assert interpreted(text, takes, gives) is None


def test_large_arrays_are_left_to_xla(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(op_samples, "SIZE", 10_000)
    text = op_samples.sample("add", "f32")
    takes, gives = types_of(text)
    assert interpreted(text, takes, gives) is None


def test_empty_arrays_are_left_to_xla():
    """Of a product of them the interpreter asks for the first index, and ends the process."""
    text = """module @main {
  func.func public @main(%arg0: tensor<0xf32>) -> tensor<f32> {
    %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [0] x [0]
        : (tensor<0xf32>, tensor<0xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}"""
    takes, gives = types_of(text)
    assert interpreted(text, takes, gives) is None


def test_a_sort_takes_as_many_steps_as_its_comparator(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(op_samples, "SIZE", 1000)
    text = op_samples.sample("sort", "f32")
    assert interpreted(text, *types_of(text)) is None
