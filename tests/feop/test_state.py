"""State scopes: what a feop may keep, where, and for how long."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
import toy

import mplang_core as mp
from mplang_core.errors import FeStateError
from mplang_core.feop.state import FeState


def make(scope, name):
    @mp.feop(name=f"toy.{name}", state_scope=scope)
    def op(*args):
        """Keeps state."""

    return op


def test_the_process_state_is_one_per_feop():
    a, b = make("process", "kept_a"), make("process", "kept_b")
    a.__get_state__(None)["key"] = b"pure bytes"
    assert a.__get_state__()["key"] == b"pure bytes"
    assert "key" not in b.__get_state__()


def test_the_process_state_is_bounded_and_the_oldest_goes():
    state = FeState("toy", refuses=True, bound=3)
    for i in range(3):
        state[i] = i
    assert state[0] == 0  # used again
    state[3] = 3
    assert sorted(state) == [0, 2, 3]


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: {"a": (1, {"b": x})}])
def test_the_process_state_refuses_what_belongs_to_a_context(simulate, wrap):
    sim = simulate(2)
    tracer = mp.TraceContext(sim.cluster_spec)
    value = mp.evaluate(sim, lambda: mp.constant(1))
    state = make("process", "strict").__get_state__()
    bound = [value, value.value, mp.constant(tracer, 1), tracer, sim]
    bound.append(mp.trace(tracer, lambda x: x, 1))
    for thing in bound:
        with pytest.raises(FeStateError, match=r"^test_state.py:\d+: toy.strict keeps a"):
            state["key"] = wrap(thing)
    assert not state


def test_the_process_state_makes_a_thing_once_under_threads():
    state, made = FeState("toy", refuses=True), []
    threads = [
        threading.Thread(target=state.get_or_make, args=("k", lambda: made.append(1)))
        for _ in range(8)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert made == [1]


def test_the_ctx_state_is_under_the_root_and_isolated(simulate):
    op = make("ctx", "session")
    one, other = simulate(2), simulate(2)
    inner = mp.TraceContext(one.cluster_spec, one).fork()
    op.__get_state__(inner)["session"] = mp.evaluate(one, lambda: mp.constant(1))
    assert "session" in op.__get_state__(one)
    assert "session" not in op.__get_state__(other)
    with pytest.raises(FeStateError, match="no context is active"):
        op.__get_state__()


def test_the_ctx_state_goes_with_its_context():
    op = make("ctx", "passing")
    ctx = mp.TraceContext(mp.ClusterSpec.simple(2))

    class Thing:
        pass

    thing = Thing()
    op.__get_state__(ctx)["thing"] = thing
    ref = weakref.ref(thing)
    del thing, ctx
    gc.collect()
    assert ref() is None


def test_without_a_scope_nothing_is_kept():
    state = make("none", "stateless").__get_state__()
    assert dict(state) == {}
    with pytest.raises(FeStateError, match="state_scope='none'"):
        state["a"] = 1
    assert toy.add.__feop_meta__.state_scope == "none"


def test_a_callable_instance_is_a_feop():
    class Scale:
        """Scales by its configuration."""

        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return toy.scale(x, by=self.by)

    op = mp.feop(name="toy.scale_by_three", config_schema=None)(Scale(3))
    assert mp.is_feop(op)
    assert mp.registry.get("toy.scale_by_three") is op
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        result = mp.evaluate(sim, lambda: mp.device("P1")(op)(mp.put("P1", 5)))
        assert mp.fetch(sim, result) == 15
