"""What the table of disclosures does not have, a query over several parties does not tell.

Of random queries one party's rows are changed: the messages have the same numbers, kinds and sizes,
and whoever gets something else has a row for it.
"""

from __future__ import annotations

from collections import Counter

import pytest
from across_parties import program_of
from mplang_simulator.threads import ThreadCommunicator
from random_queries import changed, query, tables
from secret_joining import PARTIES, cluster

import mplang_core as mp
from mplang_core.errors import MPLangError, TraceError

LONG = 500
TOLD_BY_A_MATCH = "|common"  # how many keys are in common, which who gets it learns


@pytest.fixture
def messages(monkeypatch):
    """Return the messages of a run, of what kind and size; from whom to whom, but for libspu's.

    Which of the parties ABY3 has send what all three could make is chance.
    """
    seen, send = [], ThreadCommunicator.send

    def recorded(comm, to, key, data):
        if not key.endswith(TOLD_BY_A_MATCH):
            is_bytes = isinstance(data, bytes | bytearray | memoryview)
            size = len(data) if is_bytes else getattr(data, "shape", None)
            ends = () if is_bytes else (comm.rank, to)
            seen.append((*ends, type(data).__name__, size))
        send(comm, to, key, data)

    monkeypatch.setattr(ThreadCommunicator, "send", recorded)
    return seen


def told_alike(seed, messages):
    """Return whether a query runs; it tells the same of other rows, but for what the table has."""
    parties = 3 if seed % 4 == 0 else 2
    match = "psi" if parties == 2 and seed % 2 else "secret"
    data, text = tables(seed, parties), query(seed, parties)
    party = PARTIES[seed % parties]
    program = program_of(data, text, match=match)
    protocol, field = "ABY3" if seed % 5 == 0 else "SEMI2K", "FM128" if "stddev" in text else "FM64"
    spec = cluster(protocol, parties, field=field, use_mplang_channel=True)
    runs, rows = [], ()
    for each in (data, changed(data, party, seed)):
        messages.clear()
        with mp.Simulator(spec, data=each) as sim:
            try:
                traced = mp.compile(program).trace(sim)
            except TraceError:
                return False
            rows = mp.analysis.disclosure(traced.program).rows
            found = _outcome(sim, traced)
        runs.append((found, Counter(messages)))
    (one, sent), (other, sent_then) = runs
    assert sent == sent_then, text
    if one != other:
        rank = PARTIES.index(party)
        what = "failure" if "failed" in (one[0], other[0]) else "result"
        assert any(row.what == what and rank in row.inputs for row in rows), text
    return True


def _outcome(sim, traced):
    """Return what the host gets of a run: that it failed, or the numbers."""
    try:
        found = mp.fetch(sim, mp.evaluate(sim, traced))
    except MPLangError:
        return "failed", ""
    try:
        return "told", str(found.to_arrow().to_pylist())
    except OverflowError:  # what the result tells, too
        return "told", "too large"


@pytest.mark.parametrize(
    "seed", [1, pytest.param(3, marks=pytest.mark.long("half a minute")), 4, 6]
)
def test_other_rows_are_not_told_apart(seed, messages):
    told_alike(seed, messages)


@pytest.mark.long("five hundred random queries, twice each")
@pytest.mark.timeout(7200)
def test_of_five_hundred_queries_other_rows_are_not_told_apart(messages):
    assert sum(told_alike(seed, messages) for seed in range(1000, 1000 + LONG)) >= LONG * 7 // 10
