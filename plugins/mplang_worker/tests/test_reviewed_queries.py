"""An engine that was taken over asks of data sets what the program that was permitted asks."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import greedy_ops
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mplang_analysis import DataQuestion, TableRead
from mplang_data.section import SECTION
from mplang_http import LocalCluster
from mplang_ibis.sql import read_sql
from mplang_policy import Ledger
from mplang_tables import to_tensor
from mplang_worker.front.gate import FrontGate, permitted_of
from mplang_worker.front.reviewed import PUBLIC, permit_readings, refuse_question, sees_one_state
from mplang_worker.front.session import Permitted

import mplang_core as mp

ROWS = 5
COLUMNS = {"id": "int64", "town": "string"}
PERMIT_ALL = "permit (principal, action, resource);\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("bank")
    rows = pa.table({"id": list(range(ROWS)), "town": ["a", "b", "a", "b", "a"]})
    pq.write_table(rows, made / "people.parquet")
    (made / "bank.cedar").write_text(PERMIT_ALL)
    return made


@pytest.fixture(scope="module")
def cluster(folder):
    source = {"source": f"parquet:{folder}/people.parquet", "columns": COLUMNS}
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        with LocalCluster(
            ["bank"],
            data={"bank": {"people": source, "others": source}},
            gates={"bank": {"policy": str(folder / "bank.cedar"), "log": str(folder / "bank.db")}},
            mode="production",
            imports=("greedy_ops",),
            log=str(folder),
        ) as made:
            yield made


@pytest.fixture(scope="module")
def host(cluster):
    with mp.connect("http", cluster.spec) as made:
        yield made


PEOPLE = {"data": "people", "type": 'table<["id", "int64"], ["town", "string"]>', "ranges": []}
IDS = PEOPLE | {"type": 'table<["id", "int64"]>'}


def counted():
    people = mp.dataset("bank", "people", type=COLUMNS)
    return mp.sql("bank", "SELECT count(*) AS n FROM {people}", people=people)


@pytest.fixture(scope="module")
def own_question():
    """The question that the program asks when it runs."""
    compiled = mp.compile(counted, cluster_spec=mp.ClusterSpec([{"name": "bank"}]))
    compiled.trace(None)
    (run,) = (op for op in compiled.program.graph.walk() if op.opcode == "ibis.run")
    return {
        "tables": {"people": PEOPLE},
        "sql": read_sql(run.attrs["code"]),
        "gives": str(run.attrs["gives"]),
        "perhaps": False,
    }


def answered(host, method, question) -> int:
    """Return how many files come of a question amid a run of the program."""

    def program():
        return counted(), mp.device("P0")(greedy_ops.ask_other)(
            method=method, question=json.dumps(question)
        )

    _, files = mp.fetch(host, mp.evaluate(host, program))
    return int(files)


def refusals(folder):
    with closing(Ledger(folder / "bank.db", read_only=True)) as ledger:
        return [each.body for each in ledger.entries() if each.kind == "refusal"]


def test_the_question_of_the_program_is_answered_as_often_as_it_is_asked(
    host, folder, own_question
):
    before = len(refusals(folder))
    assert answered(host, "query", own_question) == 1
    assert len(refusals(folder)) == before


OTHERS = {
    "other SQL": {"sql": "SELECT id AS n FROM people LIMIT 1"},
    "SQL with another space": {"sql": 'SELECT count(*) AS n FROM  "people"'},
    "another type": {"gives": 'table<["n", "int32"]>'},
    "fewer columns": {"tables": {"people": IDS}},
    "ranges": {"tables": {"people": PEOPLE | {"ranges": [[0, 10], None]}}},
    "another name": {"tables": {"person": PEOPLE}},
    "another table beside it": {"tables": {"people": PEOPLE, "more": PEOPLE}},
    "another data set": {"tables": {"people": PEOPLE | {"data": "others"}}},
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=list(OTHERS))
def test_another_query_is_refused_and_accuses_the_engine(host, folder, own_question, change):
    assert answered(host, "query", own_question | change) == 0
    last = refusals(folder)[-1]
    assert "its engine asks for a query of data set " in last["why"]
    assert last["run"].startswith(host.session)


@pytest.mark.parametrize("table", [PEOPLE, IDS], ids=["all", "some"])
def test_what_is_only_queried_is_not_read(host, folder, table):
    """Its rows are not in the result, and the owner has permitted that result."""
    assert answered(host, "read", {"tables": {"": table}, "perhaps": False}) == 0
    assert "its engine asks for rows of data set people" in refusals(folder)[-1]["why"]


def test_what_is_used_in_another_way_is_read_by_its_columns(host, folder):
    """In a program that reads some columns, the others are not asked for."""

    def program(table):
        ids = mp.dataset("bank", "people", ["id"])
        asked = json.dumps({"tables": {"": table}, "perhaps": False})
        ask = mp.device("P0")(greedy_ops.ask_other)
        return mp.device("P0")(to_tensor)(ids, rows=ROWS), ask(method="read", question=asked)

    for table, files in ((IDS, 1), (PEOPLE, 0)):
        found = mp.fetch(host, mp.evaluate(host, lambda table=table: program(table)))
        assert (len(found[0]), int(found[1])) == (ROWS, files)


# -- the front alone


class Front:
    """Front of a session whose run was permitted a question; what it has on record."""

    def __init__(self, question: DataQuestion) -> None:
        self.record: list[str] = []
        self.session = SimpleNamespace(
            key=("host", "s"), closed=False, over=False,
            permitted=Permitted(run="s-0", questions=frozenset([question.digest])),
        )  # fmt: skip

    async def refused(self, session, about, error):
        self.record.append(f"{about['run']}: {error.text}")

    def ask(self, question: DataQuestion) -> dict[str, str]:
        """Ask what is refused."""
        return asyncio.run(refuse_question(self, self.session, question)).fields


JOIN = DataQuestion({"a": TableRead("people", "t"), "b": TableRead("others", "t")}, "SELECT 1", "t")
OTHER = JOIN._replace(sql="SELECT 2")
ASKED = SimpleNamespace(questions=(), storage=(), stores={})


def test_what_no_source_can_query_is_read_whole_in_that_run():
    front = Front(JOIN)
    permit_readings(front.session, "s-0", JOIN)
    expected = {each.digest for each in (JOIN, *JOIN.readings)}
    assert front.session.permitted.questions == expected


@pytest.mark.parametrize("late", ["another run", "the end of the run"])
def test_what_a_run_may_read_whole_is_not_permitted_to_what_follows(late):
    """The answer comes after the run: an engine that was taken over has begun the next one."""
    front = Front(JOIN)
    if late == "another run":
        front.session.permitted = Permitted(run="s-1").after(front.session.permitted)
    else:
        FrontGate.end_questions(None, front.session, "s-0")
    permit_readings(front.session, "s-0", JOIN)
    assert not front.session.permitted.questions


def test_an_engine_that_has_not_ended_the_run_before_is_not_accused():
    front = Front(JOIN)
    front.session.permitted = Permitted(run="s-1").after(front.session.permitted)
    assert front.ask(JOIN) == {"refused": PUBLIC}
    assert front.record == []
    front.ask(OTHER)
    assert front.record[0].startswith("s-1: its engine asks for a query of data set others, people")


@pytest.mark.parametrize("end", ["closed", "over"])
def test_an_engine_whose_session_has_ended_is_not_accused(end):
    front = Front(JOIN)
    setattr(front.session, end, True)
    assert front.ask(OTHER) == {"refused": PUBLIC}
    assert front.record == []


def test_what_is_on_record_of_a_question_is_short():
    front = Front(JOIN)
    front.ask(DataQuestion({str(n): TableRead("x" * 500 + str(n), "t") for n in range(99)}))
    assert len(front.record[0]) < 700


def test_a_run_sees_one_state_of_a_data_set_however_it_asks():
    """Not in the engine alone, which may have been taken over."""
    session = Front(JOIN).session
    session.permitted = permitted_of(ASKED, 0, "s-0")
    (reading, _) = JOIN.readings
    assert sees_one_state(session, "s-0", JOIN, {"a": "1", "b": None})
    assert sees_one_state(session, "s-0", reading, {"": "1"})
    assert not sees_one_state(session, "s-0", reading, {"": "2"})
    assert not sees_one_state(session, "s-0", JOIN, {"a": "2", "b": None})
    session.permitted = permitted_of(ASKED, 0, "s-1")
    assert sees_one_state(session, "s-0", JOIN, {"a": "3", "b": None})  # late, and not compared
    assert sees_one_state(session, "s-1", JOIN, {"a": "2", "b": None})


def test_a_worker_without_a_gate_knows_of_no_runs():
    session = SimpleNamespace(permitted=Permitted())
    assert all(sees_one_state(session, "", JOIN, {"a": each, "b": None}) for each in "12")


def test_rows_that_are_read_tell_their_state(folder):
    source = {"source": f"parquet:{folder}/people.parquet", "columns": COLUMNS, "readers": ["host"]}
    server = SECTION.front(SECTION.read({"people": source}, "/"), {})
    asker = SimpleNamespace(coordinator="host", session="s", parties=["bank"], rank=0)
    read, files, _ = server.answer(asker, "read", {"tables": {"": PEOPLE}}, ())
    gives = 'table<["n", "int64"]>'
    asked = {"tables": {"p": PEOPLE}, "sql": "SELECT count(*) AS n FROM p", "gives": gives}
    queried, more, _ = server.answer(asker, "query", asked, ())
    for each in (*files, *more):
        os.close(each)
    assert read["versions"][""] == queried["versions"]["p"]
