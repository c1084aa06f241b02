"""Programs at once, from several threads: no value strays from one to another."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import toy

import mplang_core as mp

RUNS = 200


def around(seed, size):
    """A program that passes values about for some turns, and what it gives."""

    def program(start):
        x = mp.invoke(toy.add, mp.simp.pcall_static(range(size), toy.rank), start)
        index = mp.invoke(toy.next_rank, mp.simp.pcall_static(range(size), toy.rank))

        def body(state):
            i, x = state
            x = mp.pshfl(mp.pshfl_s(x, range(size), range(size)[::-1]), index)
            return mp.invoke(toy.add, i, mp.constant(1)), mp.invoke(toy.add, x, start)

        turns = mp.constant(1 + seed % 3)
        return mp.while_loop(lambda s: mp.invoke(toy.less, s[0], turns), body, (0, x))[1]

    x = np.arange(size) + seed
    for _ in range(1 + seed % 3):
        x = np.roll(x[::-1], -1) + seed
    return program, x.tolist()


def in_threads(*jobs):
    """Run jobs at once, and raise what any of them raises."""
    errors = []

    def run(job):
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def many(sim, seeds, mode):
    def job():
        for seed in seeds:
            program, expected = around(seed, sim.world_size)
            assert mp.fetch(sim, mp.evaluate(sim, program, seed, mode=mode)) == expected

    return job


def test_two_programs_at_once_on_one_simulator(simulate, mode):
    sim = simulate(2)
    other = "launch" if mode == "standard" else "standard"
    in_threads(many(sim, range(0, RUNS), mode), many(sim, range(1000, 1000 + RUNS), other))


def test_two_simulators_in_two_threads(simulate, mode):
    one, other = simulate(2), simulate(3)
    in_threads(many(one, range(RUNS), mode), many(other, range(1000, 1000 + RUNS), mode))


def test_contexts_are_per_thread(simulate):
    """Single ops, each thread in a context of its own; a third one traces."""
    sims = [simulate(2), simulate(3)]

    def typing(sim, first):
        def job():
            with mp.with_ctx(sim):
                for i in range(first, first + 50):
                    x = mp.invoke(toy.scale, mp.constant(i), by=3)
                    assert mp.cur_ctx() is sim
                    assert mp.fetch(sim, x) == [3 * i] * sim.world_size

        return job

    def tracing():
        ctx = mp.TraceContext(mp.ClusterSpec.simple(2))
        digests = {mp.trace(ctx, around(2, 2)[0], 2).program.digest for _ in range(50)}
        assert len(digests) == 1

    in_threads(typing(sims[0], 0), typing(sims[1], 5000), typing(sims[0], 9000), tracing)


def test_a_compiled_function_is_shared_by_threads(simulate):
    calls = []

    @mp.builtin_function
    def double(x):
        calls.append(x.type)
        return mp.invoke(toy.add, x, x)

    sim = simulate(2)
    compiled = mp.compile(lambda x: double(double(x)), cluster_spec=sim.cluster_spec)

    def job(first):
        def run():
            for i in range(first, first + 30):
                assert mp.fetch(sim, mp.evaluate(sim, compiled, i)) == [4 * i, 4 * i]

        return run

    in_threads(*(job(1000 * n) for n in range(4)))
    assert len(calls) == 2


def test_a_failure_in_one_thread_is_not_told_to_another(simulate, mode):
    sim = simulate(2)

    def failing():
        for _ in range(10):
            with pytest.raises(mp.errors.PartyError, match="toy.fail_at"):
                mp.evaluate(sim, lambda: mp.invoke(toy.fail_at, mp.constant(1), party=1), mode=mode)

    in_threads(failing, many(sim, range(20), mode))
