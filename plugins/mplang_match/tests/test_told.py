"""What people read of a match before it runs: who learns which keys, of how many; which sizes."""

from __future__ import annotations

import mplang_core as mp

CLUSTER = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
KEYS = {"keys": {"columns": {"id": "string", "pay": "int64"}}}


def sentences(**arguments):
    """Return what is told of a match of two data sets."""

    def program():
        return mp.match(mp.dataset("bank", "keys"), mp.dataset("shop", "keys"), "id", **arguments)

    with mp.catalogue({"bank": KEYS, "shop": KEYS}):
        traced = mp.trace(mp.TraceContext(CLUSTER), program)
    return mp.analysis.disclosure(traced.program, names=["bank", "shop"]).sentences()


def test_who_learns_which_keys_and_of_how_many_at_most():
    told = " ".join(sentences(learn="bank", rows={"bank": 50, "shop": 2000}, at_least=10))
    common = "bank learns: which keys it has in common with shop, and how many"
    assert f"{common} (match of at most 50 keys with at least 10 in common)" in told
    assert "shop learns nothing of anyone else's data" in told
    assert "size" not in told


def test_sizes_that_nothing_bounds_are_told_with_those_who_learn_them():
    told = " ".join(sentences(rows={"shop": 2000}))
    assert "shop learns: how many different keys bank has, as no rows= bounds it" in told
    assert "bank learns: how many different keys" not in told


def test_a_function_that_was_traced_for_a_host_has_its_names_in_words():
    def program():
        return mp.match(mp.dataset("bank", "keys"), mp.dataset("shop", "keys"), "id")

    keys = {"keys": {"id": ["a"], "pay": [1]}}
    with mp.Simulator(CLUSTER, data={"bank": keys, "shop": keys}) as sim:
        compiled = mp.compile(program)
        told = [str(mp.analysis.disclosure(compiled.trace(sim)))]
        told.append(str(mp.analysis.disclosure(compiled)))
    for each in told:
        assert "party 0" not in each
        assert "bank learns: which keys it has in common with shop, and how many" in each
        assert "DISCLOSES bank's data: which keys it has in common" in each
        assert "2 tokens, of keys and of none" in each
