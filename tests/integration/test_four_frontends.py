"""One program of four frontends: tables, arrays, shares and ciphertexts."""

from __future__ import annotations

import numpy as np
import pytest

import mplang_core as mp

pytestmark = pytest.mark.needs("ibis", "jax", "spu", "crypto")

PEOPLE = {"age": [15, 40, 62, 17, 33], "income": [0.0, 52_000.0, 31_000.0, 900.0, 48_500.0]}
SPENT = np.float32([12.5, 9.0, 20.25])  # in thousands, by the shop's customers


def test_a_result_leaves_encrypted_for_one_party(simulate, mode):
    """A bank filters and scales, a shop adds what it knows; a ministry gets the answer sealed."""
    from mplang_crypto import agree, decrypt, encrypt, keypair
    from mplang_tables import table, to_tensor

    def adults(people):
        return people.filter(people.age > 17).select("income")

    def program(people, spent):
        bank, ministry = mp.device("P0"), mp.device("P2")
        income = bank(to_tensor)(bank(adults)(people), rows=3)
        thousands = bank(lambda x: (x[:, 0] / 1000).astype("float32"))(income)
        saved = mp.device("SP0")(lambda x, y: (x - y).sum())(thousands, spent)
        saved = mp.reveal(saved, to="P0")
        mine, public = bank(keypair)()
        theirs, their_public = ministry(keypair)()
        key = bank(agree)(mine, mp.put("P0", their_public), info="saved")
        sealed = mp.put("P2", bank(encrypt)(saved, key))
        assert "ciphertext" in str(sealed.type)
        their_key = ministry(agree)(theirs, mp.put("P2", public), info="saved")
        return ministry(decrypt)(sealed, their_key)

    sim = simulate(3)
    with mp.with_ctx(sim):
        people = mp.device("P0")(table(PEOPLE))()
        spent = mp.put("P1", SPENT)
    result = mp.evaluate(sim, program, people, spent, mode=mode)
    assert str(result.type) == "f32[]@{2}"
    expected = sum(
        income / 1000
        for age, income in zip(PEOPLE["age"], PEOPLE["income"], strict=True)
        if age > 17
    ) - sum(map(float, SPENT))
    assert float(mp.fetch(sim, result)) == pytest.approx(expected, abs=1e-2)
