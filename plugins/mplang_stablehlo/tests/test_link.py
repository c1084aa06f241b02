"""Neighbouring modules become one: same results, fewer ops, every line is known."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from mplang_stablehlo import facts_of, signature_of
from mplang_stablehlo.link import MAX_LINES
from mplang_stablehlo.writer import ModuleWriter

import mplang_core as mp
from mplang_core.ext import PartyError, pack, prepared

CLUSTER = mp.ClusterSpec.simple(2)


def traced(fn, *args):
    return mp.compile(fn, *args, cluster_spec=CLUSTER).program


def modules(program):
    """The modules that parties run of a program, in order."""
    return [op for op in prepared(program).graph.walk() if op.opcode == "jax.run"]


def run(fn, *args, mode):
    with mp.Simulator(CLUSTER) as sim:
        return mp.fetch(sim, mp.evaluate(sim, fn, *args, mode=mode))


def code_of(fn, *args):
    from mplang_jax.frontend import jax_compile_from_data

    return jax_compile_from_data(fn, *args).pfunc.attrs["code"]


def test_a_chain_of_calls_is_one_module():
    def chain(x):
        for i in range(10):
            x = x * 2 + i
        return x

    (one,) = modules(traced(chain, 1))
    assert str(one.location).startswith("test_link.py")
    assert run(chain, 1, mode="launch") == run(chain, 1, mode="standard") == [2037, 2037]


def test_a_long_chain_falls_into_groups_of_equal_code():
    def chain(x):
        for _ in range(2500):
            x = x + 1
        return x

    program = traced(chain, 1)
    one = next(op for op in program.graph.walk() if op.opcode == "jax.run").attrs["code"]
    found = modules(program)
    fit = MAX_LINES // facts_of(one).lines
    assert len(found) == -(-2500 // fit) > 2
    assert len({op.attrs["code"] for op in found}) == 2
    assert run(chain, 1, mode="launch")[0] == 2501


def test_what_takes_long_to_compile_stands_once_in_a_group():
    """So the steps of a training are compiled once, and each with what is around it."""

    def training():
        w, x = mp.put("P0", np.ones(3, np.float32)), mp.put("P0", np.eye(3, dtype=np.float32))
        for _ in range(20):
            w = w + 1
            w = mp.device("P0")(lambda w, x: w - 0.5 * (x @ w))(w, x)
        return w

    found = modules(traced(training))
    assert len(found) == 20  # each step with the addition after it
    assert len({op.attrs["code"] for op in found}) == 3
    w = np.ones(3, np.float32)
    for _ in range(20):
        w = (w + 1) / 2
    np.testing.assert_allclose(run(training, mode="launch"), w, rtol=1e-6)


def test_only_what_others_use_leaves_a_module():
    def program(x):
        a = x + 1
        b = a * 3
        c = a - b
        return c, a

    (one,) = modules(traced(program, 5))
    assert len(one.outputs) == 2
    assert [v[0] for v in run(program, 5, mode="launch")] == [-12, 6]


def test_widths_and_kinds_of_numbers_mix():
    def program():
        x = mp.put("P0", np.arange(6, dtype=np.float32).reshape(2, 3))
        n = mp.put("P0", np.int64(2**40))
        b = mp.put("P0", np.array([True, False]))
        y = mp.device("P0")(lambda x: (x.T @ x, x.astype(jnp.bfloat16)))(x)
        z = mp.device("P0")(lambda n, b: (n + 1, jnp.where(b, n, 0)))(n, b)
        w = mp.device("P0")(lambda m, z: m.sum() + z.astype(jnp.float32) / 2**40)(y[0], z[1])
        u = mp.device("P0")(lambda v: v.astype(jnp.complex64) * 1j)(y[1])
        return w, z[0], u

    assert len(modules(traced(program))) == 1
    for a, b in zip(run(program, mode="launch"), run(program, mode="standard"), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert run(program, mode="launch")[1] == 2**40 + 1


def test_functions_of_modules_keep_apart():
    """JAX names inner functions alike in different modules, which do different things."""

    def program(x):
        a = mp.device("P0")(lambda x: jnp.where(x > 0, x, 0.0) + jnp.clip(x, 0, 1))(x)
        return mp.device("P0")(lambda x: jnp.where(x < 3, -x, x) + jnp.clip(x, 1, 2))(a)

    x = np.float32([-1, 0.5, 2, 7])
    a = np.where(x > 0, x, 0) + np.clip(x, 0, 1)
    expected = np.where(a < 3, -a, a) + np.clip(a, 1, 2)
    whole = lambda: program(mp.put("P0", x))  # noqa: E731
    assert len(modules(traced(whole))) == 1
    np.testing.assert_allclose(run(whole, mode="launch"), expected, rtol=1e-6)


def test_other_ops_and_other_parties_stay_between():
    def program():
        x = mp.put("P0", np.float32(3))
        y = mp.put("P1", mp.device("P0")(lambda x: x + 1)(x))
        return mp.device("P1")(lambda y: y * 2)(y)

    assert len(modules(traced(program))) == 2
    assert run(program, mode="launch") == 8


def test_an_engine_that_fails_names_all_lines():
    def big(x):
        return jnp.sort(jnp.arange(1 << 37) + x.astype(int))[:3].astype(x.dtype)

    def program():
        y = mp.put("P0", np.float32(1)) + 1
        z = mp.device("P0")(big)(y)
        return z * 2

    line = program.__code__.co_firstlineno
    with pytest.raises(PartyError, match="jax.run") as failure:
        run(program, mode="launch")
    assert [f"test_link.py:{line + i}" for i in (1, 2, 3)] == failure.value.location.split(", ")


def test_what_an_engine_refuses_stays_apart(monkeypatch):
    from mplang_jax import admission

    monkeypatch.setattr(admission, "is_admitted", lambda code: False)
    assert len(modules(traced(lambda x: x + 1 - 2, 1))) == 2


@pytest.mark.parametrize("text", ["", "    return", "  }\n}\n}", '    "'])
def test_code_that_is_none_is_refused_at_its_own_line(text):
    """Whoever sends it to a worker gets an error with a name, from the op that has it."""
    good = traced(lambda x: x + 1 - 2, np.float32(1))
    head = "module @main {\n  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {\n"
    _, second = (op for op in good.graph.walk() if op.opcode == "jax.run")
    second.attrs = {**second.attrs, "code": pack(head + text)}
    with pytest.raises(PartyError, match="it is not StableHLO") as failure:
        run(good, np.float32(1), mode="launch")
    assert failure.value.location == str(second.location)


def test_names_in_strings_are_no_functions():
    code = code_of(lambda x: jnp.linalg.cholesky(x), np.eye(2, dtype=np.float32))
    (kind,), _ = signature_of(code)
    writer = ModuleWriter([kind])
    text = writer.code(writer.call(code, writer.operands))
    from mplang_jax.admission import is_admitted

    assert is_admitted(text)


def test_a_module_without_operands_or_results_is_written():
    writer = ModuleWriter([])
    made = writer.call(code_of(lambda: jnp.arange(3)), [])
    takes, gives = signature_of(writer.code(made))
    assert takes == ()
    assert [str(kind) for kind in gives] == ["i32[3]"]
    assert signature_of(ModuleWriter([]).code([])) == ((), ())
