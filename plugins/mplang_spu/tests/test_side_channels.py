"""What the messages of an SPU tell beside shares: ties of a sort on CHEETAH."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import mplang_core as mp
from mplang_core import analysis


def sizes(fn, protocol):
    """Return who learns by sizes of whose data, where the first two parties share some."""
    parties = 2 if protocol == "CHEETAH" else 3
    nodes = [{"name": f"n{i}"} for i in range(parties)]
    config = {"protocol": protocol}
    members = [node["name"] for node in nodes]
    devices = {"SP0": {"kind": "SPU", "members": members, "config": config}}
    devices |= {f"P{i}": {"kind": "PPU", "members": [name]} for i, name in enumerate(members)}
    cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})
    x, y = (mp.MPType(mp.TensorType("f32", (4,)), mp.Mask.of(rank)) for rank in (0, 1))
    compiled = mp.compile(
        lambda x, y: mp.keep(mp.device("SP0")(fn)(mp.seal(x), mp.seal(y))),
        x,
        y,
        cluster_spec=cluster,
    )
    return [
        (row.receiver, row.discloses, row.payload, row.protocol, row.form)
        for row in analysis.disclosure(compiled).rows
        if row.what == "size"
    ]


SORTS = {
    "sort": lambda x, y: jnp.sort(x * y),
    "median": lambda x, y: jnp.median(x + y),
    "rank": lambda x, y: jnp.argsort(x + y),
    "top": lambda x, y: lax.top_k(x + y, 2)[0],
}


@pytest.mark.parametrize("name", SORTS)
def test_a_sort_on_cheetah_tells_both_parties_how_many_keys_are_equal(name):
    assert sizes(SORTS[name], "CHEETAH") == [
        (0, (1,), "f32[4]", "CHEETAH", "plain"),
        (1, (0,), "f32[4]", "CHEETAH", "plain"),
    ]


@pytest.mark.parametrize("protocol", ["ABY3", "SEMI2K"])
def test_on_other_protocols_its_messages_tell_nothing(protocol):
    assert sizes(SORTS["sort"], protocol) == []


def test_nor_do_those_of_other_functions():
    assert sizes(lambda x, y: (x * y).sum() + jnp.max(x) + np.float32(1), "CHEETAH") == []
