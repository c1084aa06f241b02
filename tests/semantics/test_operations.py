"""The key operations, one by one: what each does at a worker."""

from __future__ import annotations

import toy

import mplang_core as mp


def run(sim, program, mode, *args):
    return mp.fetch(sim, mp.evaluate(sim, program, *args, mode=mode))


def test_pcall_static_runs_on_explicit_parties_and_gives_none_elsewhere(simulate, mode):
    def program():
        return mp.simp.pcall_static((0, 2), toy.rank)

    assert run(simulate(3), program, mode) == [0, None, 2]


def test_pcall_dynamic_runs_on_all_parties(simulate, mode):
    assert run(simulate(3), lambda: mp.simp.pcall_dynamic(toy.rank), mode) == [0, 1, 2]


def test_shuffle_static_sends_and_receives_along_the_routing(simulate, mode):
    def program():
        return mp.pshfl_s(mp.simp.pcall_static((0, 1, 2), toy.rank), (1, 2), (0, 0))

    assert run(simulate(3), program, mode) == [None, 0, 0]


def test_shuffle_dynamic_sends_and_receives_along_an_index(simulate, mode):
    def program():
        return mp.pshfl(mp.simp.pcall_static((0, 1, 2), toy.rank), mp.constant(2, parties=(0, 1)))

    assert run(simulate(3), program, mode) == [2, 2, None]


def test_converge_gives_the_first_that_is_there(simulate, mode):
    def program():
        return mp.pconv([mp.constant(5, parties=2), mp.constant(6, parties=0)])

    assert run(simulate(3), program, mode) == [6, None, 5]


def test_uniform_cond_runs_the_selected_branch_only(simulate, mode):
    def program(flag):
        good = lambda: mp.constant(1)  # noqa: E731
        bad = lambda: mp.invoke(toy.fail_at, mp.constant(2), party=0)  # noqa: E731
        return mp.uniform_cond(flag, good, bad)

    assert run(simulate(3), program, mode, True) == [1, 1, 1]


def test_while_loop_loops_until_the_condition_is_false(simulate, mode):
    def program(n):
        one = mp.constant(1)
        below = lambda i: mp.invoke(toy.less, i, n)  # noqa: E731
        return mp.while_loop(below, lambda i: mp.invoke(toy.add, i, one), 0)

    sim = simulate(3)
    assert run(sim, program, mode, 4) == [4, 4, 4]
    assert run(sim, program, mode, -1) == [0, 0, 0]


def test_constant_is_held_by_all_or_by_whom_it_names(simulate, mode):
    assert run(simulate(3), lambda: mp.constant(8), mode) == [8, 8, 8]
    assert run(simulate(3), lambda: mp.constant(8, parties=[1]), mode) == [None, 8, None]


def test_func_call_calls(simulate, mode):
    @mp.builtin_function
    def twice(x):
        return mp.invoke(toy.add, x, x)

    def program(x):
        return twice(twice(x))

    sim = simulate(2)
    assert run(sim, program, mode, 3) == [12, 12]
    ir = mp.compile(program, 3, cluster_spec=sim.cluster_spec).compiler_ir()
    assert ir.count('func.call(%0) {name = "twice"}') == 1
    assert ir.count("func.call") == 2
