"""Classes that are registered with JAX's trees, as arguments and as results."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.ext import TraceError

pytestmark = pytest.mark.needs("jax")

X = np.arange(3, dtype=np.float32)


def classes():
    """Return classes with two children, each registered in another way."""
    import jax

    @jax.tree_util.register_pytree_node_class
    class ByDecorator:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def tree_flatten(self):
            return (self.a, self.b), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    class ByCall:
        def __init__(self, a, b):
            self.a, self.b = a, b

    jax.tree_util.register_pytree_node(
        ByCall,
        lambda nest: ([nest.a, nest.b], {"aux": "that has no hash"}),
        lambda _, c: ByCall(*c),
    )

    class WithKeys:
        def __init__(self, a, b):
            self.a, self.b = a, b

    key = jax.tree_util.GetAttrKey
    jax.tree_util.register_pytree_with_keys(
        WithKeys,
        lambda nest: (((key("a"), nest.a), (key("b"), nest.b)), None),
        lambda _, children: WithKeys(*children),
    )

    @dataclasses.dataclass
    class OfFields:
        a: Any
        b: Any
        unit: str = "euro"

    jax.tree_util.register_dataclass(OfFields, data_fields=["a", "b"], meta_fields=["unit"])

    class OfDict(dict):
        def __init__(self, a, b):
            self.a, self.b = a, b

    jax.tree_util.register_pytree_node(
        OfDict, lambda nest: ((nest.a, nest.b), None), lambda _, c: OfDict(*c)
    )
    return {cls.__name__: cls for cls in (ByDecorator, ByCall, WithKeys, OfFields, OfDict)}


NAMES = ["ByDecorator", "ByCall", "WithKeys", "OfFields", "OfDict"]


@pytest.mark.parametrize("device", ["P0", pytest.param("SP0", marks=pytest.mark.needs("spu"))])
@pytest.mark.parametrize("name", NAMES)
def test_a_registered_class_comes_back_as_it_is(name, device):
    cls = classes()[name]

    def program():
        made = mp.device(device)(lambda x: cls(x + 1, x * 2))(mp.put("P0", X))
        again = mp.device(device)(lambda nest: cls(nest.a + nest.b, nest.b))(made)
        return mp.reveal(again, to="P0") if device == "SP0" else again

    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        got = mp.fetch(sim, mp.evaluate(sim, program))
    assert type(got) is cls
    np.testing.assert_allclose(got.a, X + 1 + X * 2)
    np.testing.assert_allclose(got.b, X * 2)


@pytest.mark.parametrize("name", NAMES)
def test_a_registered_class_of_values_is_an_argument_and_a_result_of_a_program(name):
    cls = classes()[name]
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim, mp.with_ctx(sim):
        given = cls(mp.put("P0", X), mp.put("P0", X + 1))
        got = mp.fetch(sim, mp.evaluate(sim, lambda nest: cls(nest.b, nest.a), given))
    assert type(got) is cls
    np.testing.assert_array_equal(got.a, X + 1)


def test_a_class_that_is_not_registered_is_told_with_the_line_and_what_to_do():
    class Plain:
        pass

    with (
        mp.Simulator(mp.ClusterSpec.simple(1)) as sim,
        pytest.raises(TraceError, match=r"test_nests.py:\d+: .*Plain.*register_pytree_node") as e,
    ):
        mp.evaluate(sim, lambda: mp.device("P0")(lambda x: Plain())(mp.put("P0", X)))
    assert "_flat" not in str(e.value)
