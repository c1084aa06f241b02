"""The table of disclosures, row by row; and what cannot be judged."""

from __future__ import annotations

import numpy as np
import pytest
import toy
from disclosure_rows import BOOL, SCALAR, VECTOR, at, line_of, rows, trace

import mplang_core as mp
from mplang_core import analysis
from mplang_core.edsl.peval import run_program

# -- moves


def test_a_plain_value_sent_where_a_share_was_meant():
    def program(x):
        return mp.pshfl_s(x, 1, [0])

    (move, result) = analysis.disclosure(trace(program, at(VECTOR, 0))).rows
    assert move == analysis.DisclosureRow(
        what="move",
        sender=0,
        receiver=1,
        type="f32[3]",
        payload="f32[3]",
        form="plain",
        bytes=12,
        inputs=(0,),
        discloses=(0,),
        line=line_of(program, 1),
        when="once",
        sources=(analysis.Source(0, mp.Mask.of(0), "input 0"),),
    )
    assert (result.what, result.sender, result.receiver) == ("result", 1, "host")


def test_what_stays_or_goes_back_discloses_nothing():
    def program(x):
        there = mp.pshfl_s(x, [0, 1], [0, 0])
        return mp.pshfl_s(there, 0, [1])

    assert rows(trace(program, at(SCALAR, 0))) == [
        ("move", 0, 1, "plain", (0,), (0,), "once"),
        ("move", 1, 0, "plain", (0,), (), "once"),
    ]


def test_taint_is_kept_apart_by_party_and_goes_through_ops():
    def program(x, y):
        both = mp.pconv([x, y])
        more = mp.simp.pcall_static((0, 1), toy.add, both, both)
        return mp.pshfl_s(more, [0, 1, 2], [1, 1, 0])

    assert rows(trace(program, at(SCALAR, 0), at(SCALAR, 1), parties=3)) == [
        ("move", 1, 0, "plain", (1,), (1,), "once"),
        ("move", 0, 2, "plain", (0,), (0,), "once"),
    ]


def test_literals_are_public():
    def program():
        return mp.pshfl_s(mp.constant([1.0], parties=0), 1, [0])

    assert rows(trace(program), results=True) == [
        ("move", 0, 1, "plain", (), (), "once"),
        ("result", 1, "host", "plain", (), (), "once"),
    ]


def test_an_op_that_takes_nothing_gives_data_of_its_party():
    def program():
        return mp.pshfl_s(mp.simp.pcall_static((0, 1), toy.rank), 0, [1])

    assert rows(trace(program)) == [("move", 1, 0, "plain", (1,), (1,), "once")]


@pytest.mark.needs("jax")
def test_compiled_code_that_takes_nothing_is_public():
    def program():
        made = mp.registry.get("jax.compile")(lambda: np.float32(3), mp.FeSignature((), {}))
        return mp.pshfl_s(run_program(made, mp.Mask.of(0)), 1, [0])

    assert rows(trace(program)) == [("move", 0, 1, "plain", (), (), "once")]


def test_a_dynamic_shuffle_asks_and_may_be_answered_by_anyone():
    def program(x, index):
        return mp.pshfl(x, index)

    def table(fn, *types):
        return rows(trace(fn, *types, parties=3), results=True)

    assert table(program, at(SCALAR, 0, 1, 2), at(SCALAR, 2)) == [
        ("index", 2, 0, "plain", (2,), (2,), "once"),
        ("index", 2, 1, "plain", (2,), (2,), "once"),
        ("move", 0, 2, "plain", (0,), (0,), "if asked for"),
        ("move", 1, 2, "plain", (1,), (1,), "if asked for"),
        ("result", 2, "host", "plain", (0, 1, 2), (0, 1, 2), "once"),
    ]


def test_values_whose_holders_are_unknown():
    def program(x, y):
        both = mp.simp.pcall_dynamic(toy.add, x, y)
        return mp.simp.pcall_dynamic(toy.add, both, mp.constant(1))

    types = at(SCALAR, 0, 1), mp.MPType(SCALAR, None)
    assert rows(trace(program, *types, parties=3), results=True) == [
        ("result", 0, "host", "plain", (0,), (0,), "once"),
        ("result", 1, "host", "plain", (1,), (1,), "once"),
    ]


# -- inputs of several holders


def test_an_input_of_several_is_each_holder_s_own_unless_it_is_called_uniform():
    def program(x):
        return mp.pshfl_s(x, [0, 1, 2], [1, 0, 0])

    some = trace(program, at(SCALAR, 0, 1), parties=3)
    assert rows(some, uniform_inputs=True) == [
        ("move", 1, 0, "plain", (0, 1), (), "once"),
        ("move", 0, 1, "plain", (0, 1), (), "once"),
        ("move", 0, 2, "plain", (0, 1), (0, 1), "once"),
    ]
    assert rows(some) == [
        ("move", 1, 0, "plain", (1,), (1,), "once"),
        ("move", 0, 1, "plain", (0,), (0,), "once"),
        ("move", 0, 2, "plain", (0,), (0,), "once"),
    ]
    (note,) = analysis.disclosure(some, uniform_inputs=True).notes
    assert "Input 0, i64[]@{0, 1}, is taken as the same" in note
    assert analysis.disclosure(some).notes == ()
    everyone = trace(program, 7, parties=3)
    table = analysis.disclosure(everyone, uniform_inputs=True)
    assert all(row.inputs == () for row in table.rows)
    assert "public" in table.notes[0]
    labels = [dict.fromkeys(range(3), analysis.PUBLIC)]
    known = analysis.disclosure(everyone, labels=labels)
    assert (known.rows, known.notes) == (table.rows, ())
    assert all(row.inputs for row in analysis.disclosure(everyone).rows)


def test_a_world_of_one_has_its_own_data():
    def program(x):
        return x

    assert rows(trace(program, at(SCALAR, 0), parties=1), results=True) == [
        ("result", 0, "host", "plain", (0,), (0,), "once")
    ]


# -- control flow


def everyone(x, frm: int = 0):
    return mp.pshfl_s(x, [0, 1], [frm, frm])


def test_a_predicate_is_learned_and_flows_into_what_depends_on_it():
    def program(secret):
        pred = mp.pconv([secret, mp.constant(True, parties=1)])
        return mp.uniform_cond(
            pred,
            lambda: mp.pshfl_s(mp.constant(1, parties=1), 0, [1]),
            lambda: mp.constant(2, parties=0),
        )

    assert rows(trace(program, at(BOOL, 0)), results=True) == [
        ("predicate", 0, 1, "plain", (0,), (0,), "once"),
        ("predicate", 1, 0, "plain", (), (), "once"),
        ("move", 1, 0, "plain", (0,), (), "in a branch"),
        ("result", 0, "host", "plain", (0,), (0,), "once"),
    ]


def test_a_predicate_that_is_not_compared_is_learned_all_the_same():
    def program(secret):
        return mp.uniform_cond(
            everyone(secret), lambda: mp.constant(1), lambda: mp.constant(2), verify_uniform=False
        )

    traced = trace(program, at(BOOL, 0))
    assert [row[:3] for row in rows(traced)] == [
        ("move", 0, 1),
        ("predicate", 0, 1),
        ("predicate", 1, 0),
    ]
    assert [link.messages for link in analysis.costs(traced).links] == [1]


def test_a_loop_goes_to_its_fixpoint_and_is_shown_once():
    """What comes in by the third variable reaches the first only in the third turn."""

    def program(secret):
        def step(state):
            i, a, b, c = state
            sent = mp.pshfl_s(a, 1, [0])
            back = mp.pshfl_s(sent, 0, [1])
            return mp.invoke(toy.add, i, mp.constant(1)), b, c, mp.invoke(toy.add, back, c)

        zero = mp.constant(0, parties=0)
        return mp.while_loop(
            lambda state: mp.invoke(toy.less, state[0], mp.constant(5)),
            step,
            (mp.constant(0), zero, mp.constant(1, parties=0), secret),
        )[1]

    assert rows(trace(program, at(SCALAR, 0)), results=True) == [
        ("predicate", 0, 1, "plain", (), (), "per iteration"),
        ("predicate", 1, 0, "plain", (), (), "per iteration"),
        ("move", 0, 1, "plain", (0,), (0,), "per iteration"),
        ("move", 1, 0, "plain", (0,), (), "per iteration"),
        ("result", 0, "host", "plain", (0,), (0,), "once"),
    ]


def test_the_number_of_turns_flows_into_the_state():
    def program(secret):
        limit = everyone(secret)

        def step(i):
            return mp.invoke(toy.add, i, mp.constant(1))

        return mp.while_loop(lambda i: mp.invoke(toy.less, i, limit), step, 0)

    assert rows(trace(program, at(SCALAR, 0)), results=True) == [
        ("move", 0, 1, "plain", (0,), (0,), "once"),
        ("predicate", 0, 1, "plain", (0,), (0,), "per iteration"),
        ("predicate", 1, 0, "plain", (0,), (), "per iteration"),
        ("result", 0, "host", "plain", (0,), (0,), "once"),
        ("result", 1, "host", "plain", (0,), (0,), "once"),
    ]


def test_nested_regions_and_calls_keep_the_inner_line():
    @mp.builtin_function
    def hand_over(x):
        return mp.pshfl_s(x, 1, [0])

    def program(x):
        def turn(state):
            i, y = state
            done = mp.uniform_cond(
                mp.invoke(toy.less, i, mp.constant(2)), lambda: hand_over(x), lambda: y
            )
            return mp.invoke(toy.add, i, mp.constant(1)), done

        start = mp.constant(0), mp.constant(0, parties=1)
        return mp.while_loop(
            lambda state: mp.invoke(toy.less, state[0], mp.constant(3)), turn, start
        )[1]

    table = analysis.disclosure(trace(program, at(SCALAR, 0)))
    (move,) = (row for row in table.rows if row.what == "move")
    assert move.when == "per iteration, in a branch"
    assert move.discloses == (0,)
    assert move.line == line_of(hand_over.__wrapped__, 2)


# -- what cannot be judged, or only with care


def test_a_program_for_one_party_is_whole():
    found = trace(lambda x: mp.invoke(toy.add, x, x), at(SCALAR, 0), parties=1)
    assert rows(found, results=True) == [("result", 0, "host", "plain", (0,), (0,), "once")]


def test_where_it_is_not_known_who_asks_everyone_may():
    """The mask of the index is known at run time only, so every party is answered."""
    index = mp.MPType(SCALAR, None)
    found = rows(trace(lambda x, i: mp.pshfl(x, i), at(VECTOR, 0), index, parties=3))
    asked = {(sender, receiver) for what, sender, receiver, *_ in found if what == "index"}
    assert asked == {(to, other) for to in range(3) for other in range(3) if to != other}
    moved = {(receiver, when) for what, _, receiver, _, _, _, when in found if what == "move"}
    assert moved == {(1, "if asked for"), (2, "if asked for")}
