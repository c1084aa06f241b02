"""Arrays that inner functions capture become operands, whatever the primitive around them is."""

from __future__ import annotations

import re
import sys
import types
import unittest
from collections import Counter

import numpy as np
import pytest

from mplang_core import FeSignature, TensorType

pytestmark = pytest.mark.needs("jax")

WEIGHTS = np.arange(8, dtype=np.float32).reshape(4, 2) - 3
X = np.array([0.5, 1.5, 2.5, 3.5], np.float32)


@pytest.fixture(scope="module")
def harnesses():
    """At most three of the cases that JAX tests each of its primitives with."""
    from jax._src import config

    stub = {
        name: types.ModuleType(f"absl.testing.{name}") for name in ("parameterized", "absltest")
    }
    stub["parameterized"].TestCase = unittest.TestCase
    stub["absltest"].TestLoader = unittest.TestLoader
    testing = types.ModuleType("absl.testing")
    vars(testing).update(stub)
    names = {f"absl.testing.{name}": module for name, module in stub.items()}
    names |= {"absl": types.ModuleType("absl"), "absl.testing": testing}
    with pytest.MonkeyPatch.context() as patch:  # absl is a dependency of JAX's tests only
        for name, module in names.items():
            patch.setitem(sys.modules, name, module)
        patch.setattr(config, "parse_flags_with_absl", lambda: None, raising=False)
        from jax._src.internal_test_util import test_harnesses

    found: Counter[str] = Counter()
    few = []
    for harness in test_harnesses.all_harnesses:
        found[harness.group_name] += 1
        if found[harness.group_name] <= 3:
            few.append(harness)
    assert len(found) > 100
    return few


def shown(jaxpr):
    return re.sub("0x[0-9a-f]+", "", str(jaxpr))


def test_our_evaluation_of_a_jaxpr_is_that_of_jax_for_each_primitive(harnesses):
    import jax
    from mplang_jax import tracing

    with jax.enable_x64(True):
        for harness in harnesses:
            args = harness.dyn_args_maker(np.random.RandomState(0))
            traced = jax.make_jaxpr(harness.dyn_fun)(*args)
            again = lambda *xs: tracing._run(traced.jaxpr, traced.consts, jax.tree.leaves(xs))  # noqa: B023, E731
            assert shown(jax.make_jaxpr(again)(*args)) == shown(traced), harness.fullname


def test_each_primitive_takes_an_array_that_a_jitted_function_captures(harnesses):
    import jax
    from mplang_jax import tracing

    with jax.enable_x64(True):
        for harness in harnesses:
            args = harness.dyn_args_maker(np.random.RandomState(0))
            if not args or not isinstance(args[0], np.ndarray | jax.Array):
                continue
            held = jax.numpy.asarray(args[0])
            fn = jax.jit(lambda *rest: harness.dyn_fun(held, *rest))  # noqa: B023
            traced = jax.make_jaxpr(fn)(*args[1:])
            assert not held.size or tracing._hides_consts(traced.jaxpr) or held.ndim == 0
            run = lambda *xs: tracing._run(traced.jaxpr, traced.consts, jax.tree.leaves(xs))  # noqa: B023, E731
            assert not tracing._hides_consts(jax.make_jaxpr(run)(*args[1:]).jaxpr), harness.fullname


def model(activation):
    import jax

    layer = jax.jit(lambda v: v @ WEIGHTS)
    return lambda v: activation(layer(v))


def with_vjp():
    import jax

    fn = jax.custom_vjp(lambda v: v * 2)
    fn.defvjp(lambda v: (v * 2, None), lambda _, g: (g * 2,))
    return model(fn)


def own_rule():
    import jax

    fn = jax.custom_vjp(lambda v: v @ WEIGHTS)
    fn.defvjp(lambda v: (v @ WEIGHTS, None), lambda _, g: (g @ WEIGHTS.T,))
    return jax.grad(lambda v: fn(v).sum())


def own_jvp():
    import jax

    fn = jax.custom_jvp(lambda v: v * WEIGHTS[:, 0])
    fn.defjvp(lambda p, t: (fn(p[0]), t[0] * WEIGHTS[:, 0]))
    return jax.grad(lambda v: fn(v).sum())


FUNCTIONS = {
    "relu": lambda jax: model(jax.nn.relu),
    "relu6": lambda jax: model(jax.nn.relu6),
    "silu": lambda jax: model(jax.nn.silu),
    "gelu": lambda jax: model(jax.nn.gelu),
    "logsumexp": lambda jax: model(jax.nn.logsumexp),
    "xlogy": lambda jax: model(lambda v: jax.scipy.special.xlogy(v, 2.0)),
    "xlog1py": lambda jax: model(lambda v: jax.scipy.special.xlog1py(v, 2.0)),
    "expi": lambda jax: lambda v: jax.scipy.special.expi(jax.numpy.abs(v)),
    "entr": lambda jax: model(jax.scipy.special.entr),
    "custom_vjp": lambda jax: with_vjp(),
    "custom_vjp of its own array": lambda jax: own_rule(),
    "custom_jvp of its own array": lambda jax: own_jvp(),
    "grad of relu": lambda jax: jax.grad(lambda v: model(jax.nn.relu)(v).sum()),
    "relu in scan": lambda jax: (
        lambda v: jax.lax.scan(lambda c, _: (jax.nn.relu(c * WEIGHTS[:, 0]), None), v, None, 3)[0]
    ),
    "relu in a branch": lambda jax: (
        lambda v: jax.lax.cond(v.sum() > 0, model(jax.nn.relu), lambda v: v @ WEIGHTS, v)
    ),
    "relu in a loop": lambda jax: (
        lambda v: jax.lax.fori_loop(
            0, 3, lambda i, v: jax.nn.relu(jax.jit(lambda v: v * WEIGHTS[:, 1])(v)), v
        )
    ),
    "relu in a checkpoint": lambda jax: jax.checkpoint(model(jax.nn.relu)),
    "relu in vmap": lambda jax: lambda v: jax.vmap(model(jax.nn.relu))(v[None]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_custom_rules_beside_captured_arrays_give_what_jax_gives(name):
    import jax
    from mplang_jax import jax_compile

    import mplang_core as mp

    fn = FUNCTIONS[name](jax)
    made = jax_compile(fn, FeSignature((TensorType("f32", (4,)),)))
    assert len(made.consts) == len(made.pfunc.ins_info) - 1
    with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        got = mp.fetch(sim, mp.evaluate(sim, lambda x: mp.device("P0")(fn)(x), X))
    np.testing.assert_allclose(got, fn(X), rtol=1e-6)


def test_a_line_in_a_function_that_captures_is_the_users():
    from mplang_jax import jax_compile
    from mplang_stablehlo.ext import lines_of

    program = jax_compile(model(lambda v: v.sum()), FeSignature((TensorType("f32", (4,)),)))
    lines = [line for line in lines_of(program.pfunc.attrs["code"]) if line]
    assert lines
    assert all(line.file.endswith("test_captured_arrays.py") for line in lines)
