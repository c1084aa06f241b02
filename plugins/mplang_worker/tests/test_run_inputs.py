"""Inputs of runs that follow one whose end was not awaited: what is checked, and when."""

from __future__ import annotations

import numpy as np
import pytest
from mplang_analysis import own
from mplang_http.wire.requests import JobRequest, Public, Stored
from mplang_worker.base.config import Limits
from mplang_worker.base.errors import RequestError
from mplang_worker.engine.inputs import RunInputs
from mplang_worker.engine.job import Job
from mplang_worker.engine.labels import SessionLabels
from mplang_worker.engine.values import SessionValues
from mplang_worker.front.jobs import FrontJobs
from mplang_worker.link.comm import HttpCommunicator
from mplang_worker.wire.stored_value import StoredValue

import mplang_core as mp
from mplang_core.errors import AbortedError, RunError
from mplang_core.ext import WireError, type_of

FIRST, RESULT = "s-0", "s-0.0"
ONE = np.int64(1)
PROGRAM = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda x: x, ONE).program
LATE = Stored([RESULT])


@pytest.fixture
def values():
    return SessionValues("s", "party 0", Limits())


@pytest.fixture
def before():
    """Return the job of a run that has not ended."""
    return Job(FIRST, "key", "program")


def inputs_of(values, before, *inputs, after=FIRST):
    request = JobRequest("s-1", "0" * 64, 0, list(inputs), [0], step=True, after=after)
    return RunInputs(request, PROGRAM, 0, values, {FIRST: before}.get)


def give(values, value):
    values.add({RESULT: StoredValue(type_of(value), value, own(0, "result"))})


def test_a_result_is_read_once_its_run_has_ended(values, before):
    inputs = inputs_of(values, before, LATE)
    inputs.check()
    assert list(inputs.values) == [None]
    give(values, ONE)
    before.end("done", [True], None)
    inputs.resolve()
    inputs.require()
    assert inputs.values[0].value is ONE
    assert inputs.labels(SessionLabels()) == [own(0, "result")]


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_it_does_not_run_unless_the_one_before_has_ended_well(values, before, state):
    inputs = inputs_of(values, before, LATE)
    give(values, ONE)  # which another party may not have
    before.end(state, [], None)
    inputs.resolve()
    with pytest.raises(AbortedError, match="the run before it, s-0, has not ended well"):
        inputs.require()
    assert inputs.labels(SessionLabels()) == [own(0, "unknown")]


@pytest.mark.parametrize(
    ("value", "text"), [(np.float64(1), "input 0 is not of type i64"), (None, "no value 's-0.0'")]
)
def test_a_result_of_another_type_or_none_is_refused_before_it_runs(values, before, value, text):
    inputs = inputs_of(values, before, LATE)
    if value is not None:
        give(values, value)
    before.end("done", [value is not None], None)
    inputs.resolve()
    with pytest.raises(RunError, match=text):
        inputs.require()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (Stored(["x"]), RequestError),
        (Stored(["s-7.0"]), RequestError),
        (Public(b"none"), WireError),
    ],
)
def test_what_no_run_is_to_give_is_refused_as_it_is_submitted(values, before, given, error):
    for after in (None, FIRST):
        with pytest.raises(error):
            inputs_of(values, before, given, after=after)


def test_too_many_inputs_are_refused_as_they_are_submitted(values, before):
    with pytest.raises(RequestError, match="takes 1 inputs"):
        inputs_of(values, before, LATE, LATE).check()


def test_a_run_that_follows_none_has_its_inputs_here(values, before):
    with pytest.raises(RequestError, match="no value 's-0.0'"):
        inputs_of(values, before, LATE, after=None)


def test_a_run_follows_one_of_its_session(values, before):
    with pytest.raises(RequestError, match="no run 's-7' in this session") as error:
        inputs_of(values, before, LATE, after="s-7")
    assert error.value.code == "unknown-job"


# -- how long a run may take that was queued


def ended(run):
    return {"run": run, "state": "done", "held": [], "error": None, "ended": 1.0}


def queued(*runs):
    jobs = FrontJobs()
    for run in runs:
        jobs.begin(run).begun -= 100
    return jobs


def test_the_time_of_a_run_begins_with_its_turn():
    jobs = queued("s-0", "s-1", "s-2")
    assert "s-0" in jobs.overdue(50, 50)
    jobs.update(ended("s-0"), settled=True)
    assert jobs.overdue(50, 50) is None  # s-1 has begun, and s-2 is queued still


def test_the_time_of_a_run_goes_on_while_those_behind_it_are_cancelled():
    jobs = queued("s-0", "s-1", "s-2")
    jobs.update(ended("s-1"), settled=True)
    jobs.update(ended("s-1"), settled=True)
    assert "s-0" in jobs.overdue(50, 50)


# -- who is at work


@pytest.fixture
def parties():
    made = HttpCommunicator.connected(2, 60.0)
    yield made
    for comm in made:
        comm._links.close()


def test_who_executes_a_run_is_at_work_in_those_behind_it(parties):
    _, comm = parties
    for run in ("first", "second"):
        comm.open(run)
    assert comm.waits_for("second") is None  # nothing is executed
    comm.begin("first")
    assert comm.waits_for("first") is None  # before it is evaluated
    assert comm.waits_for("second") == set()
    assert comm.waits_for("third") is None
    comm.stop("second", "it was cancelled")
    assert comm.waits_for("second") is None
    comm.finish()
    assert comm.waits_for("first") is None


def test_the_time_of_a_queued_run_on_links_begins_with_its_turn(parties):
    _, comm = parties
    comm.longest = 50.0
    comm.open("first")
    comm._runs["first"].ends -= 100
    before = comm._runs["first"].ends
    comm.begin("first")
    assert comm._runs["first"].ends > before + 50
