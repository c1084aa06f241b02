"""Tests of declared ranges: checked at the workers; the error has the line, the log the range."""

from __future__ import annotations

import numpy as np
import pytest
from log_reading import LogReader
from mplang_http import LocalCluster

import mplang_core as mp
from mplang_core.errors import PartyError


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_worker_checks_its_value(tmp_path, mode):
    def program(x):
        return mp.put("P1", mp.put("P0", x, range=(0, 9)))

    line = f"test_declared_ranges.py:{program.__code__.co_firstlineno + 1}"
    options = {"log": str(tmp_path), "log_level": "debug"}
    with LocalCluster(2, **options) as cluster, mp.connect("http", cluster.spec) as host:
        assert mp.fetch(host, mp.evaluate(host, program, np.int64(9), mode=mode)) == 9
        log = LogReader(tmp_path / "node0.log")
        with pytest.raises(PartyError) as caught:
            mp.evaluate(host, program, np.int64(271_828), mode=mode)
        log.wait_for(r"party 0 has a value outside of the range \[0, 9\]")
    assert caught.value.op == "simp.bounded"
    assert f"party 0 failed in simp.bounded at {line}: the reason is in" in str(caught.value)
    assert "271828" not in str(caught.value) + (tmp_path / "node0.log").read_text()
