"""Ops that take longer, or send more, for some values and do not say so: the kit finds them."""

from __future__ import annotations

import pytest
from mplang_testing import kernels
from planted_head import HEAD

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.once, pytest.mark.needs("tables")]

OP = (
    HEAD
    + '''
import time
from mplang_analysis import SideChannelRule, SideChannels


@mp.simple_op(
    "fault.turns", reads=(), total=True,
    interfaces=[SideChannelRule(lambda op: SideChannels({declared}))],
)
def turns(x: TensorType) -> TensorType:
    """Takes as long as a number is large."""
    return x


@mp.kernel("fault.turns")
def kernel(ctx, x):
    end = time.process_time() + (0.6 if (x > 1 << 40).any() else 0.0)
    while time.process_time() < end:
        pass
    return x


class TestFaulty(KernelSuite):
    family = "fault"
    samples = (Sample("fault.turns", X),)
'''
)
SENDS = (
    HEAD
    + '''
from mplang_analysis import SideChannelRule, SideChannels


@mp.simple_op(
    "fault.sends", reads=(), total=True,
    interfaces=[SideChannelRule(lambda op: SideChannels({declared}))],
)
def sends(x: TensorType) -> TensorType:
    """Sends more where a number is large."""
    return x


@mp.kernel("fault.sends")
def kernel(ctx, x):
    large = bool((x > 1 << 40).any())
    comm, me = ctx.interpreter.communicator, ctx.interpreter.communicator.rank
    for i in range({number}):
        comm.send(1 - me, f"{ctx.key}.{i}", np.zeros({size}))
        comm.recv(1 - me, f"{ctx.key}.{i}")
    return x


class TestFaulty(KernelSuite):
    family = "fault"
    samples = (Sample("fault.sends", X, parties=2),)
'''
)
SIZES = [
    ({"declared": "", "number": "1 + large", "size": "8"}, 1),
    ({"declared": "", "number": "1", "size": "8 + large"}, 1),
    ({"declared": "", "number": "2", "size": "8 + (i if large else -i)"}, 1),
    ({"declared": "sizes=(0,)", "number": "1 + large", "size": "8"}, 0),
    ({"declared": "sizes=(0,)", "number": "1", "size": "8 + large"}, 0),
    ({"declared": "", "number": "1", "size": "8"}, 0),
]
TEST = "test_messages_and_work_depend_on_values_only_if_it_says_so"


@pytest.mark.parametrize(("declared", "failed"), [("", 1), ("duration=(0,)", 0)])
def test_work_by_values_is_found_if_it_is_not_declared(run, monkeypatch, declared, failed):
    monkeypatch.setattr(kernels, "LONG", 0.2)
    result = run(OP.replace("{declared}", declared), "-k", TEST)
    outcomes = result.parseoutcomes()
    assert (outcomes.get("failed", 0), outcomes.get("passed", 0)) == (failed, 1 - failed)
    if failed:
        result.stdout.fnmatch_lines(["*takes far longer for*does not say so*"])


@pytest.mark.parametrize(("fault", "failed"), SIZES)
def test_messages_by_values_are_found_if_they_are_not_declared(run, fault, failed):
    source = SENDS
    for name, text in fault.items():
        source = source.replace(f"{{{name}}}", text)
    result = run(source, "-k", TEST)
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed", 0) == failed
    assert outcomes.get("passed", 0) == 1 - failed
    if failed:
        result.stdout.fnmatch_lines(["*sends other messages for*does not say so*"])
