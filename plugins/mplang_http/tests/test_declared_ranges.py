"""Tests of declared ranges: checked at the workers, without disclosure of the value."""

from __future__ import annotations

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import PartyError


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_worker_checks_its_value(five_workers, mode):
    def program(x):
        return mp.put("P1", mp.put("P0", x, range=(0, 9)))

    with mp.connect("http", mp.ClusterSpec(five_workers.spec.nodes[:2])) as host:
        assert mp.fetch(host, mp.evaluate(host, program, np.int64(9), mode=mode)) == 9
        with pytest.raises(PartyError, match=r"party 0 .* outside of the range \[0, 9\]") as caught:
            mp.evaluate(host, program, np.int64(271_828), mode=mode)
    assert "test_declared_ranges.py:" in str(caught.value)
    assert "271828" not in str(caught.value)
