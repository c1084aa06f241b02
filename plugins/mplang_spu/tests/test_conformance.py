"""Conformance of ``mplang_spu`` with the kit for frontends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from mplang_spu import ShareType, SpuConfig, blocks, engine
from mplang_spu.config import ENV, resolve_config
from mplang_spu.reconstruction import reconstruct
from mplang_testing import (
    DeviceSuite,
    FeopSuite,
    KernelSuite,
    Of,
    PluginSuite,
    Sample,
    TypeSuite,
    strategies as kit,
)

import mplang_core as mp

X = np.float32([1, 2, 3])
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


@pytest.mark.usefixtures("way")
class TestFeops(FeopSuite):
    family = "spu"
    claims_all = True
    samples = SAMPLES


@pytest.mark.usefixtures("way")
class TestKernels(KernelSuite):
    family = "spu"
    samples = SAMPLES


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


class TestPlugin(PluginSuite):
    distribution = "mplang-spu"
    heavy = ("spu", "jax")
