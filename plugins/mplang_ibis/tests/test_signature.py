"""``ibis.compile`` with an explicit signature: a program that runs wherever such a table is."""

from __future__ import annotations

import pytest
from mplang_ibis import ibis_compile

import mplang_core as mp
from mplang_core.errors import TraceError

PEOPLE = mp.TableType((("name", "string"), ("age", "int64")))
DATA = {"people": {"name": ["Ann", "Bo", "Cy"], "age": [17, 44, 71]}}
CLUSTER = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])


def older(people, least):
    return people.filter(people.age > least)[["name"]]


@pytest.fixture(scope="module")
def sim():
    with mp.Simulator(CLUSTER, data={"bank": DATA, "shop": DATA}) as made:
        yield made


def compiled(op=ibis_compile):
    return mp.fe_materialize(op, older, mp.FeSignature((PEOPLE, 40)))


def test_a_program_is_made_once_and_runs_at_each_party(sim):
    program = compiled()

    def both():
        tables = {"P0": mp.dataset("bank", "people"), "P1": mp.dataset("shop", "people")}
        return [mp.device(name)(program)(table) for name, table in tables.items()]

    for found in mp.fetch(sim, mp.evaluate(sim, both)):
        assert found.to_pylist() == [{"name": "Bo"}, {"name": "Cy"}]


def test_a_program_is_applied_by_peval(sim):
    def program():
        people = mp.dataset("bank", "people")
        return mp.peval(compiled().pfunc, [people])[0]

    (found, nothing) = mp.fetch(sim, mp.evaluate(sim, program))
    assert found.to_pylist() == [{"name": "Bo"}, {"name": "Cy"}]
    assert nothing is None


def test_the_compiler_is_that_of_the_registry(sim):
    assert compiled(mp.registry.get("ibis.compile")).pfunc == compiled().pfunc


def test_a_table_of_another_type_is_refused(sim):
    def program():
        return mp.device("P0")(compiled())(mp.dataset("bank", "people", ["age"]))

    with pytest.raises(TraceError, match="takes values of .*name.*got .*age"):
        mp.evaluate(sim, program)
