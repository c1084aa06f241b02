"""The kit's own dialect, and the core's types and ops among parties pass it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from mplang_testing import (
    DeviceSuite,
    FeopSuite,
    KernelSuite,
    Of,
    PartyOpSuite,
    PartySample,
    PluginSuite,
    Sample,
    TypeSuite,
    dialect,
    strategies,
)
from mplang_testing.party_ops import ops_among_parties
from mplang_testing.secrets import KeyType, Secret, ShareType
from mplang_testing.tried import suites_of, untried

import mplang_core as mp
from mplang_core import introspect, registry
from mplang_core.ext import NAMESPACES, op_defs

assert dialect.add

X, Y = np.int64([1, 2]), np.int64([3, 4])


class TestDialectFeops(FeopSuite):
    family = "kit"
    samples = (
        Sample("kit.add", X, Y, expect=lambda z: (z == X + Y).all()),
        Sample("kit.mul", X, Y, parties=2),
        Sample("kit.less", X, Y),
        Sample("kit.rank", parties=3, expect=lambda ranks: list(map(int, ranks)) == [0, 1, 2]),
        Sample("kit.fail_at", X, attrs={"party": 7}),
        Sample("kit.late", X, attrs={"party": 7, "seconds": 0.0}),
        Sample("kit.share", np.int64(7)),
        Sample("kit.make_key", random=True),
    )


class TestDialectKernels(KernelSuite):
    family = "kit"
    samples = TestDialectFeops.samples


class TestPlainDevices(DeviceSuite):
    kind = "PPU"

    def cluster(self):
        return mp.ClusterSpec.simple(2)


class TestTensors(TypeSuite):
    kinds = strategies.tensor_types()

    def values(self, kind):
        return strategies.tensors_of(kind)


class TestSecrets(TypeSuite):
    kinds = st.sampled_from([ShareType(), KeyType()])

    def values(self, kind):
        return st.binary(min_size=8, max_size=8).map(lambda data: Secret(kind, data))


RANKS = Of(mp.TensorType("i64"), *map(np.int64, (2, 0, 1)))


def ask_two_of_three(x):
    return mp.pshfl(x, mp.simp.pcall_static([0, 2], dialect.rank))


def one_of_each(x):
    return mp.pconv([mp.pshfl_s(x, [0], [1]), mp.pshfl_s(x, [1, 2], [2, 0])])


def less_of_two(x, which):
    return mp.uniform_cond(which, lambda x: x, lambda x: mp.invoke(dialect.add, x, x), x)


def once(again):
    return mp.while_loop(lambda again: again, lambda _: mp.constant(np.array(False)), again)


class TestOpsAmongParties(PartyOpSuite):
    family = "simp"
    samples = (
        PartySample("simp.shuffle_static", lambda x: mp.pshfl_s(x, [0, 1, 2], [2, 1, 1]), X),
        PartySample("simp.shuffle_dynamic", mp.pshfl, X, RANKS),
        PartySample("simp.shuffle_dynamic", ask_two_of_three, X),
        PartySample("simp.keep", mp.keep, X),
        PartySample("simp.converge", lambda: mp.pconv([mp.constant(1, parties=[1])])),
        PartySample("simp.converge", one_of_each, X),
        PartySample("simp.constant", lambda: mp.constant(np.float64([-0.0, np.nan]), parties=[1])),
        PartySample("simp.pcall_static", lambda: mp.simp.pcall_static([0, 2], dialect.rank)),
        PartySample("simp.pcall_dynamic", lambda x: mp.simp.pcall_dynamic(dialect.add, x, x), X),
        PartySample("simp.uniform_cond", less_of_two, X, np.array(True)),
        PartySample("simp.while_loop", once, np.array(True)),
    )


class TestCalls(PartyOpSuite):
    family = "func"
    samples = (
        PartySample("func.call", mp.builtin_function(lambda x: mp.invoke(dialect.add, x, x)), X),
        PartySample("func.launch", mp.launch(lambda x: mp.invoke(dialect.add, x, x)), X),
    )


class TestPlugin(PluginSuite):
    distribution = "mplang-testing"
    heavy = ("pytest", "hypothesis")


def test_each_op_among_parties_of_the_core_is_tried():
    """Those of plugins are: their PluginSuites ask for it."""
    core = [name for name, _ in op_defs if op_defs.provider(name) == "mplang-core"]
    families = {name.partition(".")[0] for name in core}
    tried = suites_of(sys.modules[__name__])
    assert {("PartyOpSuite", f) for f in families if ops_among_parties(f)} <= tried


@pytest.mark.once  # else the tests' own ops pass for the core's
def test_all_that_the_core_brings_is_tried():
    """Tables have a codec in mplang-tables, whose suites draw them."""
    registry.list_ops()
    brought = {
        space.what: [name for name in space.names() if space.provider(name) == "mplang-core"]
        for space in NAMESPACES
    }
    (tables,) = untried(brought, sys.modules[__name__])
    assert tables.startswith("the type table: ")


def test_each_distribution_of_plugins_has_a_plugin_suite():
    """Which asks for the suites that try what it brings, and what its ops declare."""
    listed = {entry["distribution"] for entry in introspect.list_plugins()}
    root = Path(__file__).parents[3]
    files = [*root.glob("*/*/tests/test_conformance.py")]
    texts = [file.read_text(encoding="utf-8") for file in [*files, Path(__file__)]]
    named = {each for each in listed if any(f'distribution = "{each}"' in text for text in texts)}
    assert named == listed
