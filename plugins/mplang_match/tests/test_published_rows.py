"""Sets of keys are padded to what owners publish of their data sets."""

from __future__ import annotations

import mplang_core as mp

CLUSTER = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
TWO = {"columns": {"id": "string"}, "rows": {"at_most": 500}}
KNOWN = {
    "bank": {
        "few": {
            **TWO,
            "columns": {"id": "string", "city": "string"},
            "keys": {"id": {"at_most": 60}},
        },
        "keys": TWO,
        "others": {"columns": {"id": "string"}, "rows": 7},
    },
    "shop": {"keys": {"columns": {"id": "string"}}},
}


def most(change=None, name="keys", **arguments):
    """Return how many keys the parties of a match have at most, as the program says."""

    def program():
        mine = mp.dataset("bank", name)
        mine = mine if change is None else change(mine)
        return mp.match(mine, mp.dataset("shop", "keys"), **{"on": "id", **arguments})

    with mp.catalogue(KNOWN):
        traced = mp.trace(mp.TraceContext(CLUSTER), program)
    (op,) = (op for op in traced.program.graph.ops if op.opcode == "match.match")
    return op.attrs["most"]


def test_it_is_what_the_owner_publishes_unless_the_program_says_another_number():
    assert most() == (500, None)
    assert most(rows={"bank": 20, "shop": 30}) == (20, 30)
    assert most(rows={"shop": 30}) == (500, 30)


def test_it_is_that_of_the_column_which_alone_is_matched_on():
    assert most(name="few") == (60, None)
    assert most(name="few", on=[("city", "id")]) == (500, None)
    assert most(name="few", on=["id", ("city", "id")]) == (500, None)


def test_it_is_that_of_the_data_set_that_a_table_is_made_of():
    def filtered(t):
        return mp.device("P0")(lambda t: t.filter(t.id != "x").mutate(id=t.id.lower()))(t)

    def joined(t):
        return mp.device("P0")(lambda t, s: t.union(s))(t, mp.dataset("bank", "others"))

    assert most(filtered) == (500, None)
    assert most(joined) == (None, None)
    assert most(lambda t: mp.put("P0", t)) == (500, None)


def test_data_that_is_no_data_set_has_no_published_number():
    def program(table):
        return mp.match(table, mp.dataset("shop", "keys"), on="id")

    kind = mp.MPType(mp.TableType((("id", "string"),)), mp.Mask.of(0))
    with mp.catalogue(KNOWN):
        traced = mp.trace(mp.TraceContext(CLUSTER), program, kind)
    (op,) = (op for op in traced.program.graph.ops if op.opcode == "match.match")
    assert op.attrs["most"] == (None, None)
