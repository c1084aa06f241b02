"""``mplang_xp`` keeps what mplang asks of every plugin."""

from __future__ import annotations

import numpy as np
from mplang_testing import FeopSuite, KernelSuite, PluginSuite, Sample

from mplang_xp import xp

X = np.float32([[1, 2, 6], [0, 0, 9]])
WEIGHTS = np.float32([1, 0, 2])


def weighted(x):
    return xp.sum(x * WEIGHTS, axis=-1) / 3


SAMPLES = (
    Sample("xp.compile", weighted, X, expect=lambda y: np.allclose(y, [13 / 3, 6])),
    Sample(
        "xp.compile",
        lambda x: {"top": xp.max(x), "turned": x.T[1:, :]},
        X,
        name="two results",
        expect=lambda top, turned: top == 9 and (turned == X.T[1:, :]).all(),
    ),
)


class TestFeops(FeopSuite):
    family = "xp"
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "xp"
    samples = SAMPLES


class TestPlugin(PluginSuite):
    distribution = "mplang-xp"
    heavy = ("jax", "pytest", "hypothesis")
