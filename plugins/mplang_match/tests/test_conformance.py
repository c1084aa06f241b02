"""``mplang_match`` keeps what mplang asks of plugins, and its matchers what it asks of these."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from mplang_match import service
from mplang_match.ops import MAX_KEYS
from mplang_match.token_type import TokensType
from mplang_tables import arrow
from mplang_testing import (
    MatcherSuite,
    NativeCall,
    NativeSuite,
    Of,
    PartyOpSuite,
    PartySample,
    PluginSuite,
    TypeSuite,
)

import mplang_core as mp

TABLE = pa.table({"id": ["a", "b", "b", None, "c"], "row": [0, 1, 2, 3, 4]})


class TestRr22(MatcherSuite):
    protocol = "RR22"


class TestKkrt(MatcherSuite):
    protocol = "KKRT"


class TestEcdh(MatcherSuite):
    protocol = "ECDH"


def match_of(**arguments):
    def program(table):
        a, b = (mp.pshfl_s(table, [rank], [rank]) for rank in (0, 1))
        return mp.match(a, b, on="id", **arguments)

    return program


X = Of(arrow.type_of(TABLE), TABLE)


class TestPartyOps(PartyOpSuite):
    family = "match"
    samples = (
        PartySample("match.match", match_of(), X, name="both"),
        PartySample(
            "match.match", match_of(learn="node1", rows={"node0": 9, "node1": 9}), X, name="one"
        ),
    )


class Telling:
    """Matcher that tells its tokens: the service is tried by it, as libpsi writes to the log."""

    def match(self, link, tokens, *, learns):
        comm, key = link.communicator, f"{link.key}|tokens"
        comm.send(link.peer, key, bytes(tokens))
        theirs = {*bytes(comm.recv(link.peer, key)).splitlines(keepends=True)}
        mine = bytes(tokens).splitlines(keepends=True)
        return memoryview(b"".join(each for each in mine if each in theirs)) if learns else None


class TestNative(NativeSuite):
    family = "match"

    @pytest.fixture(autouse=True)
    def _telling(self, monkeypatch):
        monkeypatch.setattr(service, "find_matcher", lambda name: Telling())

    def calls(self, rank, run):
        tokens = b"".join(b"%032x\n" % each for each in range(rank, rank + 5))
        fields = {"protocol": "RR22", "key": f"{run}/0", "peer": 1 - rank, "learns": rank == 0}
        return [NativeCall("match", fields, [tokens])]


class TestTypes(TypeSuite):
    kinds = st.builds(TokensType, st.none() | st.integers(0, MAX_KEYS))


class TestPlugin(PluginSuite):
    distribution = "mplang-match"


def test_the_type_of_tokens_says_how_many_there_are():
    assert TokensType(10).nbytes == 400
    assert TokensType().nbytes is None
