"""What holds for all programs: passes and projections change no result, and nothing is lost."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from mplang_passes import PASSES
from mplang_testing.programs import directly
from mplang_testing.strategies import programs
from passes.party_parts import PartHost, agrees, host, run, same_results, size, survives, traced

from mplang_core.ir import Graph, Program, print_program, to_bytes
from mplang_core.simp.passes import run_passes
from mplang_core.simp.projection import project

some = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
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
@some
def test_passes_change_no_result(passes, program, wide):
    whole, results = expected(program, wide)
    after = run_passes(whole, passes)
    for mode in ("standard", "launch"):
        same_results(run(host(program.parties), after, mode), results)


@pipelines
@everything
@some
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
@some
def test_projections_give_what_the_whole_gives(program, wide):
    whole, results = expected(program, wide)
    for each in (whole, run_passes(whole)):
        same_results(run(host(program.parties, PartHost), each), results)


@everything
@some
def test_projections_do_in_standard_mode_as_well(program, wide):
    whole, results = expected(program, wide)
    same_results(run(host(program.parties, PartHost), whole, "standard"), results)


@everything
@some
def test_projections_that_passes_went_over_do_as_well(program, wide):
    whole, results = expected(program, wide)
    same_results(run(host(program.parties, PartHost, passes=True), whole), results)


@everything
@some
def test_a_party_that_runs_its_part_works_with_those_that_run_the_whole(program, wide):
    whole, results = expected(program, wide)
    same_results(run(host(program.parties, PartHost, whole=(0, 2)), whole), results)


@given(program=programs())
@some
def test_projections_are_valid_programs_and_passes_keep_what_they_do(program):
    whole = traced(program)
    for rank in whole.mask:
        part = project(whole, rank)
        survives(part)
        assert project(part, rank).digest == part.digest
        assert size(part) <= size(whole) + sum(
            op.opcode in ("simp.nothing", "simp.recv") for op in part.graph.walk()
        )
        survives(run_passes(part))


@given(program=programs())
@some
def test_no_constant_of_others_is_in_a_projection(program):
    whole = traced(program)
    marked = _marked(whole)
    for rank in whole.mask:
        data = to_bytes(project(marked, rank))
        for op in marked.graph.walk():
            if op.opcode == "simp.constant":
                literal = op.attrs["value"].tobytes()
                assert (literal in data) == (rank in op.attrs["parties"])


def _marked(program: Program) -> Program:
    """Give each constant a value that stands nowhere else, of the same type."""
    fresh = itertools.count(0x5EC12E7 << 32)

    def mark(graph: Graph) -> Graph:
        ops = []
        for op in graph.ops:
            attrs = dict(op.attrs)
            if op.opcode == "simp.constant":
                attrs["value"] = np.full_like(attrs["value"], next(fresh))
            regions = {name: mark(region) for name, region in op.regions.items()}
            ops.append(replace(op, attrs=attrs, regions=regions))
        return Graph(graph.inputs, ops, graph.outputs)

    return Program(program.name, program.mask, mark(program.graph))
