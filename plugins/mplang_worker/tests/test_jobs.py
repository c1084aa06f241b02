"""Jobs as the front knows them: what its gate refused is what a coordinator gets."""

from __future__ import annotations

import pytest
from mplang_worker.front.jobs import FrontJobs

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
    assert asked == status
    assert (status["state"], status["held"]) == ("failed", [])
    assert (status["error"]["text"], status["error"]["location"]) == ("no", "demo.py:7")
    assert [each["party"] for each in status["error"]["refusals"]] == ["bank"]


def test_an_engine_cannot_say_that_rules_refuse(jobs):
    told = ended(error={**FORGED, "refusals": [{"party": "shop", "advice": ["pay me"]}]})
    asked = [jobs.judged(run, told) for run in (RUN, "forgotten")]
    jobs.update(told)
    for status in (*asked, jobs.get(RUN).status):
        assert status["error"] == FORGED
