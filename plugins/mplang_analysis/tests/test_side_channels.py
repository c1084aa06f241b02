"""Sizes and durations that depend on data: which programs have rows of them."""

from __future__ import annotations

import pytest
import toy
from disclosure_rows import BOOL, SCALAR, at, trace
from mplang_analysis import SideChannelRule, SideChannels
from public_keys import run, send

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import VerifyError

pytestmark = pytest.mark.needs("tables", "crypto")
TABLE = mp.TableType((("id", "int64"),))


@mp.simple_op(
    "slow.turns",
    reads=(),
    total=True,
    interfaces=[SideChannelRule(lambda op: SideChannels(duration=(1,)))],
)
def turns(x: mp.TensorType, n: mp.TensorType) -> mp.TensorType:
    """Takes as long as its second operand says."""
    return x


@mp.simple_op(
    "slow.wrong",
    reads=(),
    total=True,
    interfaces=[SideChannelRule(lambda op: SideChannels(duration=(7,)))],
)
def wrong(x: mp.TensorType) -> mp.TensorType:
    """Names an operand that it does not have."""
    return x


@mp.simple_op(
    "slow.more",
    reads=(),
    total=True,
    interfaces=[SideChannelRule(lambda op: SideChannels(multiplies=True))],
)
def more(x: mp.TableType) -> mp.TableType:
    """Gives several times as many rows."""
    return x


def beside(fn, *types):
    """Return the rows of sizes and durations."""
    return [
        (row.what, row.sender, row.receiver, row.form, row.discloses)
        for row in analysis.disclosure(trace(fn, *types, parties=3)).rows
        if row.what in ("size", "duration")
    ]


def many(x, times):
    for _ in range(times):
        x = run(0, more, x)
    return x


def test_ops_that_multiply_rows_have_no_bound_together():
    told = [("duration", 0, "everyone", "plain", (0,))]
    assert beside(lambda x: many(x, 2), at(TABLE, 0)) == []
    assert beside(lambda x: many(x, 3), at(TABLE, 0)) == told
    assert beside(lambda x: mp.while_loop(turn, lambda x: many(x, 1), x), at(TABLE, 0)) == told


def turn(x):
    return mp.constant(True)


def test_an_op_says_upon_which_operands_its_duration_depends():
    types = at(SCALAR, 0), at(SCALAR, 1)
    assert beside(lambda x, y: run(0, turns, x, mp.constant(3)), *types) == []
    assert beside(lambda x, y: run(0, turns, mp.constant(3), x), *types) == [
        ("duration", 0, "everyone", "plain", (0,))
    ]
    assert beside(lambda x, y: run(0, turns, x, send(y, 1, 0)), *types) == [
        ("duration", 0, "everyone", "plain", (1,))
    ]


def test_an_op_that_names_an_operand_which_is_not_there_is_refused():
    with pytest.raises(VerifyError, match=r"names operand 7 of 1; correct the op's definition"):
        beside(lambda x: run(0, wrong, x), at(SCALAR, 0))


@pytest.mark.parametrize("private", [True, False])
def test_a_private_predicate_decides_how_long_a_run_takes(private):
    def branch(x):
        pred = send(x, 0, [0, 1, 2]) if private else mp.constant(True)
        return mp.uniform_cond(pred, lambda: mp.constant(1), lambda: mp.constant(2))

    def loop(x):
        limit = send(x, 0, [0, 1, 2]) if private else mp.constant(3)
        less, step = (lambda i: mp.invoke(toy.less, i, limit)), lambda i: mp.invoke(toy.scale, i)
        return mp.while_loop(less, step, 0)

    told = [("duration", None, "everyone", "plain", (0,))] * private
    assert beside(branch, at(BOOL, 0)) == told
    assert beside(loop, at(SCALAR, 0)) == told


def test_a_public_loop_in_a_private_branch_depends_on_the_branch():
    def program(x):
        def inner():
            return run(0, turns, mp.constant(1), mp.constant(9))

        return mp.uniform_cond(send(x, 0, [0, 1, 2]), inner, inner)

    assert beside(program, at(BOOL, 0)) == [("duration", None, "everyone", "plain", (0,))]


@pytest.mark.parametrize("kind", [TABLE, SCALAR])
def test_who_cannot_read_a_ciphertext_learns_its_size_if_the_type_does_not_tell_it(kind):
    """One of a table. Of it the holder of the key learns the content, and no size beside it."""
    from mplang_crypto.types import CiphertextType

    sealed = CiphertextType(kind)

    def program(x):
        return mp.keep(send(x, 0, [1, 2]))

    labels = [{0: analysis.Label(analysis.own(0, "t").sources, keys=frozenset(["a" * 32]))}]
    held = {2: analysis.Holding(keys=frozenset(["a" * 32]))}
    traced = trace(program, at(sealed, 0), parties=3)
    rows = analysis.disclosure(traced, labels=labels, held=held).rows
    assert [(r.what, r.receiver, r.form, r.bytes, r.discloses) for r in rows if r.discloses] == [
        *[("size", 1, "plain", None, (0,))] * (kind is TABLE),
        ("move", 2, "ciphertext", rows[0].bytes, (0,)),
    ]
    (size,) = [r for r in rows if r.what == "size"] or [None]
    assert size is None or (size.payload, size.type) == (str(TABLE), str(sealed))


def test_a_table_that_is_sent_in_plain_has_no_size_of_its_own():
    assert beside(lambda x: send(x, 0, 1), at(TABLE, 0)) == []
