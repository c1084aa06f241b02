"""Kinds of devices that run nothing, or that values do not reach: the kit finds each.

All of them are in one package, which a process of its own finds by entry points, as others do.
"""

from __future__ import annotations

import pytest
from planted_package import told_of

ENTRIES = """
[mplang.frontends]
fault = faults
"""

FAULTS = """
import mplang_core as mp
from mplang_core import Form
from mplang_core.ext import DeviceKind, Transfer, hookimpl


def hand_on(value, src, dst):
    to = dst.mask if dst is not None else value.ctx.mask
    return mp.pshfl_s(value, to, [value.pmask.first] * len(to))


def refuse(meta, members):
    return ["no"]


def fail(value, src, dst):
    raise mp.errors.TraceError("it does not leave")


@hookimpl
def mplang_devices():
    by_name = [
        Transfer("PPU", "BY_NAME", hand_on, "auto"),
        Transfer("BY_NAME", "PPU", hand_on, "reveal"),
        Transfer("BY_NAME", "party", hand_on, "reveal"),
        Transfer("BY_NAME", "ELSEWHERE", hand_on, "reveal"),
    ]
    no_way_out = [Transfer("NO_WAY_OUT", Form.PLAIN, fail, "put")]
    return [
        DeviceKind("BY_NAME", Form.SHARE, members=(2, 2), transfers=by_name),
        DeviceKind("NO_WAY_OUT", Form.PLAIN, transfers=no_way_out),
        DeviceKind("IDLE", Form.PLAIN, unsupported_reasons=refuse),
        DeviceKind("PAIR", Form.PLAIN, members=(2, 2)),
        DeviceKind("NARROW", Form.PLAIN, dialects=("kit",)),
        DeviceKind("BOAST", Form.SHARE, members=(2, 2), transfers=[
            Transfer(Form.PLAIN, "BOAST", hand_on, "auto"),
            Transfer("BOAST", Form.PLAIN, hand_on, "reveal"),
        ]),
        DeviceKind("OTHER", Form.PLAIN),
    ]
"""

TESTS = """
import mplang_core as mp
from mplang_testing import DeviceSuite


class Suite(DeviceSuite):
    members = ["a"]

    def cluster(self):
        devices = {
            "A": {"kind": "PPU", "members": ["a"]},
            "B": {"kind": "PPU", "members": ["b"]},
            "C": {"kind": "OTHER", "members": ["a"]},
            "F": {"kind": self.kind, "members": self.members},
        }
        nodes = [{"name": "a"}, {"name": "b"}]
        return mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})


class TestByName(Suite):
    kind, members = "BY_NAME", ["a", "b"]


class TestNoWayOut(Suite):
    kind = "NO_WAY_OUT"


class TestIdle(Suite):
    kind = "IDLE"


class TestPair(Suite):
    kind, members = "PAIR", ["a", "b"]


class TestNarrow(Suite):
    kind = "NARROW"


class TestNarrowAndSays(Suite):
    kind, runs = "NARROW", ("ops",)


class TestBoast(Suite):
    kind, members, runs = "BOAST", ["a", "b"], ("ops",)


class TestPlain(Suite):
    kind = "OTHER"
"""

CAUGHT = {
    "TestByName::test_values_go_to": "there is no way from F (BY_NAME of {0, 1}) to C",
    "TestByName::test_each_transfer": "a transfer between a BY_NAME and a ELSEWHERE is not tried",
    "TestNoWayOut::test_values_go_to": "a value does not go from F (NO_WAY_OUT of {0}) to A",
    "TestIdle::test_what_it_runs": "a IDLE does not run an op of one party",
    "TestPair::test_what_it_runs": "a PAIR does not run an op of one party",
    "TestBoast::test_what_it_runs": "a BOAST does not run an op of one party",
}
BY_FRONTENDS = {
    "TestNarrow::test_what_it_runs": "a NARROW does not run a Python function of arrays"
}
PASSES = ("TestNarrowAndSays", "TestPlain")
TRIED = ("test_values_go_to", "test_each_transfer", "test_what_it_runs")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Return what pytest prints of a test file on the faults."""
    return told_of(
        tmp_path_factory.mktemp("faults"), ENTRIES, FAULTS, TESTS, only=" or ".join(TRIED)
    )


def check_caught(told, test, words):
    name = test.replace("::", ".")
    parts = [part for part in told.split("\n____") if f" {name}" in part]
    assert parts, told[-4000:]
    assert any(words in part for part in parts), parts[0]


@pytest.mark.parametrize("test", CAUGHT)
def test_a_fault_is_caught(told, test):
    check_caught(told, test, CAUGHT[test])


@pytest.mark.needs("jax", "ibis")
@pytest.mark.parametrize("test", BY_FRONTENDS)
def test_a_fault_is_caught_by_frontends_that_are_installed(told, test):
    check_caught(told, test, BY_FRONTENDS[test])


def test_a_kind_that_runs_everything_or_says_what_it_runs_passes(told):
    assert "TestIdle" in told
    assert not [name for name in PASSES if f" {name}." in told], told[-4000:]
