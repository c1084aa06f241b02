"""What an SPU tells beside shares: nothing by a sort, and what it takes for public."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from mplang_spu import ShareType, SpuConfig, make_shares, run_jax
from mplang_spu.config import resolve_config

import mplang_core as mp
from mplang_core import analysis
from mplang_core.edsl.peval import peval, run_program


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


@pytest.mark.parametrize("protocol", ["ABY3", "CHEETAH", "SEMI2K"])
@pytest.mark.parametrize("name", SORTS)
def test_the_messages_of_a_sort_tell_nothing(name, protocol):
    """See test_sorts.py for the messages themselves."""
    assert sizes(SORTS[name], protocol) == []


def rows_of(what, fn):
    """Return who learns by what of whose data, if three parties have a number each."""
    x = [mp.MPType(mp.TensorType("f32"), mp.Mask.of(rank)) for rank in range(3)]
    compiled = mp.compile(fn, *x, cluster_spec=mp.ClusterSpec.simple(3))
    return [
        (row.receiver, row.discloses)
        for row in analysis.disclosure(compiled).rows
        if row.what == what
    ]


def turns(x, n):
    return lax.fori_loop(0, n.astype(int), lambda i, a: a * 1.1, x)


def branch(x, n):
    return lax.cond(n > 3, lambda: x * x, lambda: x)


@pytest.mark.parametrize("fn", [turns, branch])
def test_a_loop_that_turns_by_what_was_revealed_has_a_duration(fn):
    def program(x, y, z):
        n = mp.reveal(mp.seal(y))
        return mp.keep(mp.device("SP0")(fn)(mp.seal(x), n))

    assert ("everyone", (1,)) in rows_of("duration", program)
    assert not rows_of(
        "duration", lambda x, y, z: mp.keep(mp.device("SP0")(fn)(mp.seal(x), np.float32(3)))
    )


def run_on(share, public, fn, parties=(0, 1, 2)):
    """Run a function as no device does: on a plain operand of which nobody knows who has what."""
    parties = mp.Mask.from_ranks(parties)
    config = resolve_config(SpuConfig(), parties)
    made = run_jax(fn, mp.FeSignature((share.base_type, public.base_type)), config=config)
    return peval(made.pfunc, [share, public], parties)[0]


def one(rank=None):
    return mp.constant(np.float32(1), parties=rank)


@pytest.mark.parametrize(
    ("public", "told"),
    [
        (
            lambda x, y, z: mp.pconv([x, y, z]),
            {(to, (of,)) for to in range(3) for of in range(3) if to != of},
        ),
        (lambda x, y, z: mp.pconv([x, one(1), one(2)]), {(1, (0,)), (2, (0,))}),
        (lambda x, y, z: one(), set()),
        (lambda x, y, z: mp.reveal(mp.seal(x)), {(1, (0,)), (2, (0,))}),
    ],
)
def test_an_operand_that_is_taken_as_public_is_told_to_who_does_not_know_it(public, told):
    def program(x, y, z):
        share = mp.seal(mp.constant(np.float32(1)))
        return mp.keep(run_on(share, public(x, y, z), lambda s, n: s + n))

    found = rows_of("reveal", program)
    assert {(to, (each,)) for to, discloses in found for each in discloses} == told
    assert len(found) <= 3


PUBLIC = {
    "known": lambda x, y, known: known,
    "differs": lambda x, y, known: mp.pconv([x, y]),
    "literal": lambda x, y, known: one(),
}


@pytest.mark.parametrize("fn", [lambda s, n: s * 0 + n, lambda s, n: n, lambda s, n: s + n])
@pytest.mark.parametrize("public", PUBLIC)
def test_a_share_that_is_handed_on_tells_what_was_taken_as_public(fn, public):
    """The first member's share of a sum with something public has that in it, as it is."""

    def program(x, y, z):
        kind = ShareType.of(mp.TensorType("f32"), resolve_config(SpuConfig(), mp.Mask.all(2)))
        pieces = run_program(make_shares(mp.constant(np.float32(3), parties=0), share=kind), 0)
        share = mp.pconv([pieces[0], mp.pshfl_s(pieces[1], 1, [0])])
        known = mp.pshfl_s(x, [0, 1], [0, 0])
        found = run_on(share, PUBLIC[public](x, y, known), fn, (0, 1))
        return mp.keep(mp.pshfl_s(found, 2, [0]))

    (told,) = [discloses for to, discloses in rows_of("move", program) if to == 2]
    assert told == {"known": (0,), "differs": (0, 1), "literal": ()}[public]
