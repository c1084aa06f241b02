"""The kit's own dialect, and the core's types and ops among parties pass it."""

from __future__ import annotations

import numpy as np
from mplang_testing import (
    DeviceSuite,
    FeopSuite,
    KernelSuite,
    Of,
    PartyOpSuite,
    PartySample,
    Sample,
    TypeSuite,
    dialect,
    strategies,
)

import mplang_core as mp

assert dialect.add

X, Y = np.int64([1, 2]), np.int64([3, 4])


class TestDialectFeops(FeopSuite):
    family = "kit"
    samples = (
        Sample("kit.add", X, Y, expect=lambda z: (z == X + Y).all()),
        Sample("kit.mul", X, Y, parties=2),
        Sample("kit.less", X, Y),
        Sample("kit.rank", parties=3, expect=lambda ranks: list(map(int, ranks)) == [0, 1, 2]),
        Sample("kit.fail_at", X, attrs={"party": 7}),
        Sample("kit.late", X, attrs={"party": 7, "seconds": 0.0}),
    )


class TestDialectKernels(KernelSuite):
    family = "kit"
    samples = TestDialectFeops.samples


class TestPlainDevices(DeviceSuite):
    kind = "PPU"

    def cluster(self):
        return mp.ClusterSpec.simple(2)


class TestTensors(TypeSuite):
    kinds = strategies.tensor_types()

    def values(self, kind):
        return strategies.tensors_of(kind)


RANKS = Of(mp.TensorType("i64"), *map(np.int64, (2, 0, 1)))


def ask_two_of_three(x):
    return mp.pshfl(x, mp.simp.pcall_static([0, 2], dialect.rank))


class TestOpsAmongParties(PartyOpSuite):
    family = "simp"
    samples = (
        PartySample("simp.shuffle_static", lambda x: mp.pshfl_s(x, [0, 1, 2], [2, 1, 1]), X),
        PartySample("simp.shuffle_dynamic", mp.pshfl, X, RANKS),
        PartySample("simp.shuffle_dynamic", ask_two_of_three, X),
        PartySample("simp.keep", mp.keep, X),
        PartySample("simp.converge", lambda: mp.pconv([mp.constant(1, parties=[1])])),
    )
