"""Engines of data sets: what they would answer in another way is refused while compiling."""

from __future__ import annotations

import pytest
from mplang_data import Description, read_catalogue
from mplang_data.holding import DataSet, read_data_sets

import mplang_core as mp
from mplang_core.errors import ConfigError, TraceError

PEOPLE = {"name": ["Ann", "Bo"], "age": [17, 44], "pay": [2.5, 3.5]}
CLUSTER = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])


def simulator(**engines):
    data = {"bank": {"people": PEOPLE, "others": PEOPLE}, "shop": {"people": PEOPLE}}
    return mp.Simulator(CLUSTER, data=data, engines=engines)


def rounded(party="bank", device="P0"):
    t = mp.dataset(party, "people")
    return mp.device(device)(lambda t: t.mutate(pay=t.pay.round()))(t)


def written():
    t = mp.dataset("bank", "people")
    return mp.device("P0")(lambda t: t.mutate(pay=(t.pay + 0.5).floor()))(t)


def test_a_simulator_refuses_what_the_engine_of_a_worker_would():
    with simulator(bank="postgresql") as sim:
        with pytest.raises(
            TraceError, match=r"bank's people.*rounding of floats.*floor\(x \+ 0\.5"
        ):
            mp.evaluate(sim, rounded)
        assert mp.fetch(sim, mp.evaluate(sim, written))["pay"].to_pylist() == [3.0, 4.0]
        mp.evaluate(sim, rounded, "shop", "P1")  # whose data sets are on DuckDB
    with simulator(bank="duckdb") as sim:
        assert mp.fetch(sim, mp.evaluate(sim, rounded))["pay"].to_pylist() == [3.0, 4.0]


def test_a_line_of_the_program_is_told():
    with (
        simulator(bank="postgresql") as sim,
        pytest.raises(TraceError, match=r"test_engines\.py:\d"),
    ):
        mp.compile(rounded).trace(sim)


def test_what_is_computed_of_data_sets_runs_on_duckdb():
    """A second step is on the table that the first one gave."""

    def program():
        t = mp.device("P0")(lambda t: t.filter(t.age > 20))(mp.dataset("bank", "people"))
        return mp.device("P0")(lambda t: t.mutate(pay=t.pay.round()))(t)

    with simulator(bank="postgresql") as sim:
        assert mp.fetch(sim, mp.evaluate(sim, program))["pay"].to_pylist() == [4.0]


def test_joins_of_data_sets_are_looked_at():
    def program():
        ts = [mp.dataset("bank", name) for name in ("people", "others")]
        joined = mp.device("P0")(lambda a, b: a.join(b, "name").mutate(x=a.name.upper()))
        return joined(*ts)

    with simulator(bank="postgresql") as sim, pytest.raises(TraceError, match="upper"):
        mp.evaluate(sim, program)


def test_a_catalogue_without_a_host_tells_engines_too():
    columns = {"name": "str", "age": "int64", "pay": "float64"}
    known = {"bank": {"people": {"columns": columns, "engine": "postgresql"}}}
    with mp.catalogue(known), pytest.raises(TraceError, match="rounding of floats"):
        mp.compile(rounded, cluster_spec=CLUSTER).trace(None)


def test_an_engine_is_published_as_that_of_the_source():
    fields = {"columns": {"age": "int64"}}
    for source, engine in [
        ("parquet:p.parquet", None),
        ("duckdb:d.duckdb#t", None),
        ("postgresql://bank/db#t", "postgresql"),
    ]:
        found = DataSet(source=source, **fields)
        assert found.engine == engine
        assert found.public().get("engine") == engine
        assert (
            read_data_sets({"t": {"source": source, **fields}}, "/")["t"].description.engine
            == engine
        )
    with pytest.raises(ConfigError, match="the engine of parquet is None"):
        DataSet(source="parquet:p.parquet", engine="postgresql", **fields)
    assert read_catalogue({"bank": {"t": {**fields, "engine": "spark"}}})["bank"]["t"].engine


def test_engines_that_are_unknown_are_refused():
    for engines, told in [
        ({"bank": "postgres"}, "no engine 'postgres' of bank; there are duckdb, p"),
        ({"bench": "postgresql"}, "engines names 'bench'; the parties are bank"),
    ]:
        with pytest.raises(ConfigError, match=told):
            simulator(**engines)
    with pytest.raises(ConfigError, match="engine"):
        Description(columns={"age": "int64"}, engine="no engine")
