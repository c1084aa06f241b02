"""A function of values that stay with their parties is run by who says so."""

from __future__ import annotations

import pytest

import mplang_core as mp
from mplang_core.device import DeviceKind, JointRun, device_kinds, joint_runs
from mplang_core.ext import flatten


class Asked:
    """What a joint run was asked, by the devices of the values."""

    def __init__(self):
        self.kind = DeviceKind("GUARDED", mp.Form.SHARE, members=(2, 2))
        self.calls = []

    def takes(self, device, values):
        return device.kind is self.kind

    def run(self, device, fn, args, kwargs):
        values, _ = flatten((args, kwargs))
        self.calls.append([value.device.name for value in values])
        return {"first": values[0]}


@pytest.fixture
def asked():
    """A device that nothing moves to, and a way to run functions on it."""
    asked = Asked()
    device_kinds.add("GUARDED", asked.kind, provider="test")
    joint_runs.add("test.asked", JointRun("test.asked", asked.takes, asked.run), provider="test")
    yield asked
    joint_runs.remove("test.asked")
    device_kinds.remove("GUARDED")


def trace(fn):
    nodes = [{"name": name} for name in "ab"]
    devices = {f"P{i}": {"kind": "PPU", "members": [name]} for i, name in enumerate("ab")}
    devices["G"] = {"kind": "GUARDED", "members": ["a", "b"]}
    spec = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})
    return mp.trace(mp.TraceContext(spec), fn)


def test_values_stay_where_they_are_and_results_are_on_the_device(asked):
    def program():
        made = mp.device("G")(max)(mp.put("P0", 1), mp.put("P1", 2))
        assert made["first"].device.name == "G"

    trace(program)
    assert asked.calls == [["P0", "P1"]]


def test_values_by_keyword_are_operands_too(asked):
    trace(lambda: mp.device("G")(max)(mp.put("P0", 1), other=[mp.put("P1", 2)]))
    assert asked.calls == [["P0", "P1"]]


def test_a_plain_device_gets_the_values(asked):
    asked.takes = None  # nobody asks
    trace(lambda: mp.put("P1", mp.put("P0", 1)))
    assert asked.calls == []
