"""Ops that take longer, or send more, for some values and do not say so: the kit finds them."""

from __future__ import annotations

import pytest
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
    end = time.process_time() + (3.0 if (x > 1 << 40).any() else 0.0)
    while time.process_time() < end:
        pass
    return x


class TestFaulty(KernelSuite):
    family = "fault"
    samples = (Sample("fault.turns", X),)
'''
)
TEST = "test_messages_and_work_depend_on_values_only_if_it_says_so"


@pytest.mark.parametrize(("declared", "failed"), [("", 1), ("duration=(0,)", 0)])
def test_work_by_values_is_found_if_it_is_not_declared(pytester, declared, failed):
    pytester.makepyfile(OP.replace("{declared}", declared))
    result = pytester.runpytest_subprocess("-k", TEST, "-p", "no:cacheprovider")
    assert result.parseoutcomes().get("failed", 0) == failed
    if failed:
        result.stdout.fnmatch_lines(["*takes far longer for*does not say so*"])
