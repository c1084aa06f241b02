"""What holds for all programs: passes and skipped ops change no result, and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from mplang_passes import PASSES
from mplang_testing.programs import directly
from mplang_testing.strategies import programs
from passes.party_parts import DiligentHost, agrees, host, run, same_results, size, survives, traced

from mplang_core import MPType
from mplang_core.ext import participants_of
from mplang_core.ir import print_program
from mplang_core.simp.passes import run_passes

PIPELINES = {each.__name__: [each] for each in PASSES} | {"default": list(PASSES)}
pipelines = pytest.mark.parametrize("passes", PIPELINES.values(), ids=PIPELINES)


everything = given(program=programs(), wide=st.booleans())


def expected(program, wide):
    """Return the traced program and its results, of which NumPy knows the first."""
    whole = traced(program, wide=wide)
    results = run(host(program.parties), whole)
    agrees(results[0], directly(program))
    return whole, results


@pipelines
@everything
def test_passes_change_no_result(passes, program, wide):
    whole, results = expected(program, wide)
    after = run_passes(whole, passes)
    for mode in ("standard", "launch"):
        same_results(run(host(program.parties), after, mode), results)


@pipelines
@everything
def test_passes_give_valid_programs_no_longer_than_before_and_leave_those_alone(
    passes, program, wide
):
    whole = traced(program, wide=wide)
    text = print_program(whole)
    after = run_passes(whole, passes)
    survives(after)
    assert size(after) <= size(whole)
    assert print_program(whole) == text
    if len(passes) == 1:
        assert run_passes(after, passes).digest == after.digest


@everything
def test_a_party_that_skips_what_it_takes_no_part_in_works_with_those_that_run_all(program, wide):
    whole, results = expected(program, wide)
    for mode in ("launch", "standard"):
        diligent = host(program.parties, DiligentHost, diligent=(0,))
        same_results(run(diligent, whole, mode), results)


@given(program=programs())
def test_a_party_has_a_part_in_all_that_it_holds(program):
    whole = traced(program)
    for op in whole.graph.walk():
        parties = participants_of(op, whole.mask)
        for value in op.outputs:
            if isinstance(value.type, MPType) and value.type.pmask is not None:
                assert value.type.pmask <= parties
