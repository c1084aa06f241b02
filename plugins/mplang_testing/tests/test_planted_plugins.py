"""Plugins that work for their author, and harm others; each installed."""

from __future__ import annotations

import pytest
from wheels import install, make_wheel

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.once  # what is faulty gives other results elsewhere

SUITE = """
from mplang_testing import PluginSuite

class TestPlugin(PluginSuite):
    distribution = "acme-outside"
    heavy = ("wave",)
"""
PLUGIN = '''
import mplang_core as mp
from mplang_core.ir import OpDef, op_defs
from mplang_core.plugins import Dialect, KernelSpec, hookimpl

TENSOR = {{"kind": "Tensor"}}

@mp.simple_op("outside.triple", inputs=(TENSOR,), outputs=(TENSOR,))
def triple(x: mp.TensorType) -> mp.TensorType:
    """Triples.

    Example:
        >>> 3 * 1
        3
    """
    return x

def kernel(ctx, x):
    return x * 3

@hookimpl
def mplang_feops():
    return [triple]

@hookimpl
def mplang_kernels():
    return [KernelSpec({kernels}, kernel)]

{more}
'''
POINTS = {"mplang.frontends": ["outside"], "mplang.kernels": ["outside"]}
CORE = ("mplang-core>=0.1,<0.2",)


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    def make(kernels='["outside.triple"]', more="", requires=CORE, points=POINTS):
        source = PLUGIN.format(kernels=kernels, more=more)
        wheel = make_wheel(tmp_path, "acme-outside", "acme_outside", source, points, requires)
        install(tmp_path / "site", wheel)
        monkeypatch.syspath_prepend(tmp_path / "site")
        forget_answers()
        return SUITE

    yield make
    forget_answers()


def forget_answers():
    """What the kit found out of a distribution is kept; here each one has the same name."""
    from mplang_testing import plugins

    plugins._ask.cache_clear()


TRIED = """
import numpy as np
from mplang_testing import FeopSuite, KernelSuite, Sample

class TestFeops(FeopSuite):
    family = "outside"
    samples = (Sample("outside.triple", np.arange(3)),)

class TestKernels(KernelSuite):
    family = "outside"
    samples = TestFeops.samples
"""
BRINGS = {
    "KIND": """
@hookimpl
def mplang_devices():
    from mplang_core.ext import DeviceKind
    return [DeviceKind("OUTSIDE", mp.Form.PLAIN, doc="A kind.")]
""",
    "outside.box": """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True, slots=True)
class Box(mp.BaseType):
    name: ClassVar[str] = "outside.box"

@hookimpl
def mplang_dialects():
    return [Dialect("outside", types=[Box])]
""",
}


def test_a_good_plugin_passes(plugin, run):
    assert run(plugin() + TRIED, "-k", "TestPlugin").ret == 0


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("", "the family outside has a feop: no FeopSuite"),
        ("", "the family outside has a kernel of one party: no KernelSuite"),
        (BRINGS["KIND"], "the device kind OUTSIDE: no DeviceSuite"),
        (BRINGS["outside.box"], "the type outside.box: no TypeSuite"),
    ],
)
def test_what_a_plugin_brings_and_nothing_tries_is_named(plugin, run, more, line):
    result = run(plugin(more=more) + (TRIED if more else ""), "-k", "what_it_brings")
    result.stdout.fnmatch_lines([f"*{line}*"])


SETTINGS = """
@hookimpl
def mplang_settings():
    return {"OUTSIDE_ROUNDING": "even", "MPLANG_OUTSIDE": "1", "outside.tone": "warm"}
"""


def test_settings_that_begin_with_the_family_pass(plugin, run):
    assert run(plugin(more=SETTINGS), "-k", "own_names").ret == 0


HOME = "def kept():\n    pass\n"
OTHER = """
op_defs.add("{name}", OpDef("{name}", lambda op, world: [], doc="An op."), provider="{provider}")
"""


SENDS = """
from mplang_core.ext import Level

op_defs.add(
    "outside.send", OpDef("outside.send", lambda op, world: [], Level.PARTY, doc="An op."),
    provider="acme-outside",
)
"""
TRIES = """
from mplang_testing import PartyOpSuite

class TestOps(PartyOpSuite):
    family = "outside"
"""


def test_ops_whose_declarations_are_tried_pass(plugin, run):
    assert run(plugin(more=SENDS) + TRIES, "-k", "ops_declare_is_tried").ret == 0


@pytest.mark.parametrize(
    ("fields", "test", "lines"),
    [
        ({"more": "import wave"}, "light", ["imports heavy modules", "got: *wave"]),
        ({"requires": ()}, "which_core", ["got: *no requirement of mplang-core"]),
        ({"requires": ("mplang-core",)}, "which_core", ["does not say which core it needs"]),
        ({"requires": ("mplang-core>=0.1",)}, "which_core", ["got: *>=0.1"]),
        (
            {"more": "def mplang_dialects():\n    return []"},
            "hooks_are_marked",
            ["got: *acme_outside.mplang_dialects"],
        ),
        (
            {"more": "@hookimpl\ndef mplang_dialect():\n    return []"},
            "entry_points_load",
            ["has plugins that do not load", "got: *mplang_dialect"],
        ),
        ({"kernels": '["outside.tripel"]'}, "fit", ["the op outside.triple has no kernel"]),
        ({"kernels": '["outside.tripel"]'}, "fit", ["the kernel of outside.tripel has no op"]),
        (
            {"kernels": '["outside.triple", "simp.mine"]'},
            "entry_points_load",
            ["has plugins that do not load", "got: *'simp.mine' by mplang_kernels"],
        ),
        (
            {"more": OTHER.format(name="elsewhere.op", provider="acme-outside")},
            "own_names",
            ["registers what is not its own", "got: *the op elsewhere.op of acme-outside"],
        ),
        (
            {"more": OTHER.format(name="outside.op", provider="somebody")},
            "leaves_nothing",
            ["leaves things behind when it does not load", "got: *the op outside.op"],
        ),
        (
            {"more": "triple.__doc__ = ''"},
            "described",
            ["the feop outside.triple says nothing of itself"],
        ),
        (
            {"more": "@hookimpl\ndef mplang_settings():\n    return {'outsider': '1'}"},
            "own_names",
            ["registers what is not its own", "got: *the setting outsider"],
        ),
        (
            {"more": SENDS},
            "is_tried",
            ["has ops whose declarations nothing tries", "the op outside.send: no PartyOpSuite"],
        ),
        ({"more": "1 / 0"}, "entry_points_load", ["ZeroDivisionError"]),
        ({"points": {}}, "entry_points_load", ["acme-outside brings no plugin"]),
    ],
)
def test_a_plugin_that_does_not_keep_to_the_rules(plugin, caught, fields, test, lines):
    caught(plugin(**fields), test, *lines)
