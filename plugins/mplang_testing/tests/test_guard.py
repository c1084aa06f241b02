"""A suite's tests stand: none is overridden or deleted, and what may fail says why, for a while."""

from __future__ import annotations

import pytest
from mplang_testing import FeopSuite

pytest_plugins = ["pytester"]

GOOD = """
from mplang_core import TensorType
from mplang_testing import FeopSuite, Sample, dialect

X = TensorType("i64", (2,))
NAMES = ["add", "mul", "less", "fail_at", "late", "rank", "share", "make_key"]
ATTRS = {"fail_at": {"party": 1}, "late": {"party": 1, "seconds": 0.0}}
COUNT = {"rank": 0, "fail_at": 1, "late": 1, "share": 1, "make_key": 0}
SAMPLES = [
    Sample(
        f"kit.{name}", *[X] * COUNT.get(name, 2), attrs=ATTRS.get(name, {}),
        random=name == "make_key",
    )
    for name in NAMES
]


class TestMine(FeopSuite):
    family = "kit"
    samples = SAMPLES
"""


def test_what_keeps_its_promises_passes(run):
    result = run(GOOD)
    assert result.ret == 0
    assert result.parseoutcomes().keys() == {"passed"}


@pytest.mark.parametrize(
    "body",
    [
        "    def test_twice_gives_the_same_bytes(self, sample): pass",
        "    test_twice_gives_the_same_bytes = None",
        "    test_twice_gives_the_same_bytes = pytest.mark.skip(lambda self: None)",
    ],
)
def test_overriding_a_test_fails(run, body):
    result = run("import pytest\n" + GOOD + body, "-k", "twice")
    assert result.ret != 0
    result.stdout.fnmatch_lines(
        ["*TestMine changes test_twice_gives_the_same_bytes, which the kit promises*"]
    )


def test_overriding_a_test_by_a_mixin_fails():
    class Mixin:
        def test_twice_gives_the_same_bytes(self, sample):
            pass

    with pytest.raises(TypeError, match="TestMine changes test_twice_gives_the_same_bytes"):
        type("TestMine", (Mixin, FeopSuite), {"family": "kit"})


@pytest.mark.parametrize("name", ["test_the_kit_is_whole", "pytest_generate_tests"])
def test_overriding_the_guard_fails(name):
    with pytest.raises(TypeError, match=f"TestMine changes {name}"):
        type("TestMine", (FeopSuite,), {name: lambda self, *args: None})


def test_deleting_a_test_fails(run):
    """The suite itself is changed here, so it has to be put right again."""
    kept = FeopSuite.test_twice_gives_the_same_bytes
    try:
        result = run(GOOD + "\ndel FeopSuite.test_twice_gives_the_same_bytes\n")
    finally:
        FeopSuite.test_twice_gives_the_same_bytes = kept
    result.assert_outcomes(failed=1, passed=result.parseoutcomes()["passed"])
    result.stdout.fnmatch_lines(["*TestMine changes test_twice_gives_the_same_bytes, which*"])


def test_replacing_a_test_after_the_class_fails(run):
    result = run(GOOD + "\nTestMine.test_twice_gives_the_same_bytes = lambda self: None\n")
    result.stdout.fnmatch_lines(["*TestMine changes test_twice_gives_the_same_bytes, which*"])
    assert result.parseoutcomes()["failed"] == 1


def test_a_stale_xfail_fails(run):
    result = run(GOOD + "    xfail = {'test_the_kit_is_w': 'x'}")
    result.stdout.fnmatch_lines(["*names 'test_the_kit_is_w'; there is no such test*"])
    stale = "    xfail = {'test_twice_gives_the_same_bytes[kit.add]': 'not yet'}"
    result = run(GOOD + stale)
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*XPASS(strict)*not yet*"])


def test_an_xfail_with_a_reason_is_allowed_and_shown(run):
    broken = GOOD.replace("samples = SAMPLES", "samples = SAMPLES[:2]")
    result = run(broken)
    assert result.parseoutcomes()["failed"] == 1
    named = "    xfail = {'test_there_is_a_sample_of_every_feop': 'kit is not mine'}"
    result = run(broken + named, "-rx")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["XFAIL *test_there_is_a_sample_of_every_feop* - kit is not mine"])


@pytest.mark.parametrize(
    ("xfail", "message"),
    [
        ({"test_twice_gives_the_same_bytes": " "}, "gives no reason"),
        ({"test_no_such_thing": "x"}, "there is no such test"),
        ({"test_the_kit_is_whole": "x"}, "cannot be left to fail"),
        ({"cases": "x"}, "cannot be left to fail"),
    ],
)
def test_an_xfail_names_a_test_and_a_reason(xfail, message):
    with pytest.raises(TypeError, match=message):
        type("TestMine", (FeopSuite,), {"xfail": xfail})
