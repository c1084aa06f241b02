"""On workers the library runs in a process of its own at each party, and gives the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from mplang_phe import decrypt, encrypt, keygen, segment_sum

import mplang_core as mp

pytestmark = pytest.mark.needs("http", "worker")


def program():
    private, public = mp.device("P0")(keygen)(bits=2048)
    x = mp.device("P0")(encrypt)(mp.put("P0", [[1.5, -2.0], [0.25, 8.0]]), public, limit=8, scale=9)
    there = mp.put("P1", public)
    y = mp.device("P1")(segment_sum)(mp.put("P1", x), mp.put("P1", [1, 1]), there, count=2)
    return mp.device("P0")(decrypt)(mp.put("P0", y), private)


def test_workers_give_what_a_simulator_gives():
    from mplang_http import LocalCluster

    with LocalCluster(["bank", "shop"]) as workers, mp.connect("http", workers.spec) as host:
        found = [mp.fetch(host, mp.evaluate(host, program)) for _ in range(2)]
    for each in found:
        np.testing.assert_array_equal(each, [[0, 0], [1.75, 6]])
