"""A function of the user is called once per compilation, or what it changes happens once."""

from __future__ import annotations

import collections
import csv
import itertools
import random
from dataclasses import dataclass, field
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from mplang_jax import jax_compile
from mplang_jax.captured_state import CapturedState

import mplang_core as mp

F32, I32 = mp.TensorType("f32", (3,)), mp.TensorType("i32", (3,))
ASSIGNED = 0


def compiled(fn, *types):
    return jax_compile(fn, mp.FeSignature(types or (I32,), {}))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x * 2 + 1,
        lambda x: x - x.mean(),
        lambda x: jnp.sort(x),
        lambda x: jnp.where(x > 0, x, -x) @ x,
    ],
    ids=["arithmetic", "mean", "sort", "dot"],
)
def test_a_function_of_floats_is_called_once(fn, capsys):
    def printing(x):
        print("called")
        return fn(x)

    compiled(printing, F32)
    assert capsys.readouterr().out.split() == ["called"]


class Slotted:
    __slots__ = ("calls",)


@dataclass
class Model:
    """As estimators are written: fitting changes how it computes afterwards."""

    fits: bool = True
    steps: list[str] = field(default_factory=list)
    made = 0

    def fit(self, x):
        self.steps.append("fit" if self.fits else "apply")
        self.fits, Model.made = False, Model.made + 1
        return x + 1


def test_writes_into_what_a_function_captures_happen_once():
    items, table, seen, queue, array = [], {}, set(), collections.deque(), np.zeros(1)
    counted, ordered = collections.Counter(), collections.OrderedDict(a=1)
    slotted, space, model, append, data = Slotted(), SimpleNamespace(n=0), Model(), [], bytearray()
    turns = 0

    def fn(x, add=append.append):
        global ASSIGNED
        nonlocal turns
        turns, ASSIGNED = turns + 1, ASSIGNED + 1
        items.append(len(items))
        table[len(table)] = x.shape
        seen.add(len(seen))
        queue.append(len(queue))
        data.append(len(data))
        array[0] += 1
        counted["calls"] += 1
        ordered.move_to_end("a")
        ordered[len(ordered)] = 0
        slotted.calls = getattr(slotted, "calls", 0) + 1
        space.n += 1
        add(1)
        return model.fit(x)

    before = ASSIGNED, Model.made
    compiled(fn)
    assert (turns, ASSIGNED - before[0], Model.made - before[1]) == (1, 1, 1)
    assert (items, table, seen, list(queue), data) == ([0], {0: (3,)}, {0}, [0], b"\0")
    assert (array[0], counted, list(ordered)) == (1, {"calls": 1}, ["a", 1])
    assert (slotted.calls, space.n, append) == (1, 1, [1])
    assert (model.fits, model.steps) == (False, ["fit"])


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.astype("float64"),  # refused without 64-bit types, before it writes
        lambda x: x * jnp.float64(0.1),
        lambda x: x * np.array([0.1, 2, 3]),
        lambda x: x + jnp.zeros(3),
    ],
    ids=["dtype", "number", "array", "narrow"],
)
@pytest.mark.parametrize("kind", [F32, I32], ids=str)
def test_what_a_function_wrote_is_there_whichever_call_counts(fn, kind):
    before, after, model = [], [], SimpleNamespace()

    def writing(x):
        before.append(1)
        y = fn(x)
        after.append(y.dtype.name)
        model.fitted = True
        return y

    made = compiled(writing, kind)
    assert len(before) == 1
    assert after == [made.pfunc.outs_info[0].dtype.numpy.name]
    assert model.fitted


def test_a_function_that_fails_has_written_once():
    calls = []

    def fn(x):
        calls.append(1)
        raise ValueError("no")

    with pytest.raises(mp.errors.TraceError, match="ValueError: no"):
        compiled(fn)
    assert calls == [1]


@pytest.mark.parametrize("source", [random, np.random, random.Random(3), np.random.default_rng(3)])
def test_numbers_that_a_function_draws_are_the_first_ones(source):
    if isinstance(source, np.random.Generator):
        first = np.random.default_rng(3).random()
    else:
        source.seed(3)
        first = source.random()
        source.seed(3)
    drawn = []

    def fn(x):
        drawn.append(source.random())
        return x * drawn[-1] + jnp.arange(3)

    made = compiled(fn)
    assert drawn == [first]
    assert str(made.pfunc.outs_info[0]) == "f32[3]"


@pytest.mark.parametrize(
    "iterator", [iter([1, 2]), itertools.count(), (i for i in range(3)), enumerate([1])]
)
def test_an_iterator_that_would_be_advanced_twice_is_refused(iterator):
    with pytest.raises(mp.errors.TraceError, match=r"test_called_once.py:\d+: .*captures.*list"):
        compiled(lambda x: x * np.size(next(iterator)))


def test_an_iterator_that_stays_or_is_advanced_once_is_none_of_it():
    numbers = iter([1, 2])
    compiled(lambda x: x if numbers else -x)
    compiled(lambda x: x * next(numbers), F32)
    assert next(numbers) == 2


def test_what_answers_for_itself_is_not_asked():
    """A captured value may compute when it is asked for any attribute, as a lazy one does."""
    asked = []

    class Answering(type):
        def __getattribute__(cls, name):
            asked.append(name)
            return type.__getattribute__(cls, name)

    class Lazy(metaclass=Answering):
        def __getattribute__(self, name):
            asked.append(name)
            return object.__getattribute__(self, name)

    lazy = Lazy()
    asked.clear()
    CapturedState(lambda x: lazy, ())
    assert asked == []


@pytest.mark.parametrize(
    "iterator", [itertools.cycle([1, 2]), itertools.chain([1], [2]), csv.reader(["1", "2"])]
)
def test_an_iterator_that_does_not_say_where_it_is_is_refused(iterator):
    with pytest.raises(mp.errors.TraceError, match=r"may advance a \w+ that it captures"):
        compiled(lambda x: x * np.size(next(iterator)))


def test_more_than_a_snapshot_has_is_refused_and_numbers_do_not_count():
    numbers, objects = [0.5] * 200_000, [[i] for i in range(100_001)]
    seen = []
    compiled(lambda x: x * np.size(seen.append(len(numbers)) or 1))
    assert seen == [200_000]
    with pytest.raises(mp.errors.TraceError, match="captures more than 100000 objects"):
        compiled(lambda x: x * np.size(objects[0]))
