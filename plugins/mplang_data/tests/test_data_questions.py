"""What programs ask about data sets is known before: a gate holds engines to it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mplang_analysis import DataQuestion, TableRead, data_questions
from mplang_data import simulated
from mplang_tables import to_tensor

import mplang_core as mp

COLUMNS = {"id": "int64", "town": "string"}
PEOPLE = {"id": [1, 2, 3], "town": ["a", "b", "a"]}
CLUSTER = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "people.parquet"
    pq.write_table(pa.table(PEOPLE), file)
    people = {"source": f"parquet:{file}", "columns": COLUMNS}
    data = {"bank": {"people": people, "others": people}, "shop": {"people": people}}
    with mp.Simulator(CLUSTER, data=data) as made:
        yield made


@pytest.fixture
def asked(monkeypatch):
    """The digests of the questions that kernels ask."""
    seen: set[str] = set()
    ask_read, ask_query = simulated.HeldData.read, simulated.HeldData.query

    def noted_read(self, name, kind, ranges, **kwargs):
        seen.add(DataQuestion({"": TableRead(name, str(kind), list(ranges))}).digest)
        return ask_read(self, name, kind, ranges, **kwargs)

    def noted_query(self, sql, tables, gives, **kwargs):
        named = {
            name: TableRead(each.name, str(each.kind), list(each.facts.ranges))
            for name, each in tables.items()
        }
        seen.add(DataQuestion(named, sql, str(gives)).digest)
        return ask_query(self, sql, tables, gives, **kwargs)

    monkeypatch.setattr(simulated.HeldData, "read", noted_read)
    monkeypatch.setattr(simulated.HeldData, "query", noted_query)
    return seen


def table(name="people", party="bank"):
    return mp.dataset(party, name)


def count(t):
    return t.agg(n=t.count())


def queried():
    return mp.device("P0")(count)(table())


def joined():
    return mp.device("P0")(lambda a, b: count(a.join(b, "id")))(table(), table("others"))


def read_whole():
    ids = mp.dataset("bank", "people", ["id"])
    return mp.device("P0")(count)(ids), mp.device("P0")(to_tensor)(ids, rows=3)


def read_as_another_is():
    """One table of a join is used in another way, so neither stays."""
    others = table("others")
    both = mp.device("P0")(lambda a, b: count(a.join(b, "id")))(table(), others)
    return both, others


def filtered_twice():
    """A query of what a query gives runs in the engine."""
    towns = mp.device("P0")(lambda t: t.filter(t.town == "a"))(table())
    return mp.device("P0")(count)(towns)


def in_a_loop():
    def more(n):
        return n < 3

    def body(n):
        t = mp.device("P0")(lambda t: t.agg(n=t.id.max()))(table())
        number = mp.device("P0")(to_tensor)(t, rows=1)
        step = mp.put("P1", mp.device("P0")(lambda x: (x[0, 0] > 0).astype("int64"))(number))
        del step
        return n + 1

    return mp.while_loop(more, body, np.int64(0))


def at_both():
    return queried(), mp.device("P1")(count)(table(party="shop"))


PROGRAMS = {
    queried: (1, 0),
    joined: (1, 0),
    read_whole: (1, 0),
    read_as_another_is: (2, 0),
    filtered_twice: (1, 0),
    in_a_loop: (1, 0),
    at_both: (1, 1),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=[each.__name__ for each in PROGRAMS])
@pytest.mark.parametrize("mode", ["launch", "standard"])
def test_kernels_ask_what_was_told_before_and_nothing_else(host, asked, program, mode):
    compiled = mp.compile(program, cluster_spec=CLUSTER)
    compiled.trace(host)
    questions = data_questions(compiled.program)
    assert tuple(len(questions.get(rank, ())) for rank in (0, 1)) == PROGRAMS[program]
    mp.evaluate(host, program, mode=mode)
    assert asked == {each.digest for of_party in questions.values() for each in of_party}
