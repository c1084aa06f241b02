"""A kind of plain devices with several members: what goes there is the same at all of them."""

from __future__ import annotations

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.device import DeviceKind, device_kinds
from mplang_core.device.kinds import add_kind

pytestmark = pytest.mark.needs("jax", "spu", "simulator")


@pytest.fixture
def board():
    """Return a cluster with a board of two of its parties."""
    kind = DeviceKind(
        "BOARD",
        mp.Form.PLAIN,
        members=(2, None),
        unsupported_reasons=lambda meta, members: [],  # an op of one party runs at each member
        doc="Plain values that several parties know.",
    )
    add_kind(kind, "mplang-core")
    config = {"protocol": "SEMI2K"}
    devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(3)}
    devices |= {"B": {"kind": "BOARD", "members": [0, 1]}}
    devices |= {"S": {"kind": "SPU", "members": [0, 2], "config": config}}
    yield mp.ClusterSpec([{}, {}, {}], devices)
    device_kinds.remove("BOARD")


def test_values_go_there_and_on_to_others(board):
    def program():
        x = mp.put("B", mp.put("P2", np.float32(3)))  # from an outsider to both members
        doubled = mp.device("S")(lambda x: x * 2)(x)
        assert x.pmask == mp.Mask.of([0, 1])
        return mp.device("P1")(lambda x: x + 1)(x), mp.put("P2", x), mp.reveal(doubled, to="B")

    with mp.Simulator(board) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, program))
    np.testing.assert_allclose(found, [4, 3, 6], atol=1e-3)


def test_what_its_members_may_have_differently_does_not(board):
    def program():
        ranks = mp.pconv([mp.constant(i, parties=[i]) for i in range(2)])
        return mp.put("B", ranks)

    with pytest.raises(mp.errors.TraceError, match="may hold another"):
        mp.trace(mp.TraceContext(board), program)
