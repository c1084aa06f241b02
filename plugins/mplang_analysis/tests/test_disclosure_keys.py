"""Keys of which the program does not tell who has them: what they protect is protected from nobody.

A party, or whoever runs the program, may have put a public key whose private half is anywhere.
"""

from __future__ import annotations

import pytest
from disclosure_rows import SCALAR, at, moves, trace
from public_keys import (
    PrivateKey,
    PublicKey,
    Sealed,
    add,
    agree,
    decrypt,
    encrypt,
    keypair,
    publish,
    run,
    send,
)

import mplang_core as mp
from mplang_core import analysis

PUT = analysis.own(0, "put")


def for_a_public_key(public, x):
    return send(run(0, encrypt, x, public), 0, [1, 2])


def for_an_agreed_key(public, x):
    private, _ = run(0, keypair)
    shared = run(0, agree, private, public)
    return send(run(0, encrypt, x, run(0, publish, shared)), 0, [1, 2])


@pytest.mark.parametrize("program", [for_a_public_key, for_an_agreed_key])
def test_who_has_a_public_key_that_was_put_is_not_known(program):
    types, told = [at(PublicKey(), 0), at(SCALAR, 0)], [(0, 1, (0,), (0,)), (0, 2, (0,), (0,))]
    assert moves(program, *types) == told
    assert moves(program, *types, labels=[{0: PUT}, {0: PUT}]) == told


def test_a_party_may_have_the_private_half_of_the_public_key_that_it_brings():
    def program(public, x):
        return send(run(0, encrypt, x, send(public, 2, 0)), 0, 2)

    labels = [{2: analysis.own(2, "put")}, {0: PUT}]
    found = moves(program, at(PublicKey(), 2), at(SCALAR, 0), labels=labels)
    assert found == [(0, 2, (0, 2), (0,))]


def test_a_pair_that_was_put():
    def program(private, public, x):
        del private
        return send(run(0, encrypt, x, public), 0, 2)

    types = at(PrivateKey(), 2), at(PublicKey(), 0), at(SCALAR, 0)
    labels = [{2: analysis.own(2, "put")}, {0: PUT}, {0: PUT}]
    assert moves(program, *types, labels=labels) == [(0, 2, (0,), (0,))]


def test_a_key_from_outside_opens_nothing_that_is_under_a_key_of_the_program():
    def program(private, x):
        del private
        _, public = run(1, keypair)
        return send(run(0, encrypt, x, send(public, 1, 0)), 0, 2)

    labels = [{2: analysis.own(2, "put")}, {0: PUT}]
    found = moves(program, at(PrivateKey(), 2), at(SCALAR, 0), labels=labels)
    assert found == [(0, 2, (0,), ())]


def test_a_ciphertext_that_was_put_may_be_under_anyones_key():
    def program(ct, x):
        _, public = run(0, keypair)
        return send(run(0, add, ct, run(0, encrypt, x, public)), 0, 2)

    labels = [{0: PUT}, {0: PUT}]
    found = moves(program, at(Sealed(), 0), at(SCALAR, 0), labels=labels)
    assert found == [(0, 2, (0,), (0,))]


def test_who_hands_on_a_public_key_may_hand_on_its_own_instead():
    def program(x):
        _, public = run(1, keypair)
        relayed = send(send(public, 1, 2), 2, 0)
        return send(run(0, encrypt, x, relayed), 0, [1, 2])

    assert moves(program, at(SCALAR, 0)) == [(0, 1, (0,), (0,)), (0, 2, (0,), (0,))]


def test_who_does_not_hand_it_on_does_not():
    def program(x):
        _, public = run(1, keypair)
        send(public, 1, 2)
        return send(run(0, encrypt, x, send(public, 1, 0)), 0, [1, 2])

    assert moves(program, at(SCALAR, 0)) == [(0, 1, (0,), (0,)), (0, 2, (0,), ())]


def test_a_key_that_was_handed_on_in_an_earlier_program():
    def first():
        _, public = run(1, keypair)
        return send(send(public, 1, 2), 2, 0)

    def second(public, x):
        return send(run(0, encrypt, x, public), 0, [1, 2])

    before = analysis.follow(trace(first, parties=3).program)
    labels = [before.outputs[0], {0: PUT}]
    program = trace(second, at(PublicKey(), 0), at(SCALAR, 0), parties=3).program
    rows = analysis.follow(program, labels, before.held).disclosure.rows
    assert [row.discloses for row in rows if row.what == "move" and row.inputs] == [(0,), (0,)]


# -- ciphertexts that are carried


def sends_one_of_its_own(carried, own, carrier=2):
    """Party 0 decrypts what a party sends that carries a ciphertext of party 1, and tells it."""
    private, public = run(0, keypair)
    ct = run(1, encrypt, carried, send(public, 0, 1))
    kept = send(ct, 1, carrier)
    sent = run(carrier, encrypt, own, send(public, 0, carrier))
    found = run(0, decrypt, send(sent, carrier, 0), private)
    return mp.keep(kept), send(found, 0, carrier)


def told_to(rank, program, *types):
    """Return whose data parties tell a party in plain."""
    table = analysis.disclosure(trace(program, *types, parties=3))
    rows = [r for r in table.rows if r.receiver == rank and r.form == "plain" and r.what != "size"]
    return {each for row in rows for each in row.discloses}


def test_who_carries_a_ciphertext_may_send_it_in_place_of_its_own():
    assert told_to(2, sends_one_of_its_own, at(SCALAR, 1), at(SCALAR, 2)) == {1}


def test_what_is_carried_for_its_reader():
    def stored(secret):
        key = run(0, publish, private := run(0, keypair)[0])
        send(run(0, encrypt, secret, key), 0, 2)
        public = send(run(0, encrypt, mp.constant(1), key), 0, 2)
        return send(run(0, decrypt, send(public, 2, 0), private), 0, 2)

    assert told_to(2, stored, at(SCALAR, 0)) == {0}


def test_who_can_read_what_it_has_learns_nothing_by_sending_it_back():
    def answered(question, answer):
        (a, public_a), (b, public_b) = run(0, keypair), run(1, keypair)
        ours, theirs = (
            run(0, agree, a, send(public_b, 1, 0)),
            run(1, agree, b, send(public_a, 0, 1)),
        )
        send(run(0, encrypt, question, run(0, publish, ours)), 0, 1)
        sealed = send(run(1, encrypt, answer, run(1, publish, theirs)), 1, 0)
        return send(run(0, decrypt, sealed, ours), 0, 2)

    assert told_to(2, answered, at(SCALAR, 0), at(SCALAR, 1)) == {1}


def test_what_is_under_another_key_is_not_decrypted_in_its_place():
    def apart(carried, own):
        private, public = run(0, keypair)
        _, other = run(0, keypair)
        send(run(1, encrypt, carried, send(other, 0, 1)), 1, 2)
        sent = run(2, encrypt, own, send(public, 0, 2))
        return send(run(0, decrypt, send(sent, 2, 0), private), 0, 2)

    assert told_to(2, apart, at(SCALAR, 1), at(SCALAR, 2)) == set()


def test_what_is_carried_only_later_is_not_sent():
    def later(carried, own):
        private, public = run(0, keypair)
        sent = run(2, encrypt, own, send(public, 0, 2))
        found = send(run(0, decrypt, send(sent, 2, 0), private), 0, 2)
        return mp.keep(send(run(1, encrypt, carried, send(public, 0, 1)), 1, 2)), found

    assert told_to(2, later, at(SCALAR, 1), at(SCALAR, 2)) == set()


def test_what_is_carried_since_the_turn_before():
    def turns(carried, own):
        private, public = run(0, keypair)
        theirs, mine = send(public, 0, 1), send(public, 0, 2)

        def turn(state):
            i, _ = state
            sent = run(2, encrypt, own, mine)
            found = send(run(0, decrypt, send(sent, 2, 0), private), 0, 2)
            send(run(1, encrypt, carried, theirs), 1, 2)
            return i, found

        start = mp.constant(0), send(own, 2, 2)
        return mp.while_loop(lambda s: mp.constant(True), turn, start)[1]

    assert told_to(2, turns, at(SCALAR, 1), at(SCALAR, 2)) == {1}


def test_what_is_carried_since_an_earlier_program():
    def first(carried):
        private, public = run(0, keypair)
        return private, public, send(run(1, encrypt, carried, send(public, 0, 1)), 1, 2)

    def second(private, public, own):
        sent = run(2, encrypt, own, send(public, 0, 2))
        return send(run(0, decrypt, send(sent, 2, 0), private), 0, 2)

    before = analysis.follow(trace(first, at(SCALAR, 1), parties=3).program)
    types = at(PrivateKey(), 0), at(PublicKey(), 0), at(SCALAR, 2)
    program = trace(second, *types, parties=3).program
    labels = [before.outputs[0], before.outputs[1], {2: analysis.own(2, "put")}]
    found = analysis.follow(program, labels, before.held).disclosure.rows
    assert {row.discloses for row in found if row.receiver == 2 and row.form == "plain"} >= {(1,)}
