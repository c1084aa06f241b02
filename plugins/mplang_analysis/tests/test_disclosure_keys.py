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
    encrypt,
    keypair,
    publish,
    run,
    send,
)

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
