"""Values whose bytes are in another order than this machine's."""

from __future__ import annotations

import numpy as np

import mplang_core as mp
from mplang_core.ext import decode, encode


def test_what_is_put_is_in_the_order_of_this_machine():
    with mp.Simulator(mp.ClusterSpec.simple(1)) as sim, mp.with_ctx(sim):
        found = mp.fetch(sim, mp.put("P0", np.array([1.0, 2.0], ">f8")))
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, [1.0, 2.0])


def test_what_is_sent_is_in_the_order_of_all_machines():
    """Whatever a kernel gave."""
    kind, value = mp.TensorType("i32", (2, 2)), np.array([[1, 2], [3, 4]], ">i4").T
    np.testing.assert_array_equal(decode(kind, *encode(kind, value)), [[1, 3], [2, 4]])
