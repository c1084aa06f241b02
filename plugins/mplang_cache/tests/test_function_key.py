"""What counts as the same function: code and place, and all that it reads."""

from __future__ import annotations

import dataclasses
import enum
import functools
import os
import random
import sqlite3
import sys
import time
import types
import urllib.request
from datetime import datetime
from os.path import exists
from random import gauss
from time import time as now

import numpy as np
import pytest
from mplang_cache import key_of, packages_of
from numpy import load as stored
from numpy.random import normal

import mplang_core as mp

RATE = 0.1
TABLE = {"low": [1, 2], "high": (3, 4)}


class Model:
    scale = 2

    def __init__(self, weight):
        self.weight = weight

    def predict(self, x):
        return self.helper(x) * self.weight

    def helper(self, x):
        return x + self.scale


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    rate: float


class Colour(enum.Enum):
    RED = 1


def reads_global(x):
    return x * RATE


def calls_other(x):
    return reads_global(x) + 1


def made(captured):
    return lambda x: (captured, x)


def test_a_function_made_anew_at_the_same_place_is_the_same():
    assert made(1) is not made(1)
    assert key_of(made(1)) == key_of(made(1))
    assert key_of(lambda x: x) != key_of(lambda x: x + 0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("a", b"a"),
        ([1, 2], [2, 1]),
        ([1, 2], (1, 2)),
        ({"a": 1}, {"a": 2}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.float32(1), np.float64(1)),
        (np.arange(3), np.arange(3) + 1),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (Colour.RED, 1),
        (Setting(0.1), Setting(0.2)),
        (Model(1), Model(2)),
        (Model(1).predict, Model(2).predict),
        (functools.partial(reads_global, 1), functools.partial(reads_global, 2)),
        (made(1), made(2)),
        (np.sin, np.cos),
        (mp.TensorType("f32", (3,)), mp.TensorType("f32", (4,))),
        (None, ...),
        (frozenset({1}), frozenset({2})),
    ],
)
def test_what_is_captured_counts_by_content(one, other):
    assert key_of(made(one)) is not None
    assert key_of(made(one)) == key_of(made(one))
    assert key_of(made(one)) != key_of(made(other))


def test_equal_content_is_the_same():
    for captured in (lambda: np.arange(3), lambda: [1, {"a": (2,)}], lambda: Model([1.5])):
        assert key_of(made(captured())) == key_of(made(captured()))
    nan = float("nan")
    assert key_of(made(nan)) == key_of(made(nan))


def test_a_changed_global_is_noticed(monkeypatch):
    before = key_of(calls_other)
    assert key_of(calls_other) == before
    monkeypatch.setitem(globals(), "RATE", 0.2)
    assert key_of(calls_other) != before


def test_a_changed_element_of_a_global_is_noticed(monkeypatch):
    def reads(x):
        return x + TABLE["low"][0]

    before = key_of(reads)
    monkeypatch.setitem(TABLE, "low", [9, 2])
    assert key_of(reads) != before


def test_a_changed_array_is_noticed():
    weights = np.zeros(3)
    fn = made(weights)
    before = key_of(fn)
    weights[1] = 7
    assert key_of(fn) != before


def test_a_changed_class_method_or_attribute_is_noticed(monkeypatch):
    model = Model(1)
    before = key_of(made(model))
    monkeypatch.setattr(Model, "scale", 3)
    changed = key_of(made(model))
    assert changed != before
    monkeypatch.setattr(Model, "helper", lambda self, x: x)
    assert key_of(made(model)) not in (before, changed)
    monkeypatch.undo()
    model.weight = 5
    assert key_of(made(model)) != before


def test_a_changed_attribute_of_a_users_module_is_noticed(monkeypatch):
    settings = types.ModuleType("settings_of_a_user")
    settings.rate = 1
    monkeypatch.setitem(sys.modules, settings.__name__, settings)

    def reads(x):
        return x * settings.rate

    before = key_of(reads)
    settings.unread = 1
    assert key_of(reads) == before
    settings.rate = 2
    assert key_of(reads) != before


def test_a_changed_default_is_noticed():
    def fn(x, by=1):
        return x * by

    before = key_of(fn)
    fn.__defaults__ = (2,)
    assert key_of(fn) != before


def test_a_function_that_assigns_what_is_around_it_has_no_key():
    calls = 0

    def counts(x):
        nonlocal calls
        calls += 1
        return x * calls

    def sets_a_global(x):
        global CALLS
        CALLS = x

    def has_variables_of_its_own(x):
        y = x * 2

        def inner():
            nonlocal y
            y += 1
            return y

        return inner()

    assert key_of(counts) is key_of(sets_a_global) is None
    assert calls == 0
    assert key_of(has_variables_of_its_own) is not None


def draws(x):
    return x + np.random.normal()


def reads_a_file(x):
    import pandas as pd

    return x * pd.read_parquet("weights.parquet").w[0]


@pytest.mark.parametrize(
    "fn",
    [
        draws,
        lambda x: draws(x),
        lambda x: x + random.random(),
        lambda x: x + gauss(0, 1),
        lambda x: x + normal(),
        lambda x: x + time.time(),
        lambda x: x + now(),
        lambda x: x + datetime.now().year,
        lambda x: x + len(os.environ),
        lambda x: x + len(open("/etc/hostname").read()),  # noqa: SIM115
        lambda x: x * np.load("weights.npy"),
        lambda x: x * stored("weights.npy"),
        lambda x: x * np.loadtxt("weights.txt"),
        lambda x: x * np.fromfile("weights.bin"),
        lambda x: x * np.memmap("weights.bin"),
        lambda x: x * np.genfromtxt("weights.csv"),
        lambda x: x + sqlite3.connect("weights.db").total_changes,
        lambda x: x + urllib.request.urlopen("https://bank.example").status,
        lambda x: x + exists("weights.npy"),
        lambda x: reads_a_file(x),
    ],
)
def test_a_function_that_differs_from_call_to_call_has_no_key(fn):
    assert key_of(fn) is None


def test_a_method_of_an_object_counts_by_the_object():
    one, other = [], [1]
    assert key_of(made(one.append)) != key_of(made(other.append))
    assert key_of(made(one.append)) == key_of(made([].append))
    assert key_of(made(np.random.default_rng(0).normal)) is None


def test_a_function_may_refer_to_itself():
    def power(x, n):
        return x if n == 0 else x * power(x, n - 1)

    nest = [1]
    nest.append(nest)
    assert key_of(power) == key_of(power)
    assert key_of(made(nest)) == key_of(made(nest))
    assert key_of(power) is not None


@pytest.mark.parametrize(
    "captured",
    [
        iter([1]),
        np.random.default_rng(0),
        sys.stdout,
        type("Mine", (dict,), {})(a=1),
        np.array([object()]),
        list(range(20_000)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_can_change_and_is_not_compared_has_no_key(captured):
    assert key_of(made(captured)) is None


def test_a_value_of_a_program_has_no_key():
    with mp.with_ctx(mp.TraceContext(mp.ClusterSpec.simple(1))):
        assert key_of(made(mp.constant(1))) is None


def test_a_key_does_not_keep_a_function_of_a_library_alive():
    import weakref

    class Here:
        __slots__ = ("__weakref__",)

        def __call__(self, x):
            return x

    Here.__module__ = "numpy"  # as if it were installed
    callable_object = Here()
    key, ref = key_of(made(callable_object)), weakref.ref(callable_object)
    assert key == key_of(made(callable_object))
    del callable_object
    assert ref() is None
    assert key != key_of(made(Here()))


def annotated(x: np.ndarray | None) -> object:
    return x


def test_the_packages_that_a_function_names():
    import json

    def imports(x):
        import math

        return math.sqrt(x)

    assert "numpy" in packages_of(lambda x: np.sin(x))
    assert "json" in packages_of(lambda x: json.dumps(x))
    assert "math" in packages_of(imports)
    assert "numpy" in packages_of(functools.partial(lambda x, y: np.add(x, y), 1))
    assert not {"numpy", "json"} & packages_of(lambda x: x + 1)
    ones = np.ones(2)
    assert "numpy" in packages_of(lambda x, by=ones: x + by)
    assert "numpy" in packages_of(lambda x, *, by=np.float32: x + by)
    assert "numpy" in packages_of(annotated)  # by texts, as all annotations of this module are
    scope = {"np": np}
    exec("def annotated(x: list[np.ndarray | None]): return x", scope)
    assert "numpy" in packages_of(scope["annotated"])
    assert "numpy" in packages_of(np.sin)


@pytest.mark.needs("jax")
def test_transformations_of_jax_count_by_their_function():
    import jax

    def square(x):
        return x * x

    assert key_of(jax.vmap(square)) == key_of(jax.vmap(square)) is not None
    assert key_of(jax.vmap(square)) != key_of(jax.vmap(square, in_axes=1))
    assert key_of(jax.grad(square)) == key_of(jax.grad(square))
    assert key_of(jax.grad(square)) != key_of(jax.grad(lambda x: x * x))
    assert key_of(lambda key: jax.random.normal(key)) is not None


class Base:
    rate = 1

    def use(self, x):
        return x * self.rate


class Derived(Base):
    rate = 2

    def use(self, x):
        return super().use(x) + 1


class OneSlot:
    __slots__ = "weight"

    def __init__(self, weight):
        self.weight = weight


class PrivateSlot:
    __slots__ = ("__weight",)

    def __init__(self, weight):
        self.__weight = weight


@pytest.mark.parametrize("cls", [Base, Derived])
@pytest.mark.parametrize("name", ["rate", "use"])
def test_what_a_class_overrides_counts_and_what_it_overrides(monkeypatch, cls, name):
    before = key_of(made(Derived()))
    monkeypatch.setattr(cls, name, lambda self, x: x)
    assert key_of(made(Derived())) not in (before, None)


@pytest.mark.parametrize("cls", [OneSlot, PrivateSlot])
def test_slots_count(cls):
    assert key_of(made(cls(1))) == key_of(made(cls(1))) is not None
    assert key_of(made(cls(1))) != key_of(made(cls(2)))


def test_a_callable_object_of_a_library_may_change():
    assert key_of(made(np.poly1d([1, 2]))) is None
    assert key_of(made(np.vectorize(abs))) is None


def test_a_class_in_a_function_reads_globals(monkeypatch):
    def makes_a_class(x):
        class Here:
            rate = RATE

        return x * Here.rate

    before = key_of(makes_a_class)
    monkeypatch.setitem(globals(), "RATE", 0.2)
    assert key_of(makes_a_class) != before
