"""Facts of a run: what a checker tells is untrusted."""

from __future__ import annotations

import msgspec
import pytest
from mplang_analysis import follow
from mplang_worker.wire.run_facts import ProgramFacts, RunFacts

import mplang_core as mp
from mplang_core.ext import WireError


@pytest.fixture
def facts():
    kind = mp.MPType(mp.TensorType("i64"), mp.Mask.of(1))
    context = mp.TraceContext(mp.ClusterSpec.simple(2))
    program = mp.trace(context, lambda x: mp.put("P0", x), kind).program
    return ProgramFacts.of(program, follow(program)), follow(program).disclosure.rows


def test_rows_come_back_equal(facts):
    made, rows = facts
    assert tuple(ProgramFacts.read(made.write()).all_rows()) == rows


@pytest.mark.parametrize("known_to", [[-1], [1 << 62], ["0"], [True], 5, None])
def test_ranks_that_are_none_are_refused(facts, known_to):
    fields = msgspec.msgpack.decode(facts[0].write())
    fields[2][0][0]["known_to"] = known_to
    with pytest.raises(WireError, match="damaged"):
        ProgramFacts.read(msgspec.msgpack.encode(fields))


@pytest.mark.parametrize("place", [99, -1])
def test_a_place_that_is_none_is_refused(facts, place):
    fields = msgspec.msgpack.decode(facts[0].write())
    fields[3][0][1] = place
    with pytest.raises(WireError, match="damaged"):
        ProgramFacts.read(msgspec.msgpack.encode(fields)).all_rows()


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x90", b"\x91" * 2000])
def test_what_are_no_facts_is_refused(data):
    for kind in (RunFacts, ProgramFacts):
        with pytest.raises(WireError, match="damaged"):
            kind.read(data)
