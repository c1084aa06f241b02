"""What a member of an SPU can change unnoticed: rows of it, and that they are true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mplang_spu import ShareType, SpuConfig, blocks, engine, reconstruction
from mplang_spu.config import resolve_config
from mplang_spu.shares import check_share
from spu_links import PROTOCOLS

import mplang_core as mp
from mplang_core import analysis


def cluster_of(parties, protocol, others=0):
    nodes = [{"name": f"n{i}"} for i in range(parties + others)]
    members = [node["name"] for node in nodes[:parties]]
    devices = {"SP0": {"kind": "SPU", "members": members, "config": {"protocol": protocol}}}
    devices |= {f"P{i}": {"kind": "PPU", "members": [node["name"]]} for i, node in enumerate(nodes)}
    return mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})


def rows(fn, cluster):
    """Return who can change what by which protocol, where the first two parties share some."""
    x, y = (mp.MPType(mp.TensorType("f32", (4,)), mp.Mask.of(rank)) for rank in (0, 1))
    return [
        (row.sender, row.receiver, row.payload, row.form, row.protocol, row.discloses)
        for row in analysis.disclosure(mp.compile(fn, x, y, cluster_spec=cluster)).rows
        if row.what == "change"
    ]


def product(to):
    def program(x, y):
        found = mp.device("SP0")(lambda x, y: x * y)(mp.seal(x), mp.seal(y))
        return mp.keep(mp.reveal(found, to=to) if to else found)

    return program


@pytest.mark.parametrize(("parties", "protocol"), PROTOCOLS)
def test_every_other_member_can_change_what_a_party_gets(parties, protocol):
    cluster = cluster_of(parties, protocol, others=1)
    for receiver in (0, parties):  # a member, and a party that is none
        assert rows(product(f"P{receiver}"), cluster) == [
            (member, receiver, "f32[4]", "plain", protocol, ())
            for member in range(parties)
            if member != receiver
        ]


@pytest.mark.parametrize(("parties", "protocol"), PROTOCOLS)
def test_what_is_not_revealed_has_no_row(parties, protocol):
    assert rows(product(None), cluster_of(parties, protocol)) == []


def test_what_was_kept_has_its_row_in_the_program_that_reveals_it():
    cluster = cluster_of(2, "SEMI2K")
    with mp.Simulator(cluster) as host:
        kept = mp.evaluate(host, product(None), np.float32([1, 2]), np.float32([3, 4]))
        compiled = mp.compile(lambda x: mp.keep(mp.reveal(x, to="P1")), kept, cluster_spec=cluster)
    found = analysis.disclosure(compiled).rows
    assert [(row.sender, row.receiver) for row in found if row.what == "change"] == [(0, 1)]


@pytest.mark.parametrize(("parties", "protocol"), PROTOCOLS)
def test_a_member_that_sends_another_share_changes_the_result_and_nobody_notices(parties, protocol):
    """The row is true: of each protocol and member a share with a changed bit is taken."""
    config = resolve_config(SpuConfig(protocol=protocol), mp.Mask.all(parties))
    kind = ShareType.of(mp.TensorType("i64", (3,)), config)
    io = engine.io(parties, protocol, kind.field, kind.fxp)
    shares = blocks.make_shares(io, np.int64([1, 2, 3]), kind)
    assert reconstruction.reconstruct(shares).tolist() == [1, 2, 3]
    for member in range(parties):
        (chunk,) = shares[member].chunks
        changed = bytearray(chunk)
        changed[-kind.nbytes] ^= 1  # the lowest bit of the first number
        sent = [*shares]
        sent[member] = replace(shares[member], chunks=(bytes(changed),))
        check_share(sent[member])
        first, *others = reconstruction.reconstruct(sent).tolist()
        assert first in (0, 2)
        assert others == [2, 3]
