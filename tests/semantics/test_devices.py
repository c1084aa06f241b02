"""Devices: where things run, how they move, what is inferred."""

from __future__ import annotations

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core.errors import TraceError

pytest.importorskip("mplang_jax")
pytest.importorskip("mplang_spu")
pytestmark = pytest.mark.needs("jax", "spu")

SPU = {"kind": "SPU", "members": [0, 1], "config": {"protocol": "SEMI2K"}}
CLUSTER = mp.ClusterSpec.from_dict(
    {
        "nodes": [{}, {}],
        "devices": {
            "P0": {"kind": "PPU", "members": [0]},
            "P1": {"kind": "PPU", "members": [1]},
            "SP0": SPU,
        },
    }
)


def run(simulate, program, mode, *args):
    sim = simulate(CLUSTER)
    result = mp.evaluate(sim, program, *args, mode=mode)
    return result, mp.fetch(sim, result)


def test_bare_nodes_get_their_devices():
    assert list(mp.ClusterSpec.simple(1).devices) == ["P0"]
    cluster = mp.ClusterSpec.simple(3)
    assert {name: str(cluster.device(name).mask) for name in cluster.devices} == {
        "P0": "{0}",
        "P1": "{1}",
        "P2": "{2}",
        "SP0": "{0, 1, 2}",
    }


def test_a_function_runs_where_it_is_told_to(simulate, mode):
    def program():
        return mp.device("P1")(lambda x, y: x @ y)(np.eye(2), mp.put("P1", [3.0, 4.0]))

    result, data = run(simulate, program, mode)
    assert (result.device.name, str(result.type)) == ("P1", "f64[2]@{1}")
    np.testing.assert_array_equal(data, [3, 4])


def test_device_as_a_decorator_with_keywords_and_nests(simulate, mode):
    @mp.device("P0")
    def scale(values, *, axis):
        return {"sum": values["x"].sum(axis=axis), "twice": [values["x"] * 2]}

    _, data = run(simulate, lambda: scale({"x": np.ones((2, 3))}, axis=1), mode)
    np.testing.assert_array_equal(data["sum"], [3, 3])
    np.testing.assert_array_equal(data["twice"][0], np.full((2, 3), 2.0))


def test_the_device_is_inferred_from_the_arguments(simulate, mode):
    result, data = run(simulate, lambda: mp.device()(lambda x: x.sum())(mp.put("P1", [1, 2])), mode)
    assert (result.device.name, data) == ("P1", 3)


def test_a_public_value_can_be_used_anywhere(simulate, mode):
    def program(x):
        return mp.device("P0")(lambda v: v + 1)(x), mp.put("P1", 10) + x

    results, data = run(simulate, program, mode, 5)
    assert [result.device.name for result in results] == ["P0", "P1"]
    assert data == (6, 15)


def test_a_protected_device_is_inferred_where_plain_ones_would_disclose(simulate, mode):
    def program():
        total = mp.put("P0", np.float32(1)) + mp.put("P1", np.float32(2))
        return total, mp.reveal(total + mp.put("P1", np.float32(3)), to="P0")

    sim = simulate(CLUSTER)
    total, revealed = mp.evaluate(sim, program, mode=mode)
    assert total.device.name == "SP0"
    assert mp.fetch(sim, revealed) == pytest.approx(6, abs=1e-3)


def test_put_moves_in_plain_when_it_is_said(simulate, mode):
    result, data = run(simulate, lambda: mp.put("P1", mp.put("P0", [1, 2])), mode)
    assert (result.device.name, str(result.type)) == ("P1", "i64[2]@{1}")
    np.testing.assert_array_equal(data, [1, 2])


def test_put_where_it_is_already_moves_nothing():
    def program(x):
        return mp.put("P0", mp.put("P0", x))

    tfn = mp.trace(mp.TraceContext(CLUSTER), program, 1)
    assert [op.opcode for op in tfn.program.graph.ops] == ["simp.shuffle_static"]


def test_reveal_of_a_plain_value_tells_all(simulate, mode):
    result, data = run(simulate, lambda: mp.reveal(mp.put("P1", 5)), mode)
    assert result.device is None
    assert data == [5, 5]


def test_reveal_of_what_all_know_changes_nothing(simulate, mode):
    assert run(simulate, lambda: mp.reveal(mp.constant(5)), mode)[1] == [5, 5]


def test_seal_and_reveal_keep_nests(simulate, mode):
    def program():
        sealed = mp.seal({"a": np.float32(1), "b": [np.int32([2, 3]), mp.put("P1", True)]})
        return mp.reveal(sealed, to="P0")

    _, data = run(simulate, program, mode)
    assert data["a"] == pytest.approx(1, abs=1e-3)
    np.testing.assert_array_equal(data["b"][0], [2, 3])
    assert data["b"][1].dtype == np.bool_


def test_a_party_level_value_goes_into_protection(simulate, mode):
    def program():
        x = mp.simp.pcall_static((1,), lambda v: v * 2, mp.constant(np.float32(4)))
        return mp.reveal(mp.device("SP0")(lambda v: v + 1)(x))

    assert run(simulate, program, mode)[1] == pytest.approx([9, 9], abs=1e-3)


def test_a_value_of_an_unknown_mask_must_be_placed_first():
    def program():
        return mp.seal(mp.simp.pcall_dynamic(lambda v: v, mp.constant(1)))

    with pytest.raises(TraceError, match="known only at run time"):
        mp.trace(mp.TraceContext(CLUSTER), program)


def test_plain_functions_run_in_pcalls(simulate, mode):
    def program():
        a, b = mp.simp.pcall_static((0, 1), lambda x, by: (x * by, x.sum()), np.arange(3), 2)
        c = mp.simp.pcall_dynamic(lambda x: -x, b)
        return a, c

    _, (a, c) = run(simulate, program, mode)
    np.testing.assert_array_equal(a, [[0, 2, 4]] * 2)
    assert c == [-3, -3]


def test_an_mp_function_runs_in_a_pcall_and_on_a_plain_device(simulate, mode):
    @mp.function
    def body(x):
        return (x + 1) * x

    def program():
        return mp.simp.pcall_static(0, body, mp.constant(3)), mp.device("P1")(body)(mp.put("P1", 4))

    assert run(simulate, program, mode)[1] == ([12, None], 20)


@pytest.mark.parametrize(
    ("operate", "expected"),
    [
        (lambda x: x + 1, [3, 4]),
        (lambda x: 10 - x, [8, 7]),
        (lambda x: np.array([1, 1]) + x, [3, 4]),
        (lambda x: x / 2, [1, 1.5]),
        (lambda x: x // 2, [1, 1]),
        (lambda x: x % 2, [0, 1]),
        (lambda x: x**2, [4, 9]),
        (lambda x: 2**x, [4, 8]),
        (lambda x: x @ x, 13),
        (lambda x: -x, [-2, -3]),
        (lambda x: abs(-x), [2, 3]),
        (lambda x: x < 3, [True, False]),
        (lambda x: x == 3, [False, True]),
        (lambda x: (x > 2) & (x < 9), [False, True]),
        (lambda x: ~(x > 2), [True, False]),
        (lambda x: x[1], 3),
        (lambda x: x[::-1], [3, 2]),
        (lambda x: x[None, :, None].shape, None),
        (lambda x: [y * 2 for y in x][1], 6),
    ],
)
def test_operators(simulate, operate, expected):
    if expected is None:
        shapes = []
        mp.trace(mp.TraceContext(CLUSTER), lambda: shapes.append(operate(mp.put("P0", [2, 3]))))
        assert shapes == [(1, 2, 1)]
        return
    _, data = run(simulate, lambda: operate(mp.put("P0", [2, 3])), "standard")
    np.testing.assert_array_equal(data, expected)


def test_eager_use(simulate):
    sim = simulate(CLUSTER)
    with mp.with_ctx(sim):
        x = mp.put("P0", np.float32([1, 2]))
        y = mp.device()(lambda v: v * 3)(x)
        z = mp.reveal(mp.seal(y) + mp.put("P1", np.float32(1)))
        assert z.shape == (2,)
    np.testing.assert_allclose(mp.fetch(sim, z), [[4, 7]] * 2, atol=1e-3)


# -- values that differ from party to party


def ranks(parties=(0, 1)):
    return mp.simp.pcall_static(parties, toy.rank)


@pytest.mark.parametrize(
    "program",
    [
        lambda: mp.seal(ranks()),
        lambda: mp.reveal(ranks()),
        lambda: mp.device("SP0")(lambda r, s: r + s)(ranks(), mp.put("P0", 5)),
        lambda: mp.seal(mp.simp.pcall_static((0, 1), lambda r: r + 1, ranks())),
        lambda: mp.seal(mp.while_loop(lambda s: mp.constant(False), lambda s: ranks(), 0)),
        lambda: mp.seal(mp.uniform_cond(True, lambda: ranks(), lambda: mp.constant(1))),
    ],
)
def test_a_value_that_may_differ_is_not_taken_for_one_that_all_know(program):
    with pytest.raises(TraceError, match="each of {0, 1} may hold another"):
        mp.trace(mp.TraceContext(CLUSTER), program)


def test_a_value_that_may_differ_is_used_once_it_is_said_whose(simulate, mode):
    def program():
        mine = mp.put("P1", ranks())  # P1 has it already: its own
        return mp.reveal(mp.seal(mine)), mp.reveal(mp.pshfl_s(ranks(), 0, 1))

    assert run(simulate, program, mode)[1] == ([1, 1], [1, 1])


@pytest.mark.parametrize(
    "program",
    [
        lambda x: mp.seal(x),
        lambda x: mp.seal(x * 2 + 1),
        lambda x: mp.seal(mp.reveal(mp.put("P1", 3)) - x),
        lambda x: mp.seal(mp.while_loop(lambda s: s < 3, lambda s: s + 1, x)),
        lambda x: mp.seal(mp.uniform_cond(x < 3, lambda: x, lambda: x + 1)),
        lambda x: mp.seal(ranks((1,))),
        lambda x: mp.seal(mp.builtin_function(lambda y: y * 2)(x)),
    ],
)
def test_what_all_know_to_be_the_same_goes_into_protection(simulate, program):
    run(simulate, lambda x: mp.reveal(program(x)), "standard", 2)


def test_values_by_keyword_are_operands_too(simulate, mode):
    def program():
        x, y = mp.put("P0", 2), mp.put("P0", [3, 4])
        return mp.device("P0")(lambda x, *, y, by: x * y["y"] + by)(x, y={"y": y}, by=1)

    np.testing.assert_array_equal(run(simulate, program, mode)[1], [7, 9])


def test_a_list_of_numbers_is_an_array_everywhere(simulate, mode):
    def program():
        double = lambda x: x * 2  # noqa: E731
        return (
            mp.device("P0")(double)([1.0, 2.0]),
            mp.put("P0", [1.0, 2.0]) * 2,
            mp.device("P0")(lambda x: x)(mp.simp.pcall_static(0, double, [1.0, 2.0])),
            mp.put("P0", mp.while_loop(lambda s: mp.constant(False), lambda s: s, [2.0, 4.0])),
        )

    for found in run(simulate, program, mode)[1]:
        np.testing.assert_array_equal(found, [2, 4])


def test_a_value_that_a_plain_function_closes_over_is_refused():
    def program():
        x = mp.put("P0", 1)
        return mp.device("P0")(lambda y: y + x)(x)

    with pytest.raises(TraceError, match="pass it to that function as an argument"):
        mp.trace(mp.TraceContext(CLUSTER), program)
