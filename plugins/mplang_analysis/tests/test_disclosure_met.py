"""Shares that meet, and ciphertexts that meet a key: also if the program does not open them."""

from __future__ import annotations

import pytest
import toy
from disclosure_rows import BOOL, SCALAR, at, moves, trace
from public_keys import (
    Sealed,
    add,
    decrypt,
    encrypt,
    keypair,
    load,
    negate,
    publish,
    run,
    send,
    shared,
    split,
    sum_shares,
)

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import TraceError

# -- shares


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_a_share_meets_what_was_computed_on_the_other_one(turns):
    def program(x):
        y = z = shared(x)
        for _ in range(turns):
            z = run((0, 1), negate, z)
        return send(y, 0, 2), send(z, 1, 2)

    assert moves(program, at(SCALAR, 0)) == [
        (0, 1, (0,), ()),
        (0, 2, (0,), (0,) if turns == 0 else ()),  # told where the last one arrives
        (1, 2, (0,), (0,)),
    ]


def test_a_share_alone_and_what_is_computed_on_it_tell_nothing():
    def program(x):
        y = shared(x)
        return send(y, 1, 2), send(run((0, 1), negate, y), 1, 2)

    assert [row[3] for row in moves(program, at(SCALAR, 0))] == [(), (), ()]


def test_shares_of_two_secrets_meet_where_something_was_computed_on_both():
    def program(x, y):
        a, b = shared(x), shared(y, 1, (0, 1))
        both = run((0, 1), sum_shares, a, b)
        return send(a, 0, 2), send(b, 1, 2), send(both, 0, 2)

    found = moves(program, at(SCALAR, 0), at(SCALAR, 1))
    assert found[2:] == [(0, 2, (0,), ()), (1, 2, (1,), ()), (0, 2, (0, 1), (0, 1))]


def test_a_result_discloses_what_flowed_into_it_and_no_more():
    """Party 0 has shares of all, and of what was computed on its own data and party 2's."""

    def program(x, y, z):
        a, b, c = shared(x, 0), shared(y, 1), shared(send(z, 2, 1), 1)
        one, _ = run((0, 1), sum_shares, a, b), run((0, 1), sum_shares, a, c)
        return send(one, 1, 0)

    assert moves(program, *(at(SCALAR, rank) for rank in range(3)))[-1] == (1, 0, (0, 1), (1,))


def test_shares_that_meet_in_a_loop_or_a_branch():
    """One crosses in a branch of the loop, the other one afterwards."""

    def program(x, first):
        y = shared(x)

        def turn(state):
            i, z = state
            sent = mp.uniform_cond(first, lambda: send(y, 1, 2), lambda: z)
            return mp.invoke(toy.add, i, mp.constant(1)), sent

        start = mp.constant(0), send(y, 1, 2)
        mp.while_loop(lambda state: mp.invoke(toy.less, state[0], mp.constant(3)), turn, start)
        return send(y, 0, 2)

    found = moves(program, at(SCALAR, 0), at(BOOL, 0, 1, 2))
    assert [row[:2] for row in found] == [(0, 1), (1, 2), (1, 2), (0, 2)]
    assert [0 in row[3] for row in found] == [False, True, True, True]


def test_the_loop_hands_on_the_secrets_of_its_state():
    def program(x):
        y = shared(x)

        def turn(state):
            i, z = state
            return mp.invoke(toy.add, i, mp.constant(1)), run((0, 1), negate, z)

        _, z = mp.while_loop(
            lambda state: mp.invoke(toy.less, state[0], mp.constant(3)), turn, (mp.constant(0), y)
        )
        return send(z, 1, 2), send(y, 0, 2)

    assert moves(program, at(SCALAR, 0))[1:] == [(1, 2, (0,), (0,)), (0, 2, (0,), (0,))]


def test_an_op_that_splits_again_does_not_hide_the_secret():
    def program(x):
        one, two = run(0, split, x)
        return send(run(0, negate, one), 0, 1), send(run(0, negate, two), 0, 1)

    assert moves(program, at(SCALAR, 0), parties=2) == [(0, 1, (0,), (0,)), (0, 1, (0,), (0,))]


def test_an_op_of_which_nothing_is_known_may_hand_on_shares():
    program = mp.parse("""
        program "opaque" on {0, 1} (%0: pke.half<>@{0, 1}) {
          %3 = simp.pcall_static(%0) {parties = {0, 1}} do (%1: pke.half<>) {
            %2 = opaque.shares(%1) : pke.half<>
            return %2
          } : pke.half<>@{0, 1}
          return
        }""")
    (one, two) = analysis.disclosure(program).rows[:2]
    assert (one.what, one.form, one.receiver, one.discloses) == ("reveal", "share", 0, (1,))
    assert (two.what, two.form, two.receiver, two.discloses) == ("reveal", "share", 1, (0,))


# -- ciphertexts


def test_a_ciphertext_meets_its_key():
    def program(x):
        private, public = run(1, keypair)
        del private
        return send(run(0, encrypt, x, send(public, 1, 0)), 0, [1, 2])

    assert moves(program, at(SCALAR, 0)) == [(0, 1, (0,), (0,)), (0, 2, (0,), ())]


def test_the_key_of_another_pair_opens_nothing():
    def program(x):
        _, public = run(1, keypair)
        run(2, keypair)
        return send(run(0, encrypt, x, send(public, 1, 0)), 0, 2)

    assert moves(program, at(SCALAR, 0)) == [(0, 2, (0,), ())]


def test_a_public_key_that_is_computed_later_is_of_the_pair():
    def program(x):
        private, _ = run(1, keypair)
        return send(run(0, encrypt, x, send(run(1, publish, private), 1, 0)), 0, 1)

    assert moves(program, at(SCALAR, 0)) == [(0, 1, (0,), (0,))]


def test_a_sum_of_ciphertexts_is_under_all_of_their_keys():
    def program(x, y):
        _, one = run(1, keypair)
        _, two = run(2, keypair)
        a = run(0, encrypt, x, send(one, 1, 0))
        b = send(run(1, encrypt, y, send(two, 2, 1)), 1, 0)
        return send(run(0, add, a, b), 0, [1, 2])

    found = moves(program, at(SCALAR, 0), at(SCALAR, 1))
    assert found == [(1, 0, (1,), ()), (0, 1, (0, 1), (0,)), (0, 2, (0, 1), (0, 1))]


def test_a_key_that_comes_later_opens_what_came_earlier():
    """Party 1 gets the ciphertext, and a key of which nothing is known after that."""

    def program(x):
        _, public = run(0, keypair)
        sealed = send(run(0, encrypt, x, public), 0, [1, 2])
        run(1, load)
        return sealed

    assert moves(program, at(SCALAR, 0)) == [(0, 1, (0,), (0,)), (0, 2, (0,), ())]


def test_a_ciphertext_of_unknown_key_may_be_read_by_anyone():
    def program(ct):
        return send(ct, 0, [1, 2])

    found = moves(program, at(Sealed(), 0))
    assert found == [(0, 1, (0, 1, 2), (0, 2)), (0, 2, (0, 1, 2), (0, 1))]


def test_what_was_decrypted_may_be_encrypted_for_another_one():
    """The holder of the first key does not read the second ciphertext."""

    def program(x):
        mine, public = run(1, keypair)
        _, theirs = run(2, keypair)
        ct = send(run(0, encrypt, x, send(public, 1, 0)), 0, 1)
        again = run(1, encrypt, run(1, decrypt, ct, mine), send(theirs, 2, 1))
        return send(again, 1, [0, 2])

    found = moves(program, at(SCALAR, 0))
    assert found == [(0, 1, (0,), (0,)), (1, 0, (0,), ()), (1, 2, (0,), (0,))]


def test_a_ciphertext_cannot_be_revealed():
    """The move would open it at nobody; the error says what works."""

    def program(x):
        _, public = run(0, keypair)
        return mp.reveal(run(0, encrypt, x, public))

    with pytest.raises(TraceError, match=r"test_disclosure_met.py:\d+: reveal: .* is a ciphertext"):
        trace(program, at(SCALAR, 0))

    def share(x):
        return mp.reveal(run(0, split, x)[0], to="P1")

    with pytest.raises(TraceError, match="is a share.*reveal the result; mp.put moves it"):
        trace(share, at(SCALAR, 0))
