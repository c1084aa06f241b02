"""Random circuits: within the told bound, exact, or refused; noise is never above its bound."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pytest
import tenseal.sealapi as seal
from mplang_he.bounds import bounds_of, budget_of
from mplang_he.choice import Circuit, choose
from mplang_he.columns import Columns
from mplang_he.interpreter import ColumnInterpreter
from mplang_he.library import bfv, ckks
from mplang_he.library.context import context_of
from mplang_he.parameters import ResultNeeds
from mplang_he.spans import NumberSpan, varying
from mplang_jax import jax_compile
from mplang_stablehlo import read
from mplang_stablehlo.ext import parse, prepare

from mplang_core import FeSignature, TensorType

ROWS = 6


@lru_cache(16)
def secrets(parameters):
    ctx = context_of(parameters)
    made = seal.KeyGenerator(ctx.seal)
    public, relin = seal.PublicKey(), seal.RelinKeys()
    made.create_public_key(public)
    made.create_relin_keys(relin)
    return ctx, public, relin, seal.Decryptor(ctx.seal, made.secret_key())


@dataclass
class RandomFunction:
    """A function of an encrypted matrix and two plain ones, of random ops.

    Attributes:
        seed: what it is drawn by.
        scheme: of its numbers.
        operands: the ranges of both matrices, and their numbers, which are at the ends.
    """

    seed: int
    scheme: str
    steps: list = field(default_factory=list)

    def __post_init__(self):
        r = random.Random(self.seed)
        self.r, self.draw = r, np.random.default_rng(self.seed)
        self.depth, self.masked = r.randrange(7), r.random() < 0.3
        for _ in range(r.randrange(1, 4)):
            self.steps.append(
                (r.choice(["add", "sub", "neg", "dot", "scale", "vector"]), r.random())
            )
        for _ in range(self.depth):
            self.steps.append((r.choice(["square", "times", "plain", "rows"]), r.random()))
        r.shuffle(self.steps)
        self.x, self.x_range = self.matrix((ROWS, 2))
        self.w, self.w_range = self.matrix((2, 2))
        self.v, self.v_range = self.matrix((ROWS, 1))

    def matrix(self, shape):
        if self.scheme == "bfv":
            high = self.r.choice([1, 2, 7, 100, 1000])
            low = self.r.choice([0, -high, -high - 1])
            ends = np.array([low, high], np.int64)
        else:
            high = self.r.choice([0.01, 0.5, 1.0, 3.0, 50.0])
            low = self.r.choice([0.0, -high, -0.1 * high])
            ends = np.array([low, high])
        return self.draw.choice(ends, shape), (ends[0].item(), ends[1].item())

    def __call__(self, x, w, v):
        first, y, is_float = x, x, self.scheme == "ckks"
        for name, at in self.steps:
            number = (at - 0.5) * 4 if is_float else int(at * 9) - 4
            vector = np.arange(ROWS)[:, None] * (number if is_float else 1)
            match name:
                case "add":
                    y = y + first
                case "sub":
                    y = first - y if at < 0.5 else y - y if at < 0.6 else y - w[0]
                case "neg":
                    y = -y
                case "dot":
                    y = y + number
                case "scale":
                    y = y[:, ::-1]
                case "vector":
                    y = y + vector
                case "square":
                    y = y * y
                case "times":
                    y = y * first
                case "plain":
                    y = y @ w if at < 0.7 else y * number
                case "rows":
                    y = y * vector if at < 0.3 else y * v + v if at < 0.6 else y * (w @ w)[0]
        return y, y.sum(axis=1)


def run(function):
    """Run a function; return whether it ran, after its results were looked at."""
    is_ckks = function.scheme == "ckks"
    operands = function.x, function.w, function.v
    types = tuple(map(TensorType.of, operands))
    made = jax_compile(function, FeSignature(types))
    module = prepare(parse(read(made.pfunc.attrs["code"])))
    consts = list(made.consts)

    def arguments(bounds):
        (low, high), plain = function.x_range, NumberSpan(*function.w_range)
        sealed = Columns.of([bounds.encrypted(NumberSpan(low, high)) for _ in range(2)], (ROWS, 2))
        rows = varying(NumberSpan(*function.v_range), (ROWS, 1))
        return [sealed, varying(plain, (2, 2)), rows, *map(bounds.plain, consts)]

    circuit = Circuit(module, arguments, lambda parameters: function.masked)
    try:
        parameters = choose(function.scheme, circuit, ResultNeeds(1e-4))
    except ValueError:
        return False
    told = circuit.run(bounds_of(parameters))
    ctx, public, relin, decryptor = secrets(parameters)
    columns = (ckks.CkksColumns if is_ckks else bfv.BfvColumns)(ctx, ROWS, public, relin)
    sealed = Columns.of([columns.encrypted(each) for each in function.x.T], (ROWS, 2))
    found = ColumnInterpreter(columns).run(module, [sealed, function.w, function.v, *consts])
    right = function(*operands)
    for bound, value, expected in zip(told, found, right, strict=True):
        cells = zip(bound.cells.flat, value.cells.flat, expected.reshape(ROWS, -1).T, strict=True)
        for known, cell, numbers in cells:
            done = columns.result(columns.masked(cell) if function.masked else cell)
            slack = 1e-9 * (1 + np.abs(numbers).max())
            assert known.span.low <= numbers.min() + slack
            assert known.span.high >= numbers.max() - slack
            if is_ckks:
                error = np.abs(ckks.decrypted(ctx, decryptor, done)[:ROWS] - numbers).max()
                assert error <= known.error, (function.seed, error, known)
                assert done.level == known.level
            else:
                exact, budget = bfv.decrypted(ctx, decryptor, done)
                assert exact[:ROWS].tolist() == numbers.tolist(), function.seed
                assert budget >= budget_of(known.error), function.seed
    return True


def check(seeds, scheme):
    ran = [run(RandomFunction(seed, scheme)) for seed in seeds]
    assert 2 * sum(ran) >= len(ran)
    return sum(ran)


@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
def test_random_circuits_are_right_or_refused(scheme):
    check(range(12), scheme)


@pytest.mark.long("ten thousand random circuits")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
def test_five_thousand_random_circuits_are_right_or_refused(scheme):
    check(range(5000), scheme)


@pytest.mark.parametrize("degree", [8192, 32768])
def test_scales_of_deep_parameters_stay(degree):
    """Squares of scales would drift away from level to level."""
    from mplang_he.bounds import SCALE
    from mplang_he.choice import ckks_parameters

    deepest = [each for n in range(30) if (each := ckks_parameters(degree, n, 4.0))][-1]
    ctx = context_of(deepest)
    assert deepest.levels >= 3
    ratios = np.array(ctx.scales) / 2.0**deepest.plain
    assert SCALE <= ratios.min() <= ratios.max() <= 1


def test_a_deep_circuit_is_right():
    function = RandomFunction(0, "ckks")
    function.steps = [("square", 0.5)] * 10
    function.x_range, function.masked = (-1.0, 1.0), False
    function.x = np.linspace(0.99, 1.0, 2 * ROWS).reshape(ROWS, 2)
    assert run(function)
