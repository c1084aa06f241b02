"""Random programs give on the simulator what NumPy gives directly, and survive text and bytes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from mplang_cli.text import parse
from mplang_testing.programs import Program, build, directly
from mplang_testing.strategies import programs
from mplang_testing.waiting import DEADLINE

import mplang_core as mp
from mplang_core.ir import from_bytes, print_program, to_bytes


@cache
def simulator(parties: int) -> mp.simp.SimpHost:
    """One simulator per number of parties serves all examples: nothing may stray in it."""
    return mp.Simulator(mp.ClusterSpec.simple(parties), timeout=DEADLINE)


def agrees(found: list, expected: list) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_array_equal(mine, theirs)


def check_run(program: Program, mode: str) -> None:
    sim = simulator(program.parties)
    result = mp.evaluate(sim, build(program), mode=mode)
    agrees(mp.fetch(sim, result), directly(program))


@given(programs())
def test_standard_mode_agrees_with_numpy(program):
    check_run(program, "standard")


@given(programs())
def test_launch_mode_agrees_with_numpy(program):
    check_run(program, "launch")


@given(programs())
def test_text_and_bytes_give_the_program_back(program):
    context = mp.TraceContext(mp.ClusterSpec.simple(program.parties))
    traced = mp.trace(context, build(program)).program
    mp.verify(traced)
    for again in (parse(print_program(traced)), from_bytes(to_bytes(traced))):
        mp.verify(again)
        assert again.digest == traced.digest
        assert print_program(again) == print_program(traced)
        assert to_bytes(again) == to_bytes(traced)


@pytest.mark.slow("2,000 random programs in each mode")
@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_many_more(mode):
    @given(programs())
    @settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
    def many(program):
        check_run(program, mode)

    many()


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_programs_that_were_parsed_run_as_those_that_were_traced(mode):
    @given(programs())
    def check(program):
        sim = simulator(program.parties)
        context = mp.TraceContext(sim.cluster_spec)
        traced = mp.trace(context, build(program)).program
        with sim.options(mode=mode):
            (result,) = sim.evaluate(parse(print_program(traced)), [])
        agrees(sim.fetch(result), directly(program))

    check()
