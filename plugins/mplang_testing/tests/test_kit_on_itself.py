"""The kit's own dialect and the core's types pass it."""

from __future__ import annotations

import numpy as np
from mplang_testing import FeopSuite, KernelSuite, Sample, TypeSuite, dialect, strategies

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


class TestTensors(TypeSuite):
    kinds = strategies.tensor_types()

    def values(self, kind):
        return strategies.tensors_of(kind)
