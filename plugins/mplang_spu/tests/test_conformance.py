"""Conformance of ``mplang_spu`` with the kit for frontends."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest
from hypothesis import strategies as st
from mplang_simulator import ThreadCommunicator
from mplang_spu import ShareType, SpuConfig, blocks, engine, run_jax
from mplang_spu.config import ENV, resolve_config
from mplang_spu.reconstruction import reconstruct
from mplang_spu.target import Target
from mplang_testing import (
    AnalysisSuite,
    DeviceSuite,
    FeopSuite,
    KernelSuite,
    NativeCall,
    NativeSuite,
    Of,
    PluginSuite,
    Sample,
    TypeSuite,
    strategies as kit,
)
from mplang_testing.waiting import DEADLINE

import mplang_core as mp

X, P = np.float32([1, 2, 3]), np.float32([2, 2, 2])
BOTH = mp.Mask.all(2)
SEMI2K = resolve_config(SpuConfig(protocol="SEMI2K"), BOTH)


@pytest.fixture(params=["channels", "memory"])
def way(request, monkeypatch):
    """Link SPU over channels, as workers do, and in memory, as a simulator does by itself."""
    if request.param == "channels":
        monkeypatch.setenv(ENV, "1")
    else:
        monkeypatch.delenv(ENV, raising=False)


def share_type(array, config=SEMI2K):
    return ShareType.of(mp.TensorType.of(array), config)


def shares(array, config=SEMI2K):
    kind = share_type(array, config)
    io = engine.io(len(config.mask), config.protocol, config.field, config.fxp_fraction_bits)
    return Of(kind, *blocks.make_shares(io, array, kind))


@pytest.mark.usefixtures("way")
class TestDevice(DeviceSuite):
    kind = "SPU"
    values = (np.float32([[1.5, -2.0]]), np.int32(7), np.array([True, False]))
    tolerance = 1e-4
    runs = ("arrays",)

    def cluster(self):
        return mp.ClusterSpec.simple(3)


def close(expected):
    """Compare the tensors that the shares of both parties reconstruct to."""

    def check(made):
        return np.allclose(reconstruct(made), expected, atol=1e-3)

    return check


SAMPLES = (
    Sample(
        "spu.make_shares",
        X,
        attrs={"share": share_type(X)},
        random=True,
        expect=lambda *pieces: close(X)(pieces),
    ),
    Sample(
        "spu.reconstruct",
        *[Of(share_type(X), share) for share in shares(X).data],
        expect=lambda x: np.allclose(x, X, atol=1e-3),
    ),
    Sample(
        "spu.run_jax",
        lambda x, y: x * y + 1,
        shares(X),
        shares(X),
        config=SEMI2K,
        parties=2,
        random=True,
        expect=close(X * X + 1),
    ),
    Sample(
        "spu.run_jax",
        lambda x, p: (x > p, x.sum()),
        shares(X),
        np.float32([2, 2, 2]),
        config=SEMI2K,
        parties=2,
        random=True,
        expect=lambda above, total: close(X > 2)(above) and close(X.sum())(total),
        name="public-operand",
    ),
)


class TestFeops(FeopSuite):
    family = "spu"
    claims_all = True
    samples = SAMPLES


@pytest.mark.usefixtures("way")
class TestKernels(KernelSuite):
    family = "spu"
    samples = SAMPLES


class _Apart(ThreadCommunicator):
    """Communicator whose party is a process of its own, as those of workers are."""

    def links_in_memory(self, run):
        return False


class TestNative(NativeSuite):
    family = "spu"

    def make(self, parties):
        return _Apart.connected(parties, DEADLINE)

    def calls(self, rank, run):
        signature = mp.FeSignature((share_type(X), mp.TensorType.of(P)))
        attrs = run_jax(lambda x, p: x * p, signature, config=SEMI2K).pfunc.attrs
        target = Target.of(attrs["config"])
        code = engine.compile_code(attrs["program"]["code"], (True, False), target).code
        (chunk,) = shares(X).data[rank].chunks
        plain = {"dtype": "f32", "shape": [3]}
        storage = shares(X).data[rank].storage
        public = {"form": "public", **plain}
        first = {"form": "data", "share": 0, "storage": storage, "chunks": 1, **plain}
        second = {"form": "reference", "share": 1}
        device = {"parties": 3, "config": attrs["config"], "code": sha256(code).hexdigest()}

        def request(number, operand, **more):
            results = [{"share": number, "sent": number == 2, **plain}]
            told = {"key": f"{run}/{number}", "operands": [operand, public], "results": results}
            return {**device, **told, **more}

        return [
            NativeCall(
                "run", request(1, first, has_code=True, drop=[]), [code, bytes(chunk), P.tobytes()]
            ),
            NativeCall("run", request(2, second, has_code=False, drop=[0]), [P.tobytes()]),
        ]

    def refers(self, rank, run):
        return NativeCall("fetch", {"share": 2})


ELEMENTS = st.sampled_from([d for d in mp.DType if d.value not in ("c64", "c128", "bf16")])
CONFIGS = st.builds(
    lambda protocol, parties, field, fxp: resolve_config(
        SpuConfig(protocol=protocol, field=field, fxp_fraction_bits=fxp),
        mp.Mask.all({"ABY3": 3, "CHEETAH": 2}.get(protocol, parties)),
    ),
    st.sampled_from(["SEMI2K", "ABY3", "CHEETAH"]),
    st.integers(2, 5),
    st.sampled_from(["FM64", "FM128"]),
    st.integers(1, 30),
)


class TestShare(TypeSuite):
    kinds = st.builds(ShareType.of, kit.tensor_types(ELEMENTS), CONFIGS)

    def values(self, kind):
        """Return shares made by libspu: others are refused on decoding."""
        io = engine.io(len(kind.parties), kind.protocol, kind.field, kind.fxp)
        zeros = np.zeros(kind.plain.shape, kind.plain.dtype.numpy)
        return st.sampled_from(blocks.make_shares(io, zeros, kind))


class TestFields(AnalysisSuite):
    name = "fields"


class TestPlugin(PluginSuite):
    distribution = "mplang-spu"
    heavy = ("spu", "jax")
