"""Jobs as the front knows them: what its gate refused is what a coordinator gets."""

from __future__ import annotations

import asyncio
import json
import tracemalloc

import pytest
from mplang_worker.front.jobs import MAX_KNOWN, FrontJobs

from mplang_core.errors import AdmissionError, Refusal

RUN = "s-1"
FORGED = {"kind": "AdmissionError", "text": "a lie", "op": None, "location": None}
REFUSAL = Refusal("bank", "forbidden", "fetch", "Host", location="demo.py:7")


@pytest.fixture
def jobs():
    made = FrontJobs()
    made.begin(RUN)
    return made


def ended(**fields):
    return {"run": RUN, "state": "failed", "held": [], "error": None, "ended": 1.0, **fields}


@pytest.mark.parametrize("claim", [{"state": "done", "held": [True]}, {"error": FORGED}])
def test_what_the_gate_refuses_is_refused_whatever_an_engine_says(jobs, claim):
    jobs.judge(RUN, AdmissionError("no", refusals=(REFUSAL,)))
    asked = jobs.judged(RUN, ended(**claim))  # as each call to an engine answers
    jobs.update(ended(**claim))
    status = jobs.get(RUN).status
    assert json.loads(json.dumps(asked)) == status  # as a coordinator gets both
    assert (status["state"], status["held"]) == ("failed", [])
    assert (status["error"]["text"], status["error"]["location"]) == ("no", "demo.py:7")
    assert [each["party"] for each in status["error"]["refusals"]] == ["bank"]


def test_an_engine_cannot_say_that_rules_refuse(jobs):
    told = ended(error={**FORGED, "refusals": [{"party": "shop", "advice": ["pay me"]}]})
    asked = [jobs.judged(run, told) for run in (RUN, "forgotten")]
    jobs.update(told)
    for status in (*asked, jobs.get(RUN).status):
        assert status["error"] == FORGED


def test_jobs_that_have_ended_take_little_memory():
    """A front grew by 5 MB in a thousand runs of one session, and forgot none of two thousand."""
    made, links = (
        FrontJobs(),
        {"1": {"sent": 4096, "received": 4096, "messages": 12, "seconds": 0.1}},
    )

    def run(number):
        name = f"{'0' * 32}-{number}"
        made.begin(name)
        made.give_receipt(name, f"{number:0256}")
        made.update(ended(run=name, state="done", held=[True], links=links), settled=True)

    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(2 * MAX_KNOWN):
            run(number)
        grown = (tracemalloc.get_traced_memory()[0] - before) / MAX_KNOWN
    finally:
        tracemalloc.stop()
    assert grown < 1800, f"{grown:.0f} bytes a job"
    assert made.get(f"{'0' * 32}-{MAX_KNOWN - 1}") is None  # the last thousand are kept
    kept = made.get(f"{'0' * 32}-{MAX_KNOWN}")
    assert kept.status["links"] == links
    assert int(kept.status["receipt"]) == MAX_KNOWN


def test_whoever_waits_for_a_job_learns_of_its_end(jobs):
    async def wait():
        waiting = [asyncio.create_task(event.wait()) for event in _events(jobs)]
        await asyncio.sleep(0)  # so that they wait
        jobs.update(ended(), settled=True)
        await asyncio.gather(*waiting)

    asyncio.run(wait())
    assert jobs.get(RUN).status["state"] == "failed"
    assert jobs.active == 0


@pytest.mark.parametrize("stop", ["it has failed", "it was cancelled"])
def test_whoever_opens_a_session_waits_for_what_was_stopped(jobs, stop):
    """A front vouched for an MPC process that ended itself a moment later, with the failed run."""

    async def wait():
        await jobs.wait_for_stopped()  # of what runs nobody waits
        if stop == "it has failed":
            jobs.update(ended())
        else:
            jobs.cancel(RUN)
        waiting = asyncio.create_task(jobs.wait_for_stopped())
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        jobs.update(ended(), settled=True)
        await waiting

    asyncio.run(wait())


def _events(jobs):
    return jobs.get(RUN).accepted, jobs.get(RUN).ended


def test_what_is_told_of_a_job_after_its_end_changes_nothing(jobs):
    jobs.update(ended(state="cancelled"))
    jobs.update(ended(state="done", held=[True]), settled=True)
    assert jobs.get(RUN).status["state"] == "cancelled"
    assert jobs.get(RUN).settled
