"""The pipeline: which pass broke it, what stays as it was, what is known of ops."""

from __future__ import annotations

import pytest
from mplang_passes import PASSES, effects_of
from mplang_simulator import Simulator
from mplang_testing import dialect
from passes.party_parts import fresh, host, note, run, trace

import mplang_core as mp
from mplang_core.errors import PartyError, VerifyError
from mplang_core.ir import Effects, Graph, Operation, Program, Value, print_program
from mplang_core.simp.passes import run_passes
from mplang_core.types import TensorType


def program():
    x = mp.simp.pcall_static([0, 1], dialect.rank)
    y = mp.simp.pcall_static([0, 1], dialect.add, x, x)
    return mp.pshfl_s(y, [2], [1]), mp.pshfl_s(y, [2], [1])


def lose_the_results(program: Program) -> Program:
    """Breaks a program."""
    return Program(program.name, program.mask, Graph([], [], program.graph.outputs))


def test_a_pass_that_breaks_a_program_is_named():
    with pytest.raises(VerifyError, match="the pass lose_the_results broke the program: a graph"):
        run_passes(trace(program), [*PASSES, lose_the_results])


def test_a_program_that_was_invalid_before_is_the_fault_of_no_pass():
    with pytest.raises(VerifyError, match="^a graph returns a value") as error:
        run_passes(lose_the_results(trace(program)))
    assert error.value.code == "I001"


def test_the_pipeline_leaves_one_job_of_two():
    whole = trace(program)
    before = print_program(whole)
    after = run_passes(whole)
    assert print_program(whole) == before
    opcodes = [op.opcode for op in after.graph.walk()]
    assert opcodes == ["simp.pcall_static", "kit.rank", "kit.add", *["simp.shuffle_static"] * 2]
    assert run(host(3), after) == [[None, None, 2]] * 2


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_an_error_in_a_fused_body_shows_the_line_of_the_inner_op(mode):
    def fails():
        x = mp.simp.pcall_static([0, 1], dialect.rank)
        y = mp.simp.pcall_static([0, 1], dialect.add, x, x)
        return mp.simp.pcall_static([0, 1], dialect.fail_at, y, party=1)

    after = run_passes(trace(fails))
    assert len(after.graph.ops) == 1
    line = fails.__code__.co_firstlineno + 3
    with Simulator(mp.ClusterSpec.simple(3)) as on, pytest.raises(PartyError) as error:
        run(on, after, mode)
    assert error.value.location == f"test_pipeline.py:{line}"
    assert error.value.op == "kit.fail_at"


def test_effects_are_those_of_the_op_and_its_regions():
    def called(fn, *args):
        return trace(lambda: mp.simp.pcall_static([0], fn, *args)).graph.ops[-1]

    number = Value(TensorType("i64"))
    assert effects_of(called(dialect.rank)) is Effects.NONE
    assert effects_of(called(fresh)) is Effects.FRESH
    assert effects_of(trace(lambda: mp.invoke(note, mp.constant(1))).graph.ops[-1]) is Effects.ANY
    assert effects_of(Operation("kit.fail_at", (number,), (), {"party": 0})) is Effects.ANY


def test_a_loop_loses_the_state_that_nobody_needs():
    def counts():
        below = lambda s: mp.invoke(dialect.less, s[0], mp.constant(3))  # noqa: E731
        step = lambda s: (mp.invoke(dialect.add, s[0], mp.constant(1)), s[1], s[0])  # noqa: E731
        state = (mp.constant(0), mp.constant(7), mp.constant(5))
        return mp.while_loop(below, step, state)[2]

    after = run_passes(trace(counts))
    (loop,) = (op for op in after.graph.ops if op.opcode == "simp.while_loop")
    assert len(loop.outputs) == 2
    assert run(host(3), after) == [[2, 2, 2]]
