"""``mplang_hello`` keeps what mplang asks of every plugin."""

from __future__ import annotations

import mplang_core as mp
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from mplang_core import TensorType
from mplang_testing import (
    AdmissionSuite,
    AnalysisSuite,
    AttributeSuite,
    BackendSuite,
    CommunicatorSuite,
    DeviceSuite,
    FeopSuite,
    GuardSuite,
    KernelSuite,
    Of,
    PartyOpSuite,
    PartySample,
    PassSuite,
    PluginSuite,
    Sample,
    TypeSuite,
)
from mplang_testing import strategies as kit

from mplang_hello import Half, HalfType, Rate, Summary, SummaryType, broadcast, kernels
from mplang_hello.backend import Inline, InlineCommunicator

X = np.float32([[1, 2, 6], [0, 0, 9]])
HALVES = kernels.split(None, X)
PEOPLE = Of(
    mp.TableType((("id", "int64"), ("pay", "double"))),
    pa.table({"id": [1, 2, 3], "pay": [1.0, 2.0, 3.0]}),
)
BOTH = Of(HalfType(TensorType.of(X)), *HALVES)  # each of two parties has one

SAMPLES = (
    Sample(
        "hello.summarize",
        X,
        attrs={"digits": 1},
        expect=lambda found: (found.least, found.mean, found.greatest) == (0, 3, 9),
    ),
    Sample("hello.standardize", X, expect=lambda y: abs(y.mean()) + abs(y.std() - 1) < 1e-6),
    Sample(
        "hello.split",
        X,
        random=True,
        expect=lambda a, b: a != b and (kernels.join(None, b, a) == X).all(),
    ),
    Sample(
        "hello.join", *[Of(BOTH.kind, half) for half in HALVES], expect=lambda x: (x == X).all()
    ),
    Sample(
        "hello.pick",
        BOTH,
        attrs={"row": 1},
        parties=2,
        expect=lambda rows: (kernels.join(None, *rows) == X[1]).all(),
    ),
    Sample(
        "hello.spread",
        PEOPLE,
        attrs={"column": "pay", "unit": "id", "k": 3},
        expect=lambda found: found.to_pylist() == [{"var": 1.0}],
    ),
    Sample(
        "hello.convert",
        X,
        attrs={"rate": Rate("EUR", 9, 10)},
        expect=lambda y: np.allclose(y, X * 0.9),
    ),
)


class TestFeops(FeopSuite):
    family = "hello"
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "hello"
    samples = SAMPLES


class TestPartyOps(PartyOpSuite):
    family = "hello"
    samples = (
        PartySample("hello.broadcast", lambda x: broadcast(x, root=1), X),
        PartySample("hello.broadcast", lambda x: broadcast(mp.put("P0", x), root=0), X, parties=2),
        PartySample("hello.broadcast", lambda x: broadcast(x, root=0), X, parties=1),
    )


def can_be_summarized(kind):
    return kind.size > 0 and not kind.dtype.value.startswith("c")


class TestSummary(TypeSuite):
    kinds = kit.tensor_types().filter(can_be_summarized).map(SummaryType)

    def values(self, kind):
        number = st.floats(allow_nan=False)
        return st.builds(Summary, st.just(kind), number, number, number)


class TestHalf(TypeSuite):
    kinds = kit.tensor_types().map(HalfType)

    def values(self, kind):
        size = kind.nbytes
        data = st.binary(min_size=size, max_size=size)
        return st.builds(Half, st.just(kind), data)


class TestRate(AttributeSuite):
    kinds = st.builds(Rate, st.text(max_size=4), st.integers(-9, 9), st.integers(1, 99))


class TestBroadcastOnce(PassSuite):
    name = "broadcast_once"


class TestHolders(AnalysisSuite):
    name = "holders"


def ping_pong(x):
    return mp.put("P0", mp.put("P1", x))


AT_MOST_ONE = {"most": 1}
TOO_MANY = {
    "hold 2 values": lambda: ping_pong(mp.put("P0", 1)),
    "hold 6 values": lambda: mp.uniform_cond(True, ping_pong, lambda x: x, mp.put("P0", 1)),
}


class TestFewValues(AdmissionSuite):
    name = "few_values"
    settings = AT_MOST_ONE
    admitted = (lambda: mp.put("P1", mp.put("P0", 1)),)
    refused = TOO_MANY


class TestVault(DeviceSuite):
    kind = "VAULT"

    def cluster(self):
        return mp.ClusterSpec.from_dict(
            {
                "nodes": [{"name": "alice"}, {"name": "bob"}],
                "devices": {
                    "A": {"kind": "PPU", "members": ["alice"]},
                    "B": {"kind": "PPU", "members": ["bob"]},
                    "V": {"kind": "VAULT", "members": ["alice", "bob"]},
                },
            }
        )


class TestGuards(GuardSuite):
    family = "hello"
    samples = tuple(each for each in SAMPLES if each.op == "hello.spread")


class TestBackend(BackendSuite):
    def make(self, cluster):
        return Inline(cluster)


class TestCommunicator(CommunicatorSuite):
    def make(self, parties, timeout):
        return InlineCommunicator.connected(parties, timeout)


class TestPlugin(PluginSuite):
    distribution = "mplang-hello"
    heavy = ("jax", "spu", "pytest", "hypothesis")
