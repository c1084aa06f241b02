"""Who learns what by ciphertexts, as the table of disclosures tells it."""

from __future__ import annotations

import pytest
from he_values import cluster

import mplang_core as mp
from mplang_core import analysis, errors

X = mp.MPType(mp.TensorType("f64", (4, 3)), mp.Mask.of(0))
W = mp.MPType(mp.TensorType("f64", (3,)), mp.Mask.of(1))
Z = mp.MPType(mp.TensorType("f64", (4, 3)), mp.Mask.of(2))


def told(program, *types):
    return analysis.disclosure(mp.compile(program, *types, cluster_spec=cluster(limit=10)))


def score(x, w):
    return mp.device("H")(lambda x, w: (x @ w) ** 2)(x, w)


def test_the_holder_learns_of_the_weights_and_the_evaluator_nothing():
    table = told(lambda x, w: mp.reveal(score(x, w), to="C"), X, W)
    by_receiver = {rank: [row for row in table.rows if row.receiver == rank] for rank in (0, 1)}
    assert {rank for row in by_receiver[0] for rank in row.discloses} == {1}
    assert not any(row.discloses for row in by_receiver[1])


def test_a_result_that_stays_encrypted_tells_nothing():
    table = told(score, X, W)
    assert not [row for row in table.rows if row.discloses and row.what != "failure"]


def doubled(x, z):
    """Encrypt what two parties have under one key, and compute on that of one of them."""
    sealed, other = mp.seal(x, to="H"), mp.seal(z, to="H")
    return mp.reveal(mp.device("H")(lambda x: x * 2)(sealed), to="C"), other


def test_what_the_evaluator_gets_back_counts_as_all_that_it_has_under_the_key():
    """It may have sent another ciphertext, and noise tells the key: see docs/ciphertexts.md."""

    def program(x, z):
        y, other = doubled(x, z)
        return mp.put("V", y), other

    back = [row for row in told(program, X, Z).rows if (row.receiver, row.form) == (1, "plain")]
    assert {rank for row in back for rank in row.discloses} == {0, 2}


def test_a_decryption_that_fails_counts_likewise():
    failures = [row for row in told(doubled, X, Z).rows if row.what == "failure"]
    assert any(2 in row.discloses for row in failures if row.sender == 0)


def test_numbers_are_not_revealed_without_a_word():
    with pytest.raises(errors.DisclosureError, match="mp.reveal"):
        told(lambda x, w: mp.device("C")(lambda y: y)(score(x, w)), X, W)


def test_keys_stay_where_they_are():
    def program():
        small = {"scheme": "bfv", "degree": 4096, "primes": (36, 36, 37), "plain": 20}
        private, _, _ = mp.device("C")(mp.he.keygen)(**small)
        return mp.put("V", private)

    with pytest.raises(errors.MPLangError, match="key"):
        told(program)
