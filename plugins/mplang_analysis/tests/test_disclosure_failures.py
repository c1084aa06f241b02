"""What parties read of their own, what ops tell by failing, and what the host gets."""

from __future__ import annotations

import pytest
import toy
from disclosure_rows import BOOL, SCALAR, VECTOR, at, line_of, rows, trace
from public_keys import run, send

import mplang_core as mp
from mplang_core import analysis


@mp.simple_op("local.read", total=True)
def read(year: mp.TensorType) -> mp.TensorType:
    """Reads the party's data of a year, and does not say so."""
    return mp.TensorType("f32", (3,))


@mp.simple_op("local.one", reads=("accounts",), total=True)
def read_one() -> mp.TensorType:
    """Reads a data set."""
    return mp.TensorType("f32", (3,))


@mp.simple_op("local.picky", reads=())
def picky(x: mp.TensorType) -> mp.TensorType:
    """Fails for some operands."""
    return x


@mp.simple_op("local.narrow", reads=(), total=lambda op: not op.attrs["exact"])
def narrow(x: mp.TensorType, *, exact: bool) -> mp.TensorType:
    """Fails on numbers that do not fit, if asked to."""
    return x


# -- own data


def test_an_op_with_operands_may_read_its_party_s_data():
    def program():
        return send(run(0, read, mp.constant(2024)), 0, 1)

    assert rows(trace(program)) == [("move", 0, 1, "plain", (0,), (0,), "once")]


def test_an_op_says_what_it_reads():
    followed = analysis.follow(trace(lambda: run(1, read_one)).program)
    (label,) = followed.outputs[0].values()
    assert label.sources == {analysis.Source(1, mp.Mask.of(1), "accounts")}


def test_an_op_says_that_it_reads_nothing():
    def program():
        return send(run(0, toy.add, mp.constant(1), mp.constant(2)), 0, 1)

    assert rows(trace(program)) == [("move", 0, 1, "plain", (), (), "once")]


# -- failures


def failures(fn, *types, **options):
    return [row for row in analysis.disclosure(trace(fn, *types), **options).rows
            if row.what == "failure"]  # fmt: skip


def test_an_op_that_may_fail_tells_everyone_of_its_operands():
    def program(x, y):
        a = mp.simp.pcall_static(0, picky, x)
        b = mp.simp.pcall_static(0, picky, run(0, toy.add, a, send(y, 1, 0)))
        return b, run(1, toy.add, y, y)

    (row,) = failures(program, at(SCALAR, 0), at(SCALAR, 1))
    assert row == analysis.DisclosureRow(
        what="failure",
        sender=0,
        receiver="everyone",
        type="bool[]",
        payload="bool[]",
        form="plain",
        bytes=1,
        inputs=(0, 1),
        discloses=(0, 1),
        line=line_of(program, 1),
        when="if an op fails",
        lines=(line_of(program, 1), line_of(program, 2)),
        sources=tuple(analysis.Source(i, mp.Mask.of(i), f"input {i}") for i in (0, 1)),
    )
    assert row.to_dict()["lines"] == list(row.lines)


def test_ops_on_public_data_and_ops_that_cannot_fail_tell_nothing():
    def program(x):
        return run(0, picky, mp.constant(1)), run(0, toy.add, x, x), send(x, 0, 1)

    assert failures(program, at(SCALAR, 0)) == []


def test_whether_an_op_runs_depends_on_what_decides_on_it():
    """A public operand, in a branch that a private predicate chooses."""

    def program(pred):
        return mp.uniform_cond(
            pred,
            lambda: run(1, picky, mp.constant(1)),
            lambda: run(1, toy.add, mp.constant(1), mp.constant(1)),
            verify_uniform=False,
        )

    (row,) = failures(lambda pred: program(send(pred, 0, [0, 1])), at(BOOL, 0))
    assert (row.sender, row.discloses) == (1, (0,))


def test_parties_that_compare_predicates_tell_whether_they_differ():
    def program(pred):
        return mp.uniform_cond(pred, lambda: mp.constant(1), lambda: mp.constant(2))

    found = failures(program, at(BOOL, 0, 1))
    assert [(row.sender, row.discloses) for row in found] == [(0, (0, 1)), (1, (0, 1))]


def test_a_declared_range_and_a_shuffle_by_an_index_may_fail():
    def bounded(x):
        return mp.put("P1", x, range=(0, 1))

    (row,) = failures(bounded, at(VECTOR, 0))
    assert (row.sender, row.discloses) == (0, (0,))

    def pull(x, index):
        return mp.pshfl(x, index)

    found = failures(pull, at(SCALAR, 0, 1), at(SCALAR, 1))
    assert [(row.sender, row.discloses) for row in found] == [(0, (1,)), (1, (1,))]


# -- results


def test_all_plain_values_that_a_program_returns_go_to_the_host():
    def program(x, y):
        moved = send(y, 1, 0)
        return {"mine": x, "both": run(0, toy.add, x, moved)}, moved

    found = rows(trace(program, at(SCALAR, 0), at(SCALAR, 1)), results=True)
    assert found[1:] == [
        ("result", 0, "host", "plain", (0, 1), (0, 1), "once"),
        ("result", 0, "host", "plain", (0,), (0,), "once"),
        ("result", 0, "host", "plain", (1,), (1,), "once"),
    ]


@pytest.mark.parametrize("exact", [True, False])
def test_whether_an_op_may_fail_can_depend_on_the_op(exact):
    def program(x):
        return mp.simp.pcall_static(0, narrow, x, exact=exact)

    found = rows(trace(program, at(SCALAR, 0)), failures=True)
    assert [row[0] for row in found] == ["failure"] * exact
