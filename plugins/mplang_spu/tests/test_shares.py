"""Validation of shares against their types."""

from __future__ import annotations

import re
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from mplang_spu import ShareType, SpuConfig, blocks, conversion, engine
from mplang_spu.shares import SpuShare, check_share

import mplang_core as mp
from mplang_core.errors import RunError, WireError
from mplang_core.runtime import codec

PROTOCOLS = {"SEMI2K": 2, "ABY3": 3, "CHEETAH": 2}
FIELDS = {"FM32": 8, "FM64": 18, "FM128": 40}
AGAIN = pytest.mark.long("14 functions, as in another field or on another protocol")
TAKES_LONG = {
    ("SEMI2K", "FM32"): AGAIN,
    ("SEMI2K", "FM128"): AGAIN,
    ("ABY3", "FM64"): AGAIN,
    ("ABY3", "FM32"): AGAIN,
    ("CHEETAH", "FM32"): pytest.mark.slow("CHEETAH sets up oblivious transfers: 4 s"),
    ("CHEETAH", "FM64"): pytest.mark.slow("CHEETAH sets up oblivious transfers: 4 s"),
    ("CHEETAH", "FM128"): pytest.mark.long("CHEETAH sets up oblivious transfers: 4 s"),
}


def share_of(x, protocol: str = "ABY3", field: str = "FM64") -> SpuShare:
    config = SpuConfig(
        protocol=protocol,
        field=field,
        fxp_fraction_bits=FIELDS[field],
        parties=tuple(range(PROTOCOLS[protocol])),
    )
    kind = ShareType.of(mp.TensorType.of(x), config)
    io = engine.io(len(config.parties), protocol, field, FIELDS[field])
    return blocks.make_shares(io, np.asarray(x), kind)[0]


X = np.arange(12, dtype=np.float32).reshape(3, 4)


# -- what libspu makes


DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8"]
FITTING = [
    (field, dtype)
    for field in FIELDS
    for dtype in DTYPES
    if field != "FM32" or np.dtype(dtype).itemsize < 8
]


@pytest.mark.parametrize(("field", "dtype"), FITTING)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_shares_that_libspu_makes_pass_and_are_described_as_it_does(protocol, field, dtype):
    io = engine.io(PROTOCOLS[protocol], protocol, field, FIELDS[field])
    for shape in [(), (1,), (3, 4), (0,), (2, 0, 3)]:
        x = np.ones(shape, dtype)
        share = share_of(x, protocol, field)
        check_share(share)
        piece = io.make_shares(x, engine.visibility(True))[0]
        assert conversion.to_libspu(share).meta == piece.meta, shape


RESULTS = {
    "compare": lambda x, y: x < y,
    "select": lambda x, y: jnp.where(x < y, x, y),
    "bits": lambda x, y: (x.astype(jnp.int32) & 7) ^ y.astype(jnp.int32),
    "shift": lambda x, y: x.astype(jnp.int32) >> 3,
    "public": lambda x, y: jnp.zeros((2,)),
    "public bool": lambda x, y: jnp.array(True),
    "narrow": lambda x, y: x.astype(jnp.int8),
    "wide": lambda x, y: x.astype(jnp.int32).astype(jnp.float32),
    "argmax": lambda x, y: jnp.argmax(x),
    "sort": lambda x, y: jnp.sort(x),
    "moved": lambda x, y: jnp.stack([x, y])[:, ::-1].T,
    "empty": lambda x, y: x[:0],
    "scalar": lambda x, y: x.sum(),
    "of bools": lambda x, y: jnp.broadcast_to(x < y, (3, 4))[1:],
}


@pytest.mark.once
@pytest.mark.parametrize(
    ("protocol", "field"),
    [
        pytest.param(protocol, field, marks=TAKES_LONG.get((protocol, field), []))
        for protocol in PROTOCOLS
        for field in FIELDS
    ],
)
def test_shares_that_programs_give_pass(protocol, field, monkeypatch):
    """The check accepts every storage that libspu chooses for a result."""
    seen = []
    run_before = engine.Engine.run

    def run(self, code, inputs, outputs):
        made = run_before(self, code, inputs, outputs)
        seen.extend(made)
        return made

    monkeypatch.setattr(engine.Engine, "run", run)
    n = PROTOCOLS[protocol]
    nodes = [{"name": f"n{i}"} for i in range(n)]
    config = {"protocol": protocol, "field": field, "fxp_fraction_bits": FIELDS[field]}
    devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(n)}
    devices["SP0"] = {"kind": "SPU", "members": list(range(n)), "config": config}
    cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})

    def program():
        x, y = mp.put("P0", np.float32([1, 0, 2, 5])), mp.put("P1", np.float32([0, 1, 3, 4]))
        return {name: mp.device("SP0")(fn)(x, y) for name, fn in RESULTS.items()}

    with mp.Simulator(cluster) as sim:
        results = mp.evaluate(sim, program)
        shares = [each for value in results.values() for each in value.value.values]
    assert len(seen) == len(shares) == n * len(RESULTS)
    for share in shares:
        check_share(share)
        again = codec.decode(share.type, *codec.encode(share.type, share))
        assert again == share


def test_shares_of_several_chunks_pass():
    """libspu splits data of more than 128 MiB."""
    share = share_of(np.zeros(17_000_000, np.float32), "CHEETAH")
    assert len(share.chunks) == 2
    check_share(share)
    for chunks in (share.chunks[::-1], share.chunks[:1], share.chunks * 2):
        with pytest.raises(ValueError, match="its data"):
            check_share(replace(share, chunks=chunks))


# -- what somebody else makes


@pytest.mark.parametrize(
    "storage",
    [
        "",
        "semi2k.AShr<FM64>",
        "aby3.AShr<FM128>",
        "aby3.AShr<FM64> ",
        "aby3.BShr<PT_U64,65>",
        "aby3.BShr<PT_U64,0>",
        "aby3.BShr<PT_U64,08>",
        "aby3.BShr<PT_U128,1>",
        "aby3.BShr<FM64,1>",
        "X" * 10_000,
    ],
)
def test_a_storage_that_the_protocol_has_not(storage):
    with pytest.raises(ValueError, match=f"its storage is '{re.escape(storage[:100])}', which"):
        check_share(replace(share_of(X), storage=storage))


@pytest.mark.parametrize("storage", ["Pub2k<FM64>", "aby3.BShr<PT_U8,3>"])
def test_data_of_another_storage(storage):
    with pytest.raises(ValueError, match="its data, .* is not of"):
        check_share(replace(share_of(X), storage=storage))


@pytest.mark.parametrize(
    "change",
    [
        lambda chunks: (),
        lambda chunks: chunks * 2,
        lambda chunks: (chunks[0][:-1],),
        lambda chunks: (chunks[0] + b"\0",),
        lambda chunks: (b"",),
        lambda chunks: (chunks[0][1:],),
        lambda chunks: (chunks[0].replace(b"\x08", b"\x10", 1),),
    ],
)
def test_data_that_is_not_of_the_type(change):
    share = share_of(X)
    with pytest.raises(ValueError, match="its data"):
        check_share(replace(share, chunks=change(share.chunks)))


def test_a_share_on_its_way_is_refused_as_what_it_is_not():
    share = share_of(X)
    share = replace(share, chunks=share_of(np.ones((300, 400), np.float32)).chunks)
    header, buffers = codec.encode(share.type, share)
    with pytest.raises(
        WireError, match=r"what came is not of type spu.share<f32\[3, 4\].*: its data"
    ):
        codec.decode(share.type, header, buffers)
    for header in (
        {},
        {"storage": 2},
        {"chunks": 1},
        {"storage": share.storage, "more": 1},
        {"storage": share.storage, "unreduced": 1},
    ):
        with pytest.raises(WireError, match="what came is not of type .*: it says"):
            codec.decode(share.type, header, buffers)


# -- what libspu gives for a result


@pytest.mark.parametrize(
    ("made", "declared"),
    [
        (np.float32([1]), np.int32([1])),
        (np.int32([1]), np.float32([1])),
        (np.array([True]), np.int32([1])),
        (np.int32([1, 2]), np.int32([1])),
        (np.int32([[1]]), np.int32([1])),
    ],
)
def test_a_result_of_another_type_than_is_declared_is_refused(made, declared):
    share = share_of(made)
    wanted = replace(share.type, plain=mp.TensorType.of(declared))
    with pytest.raises(RunError, match="libspu made no share of"):
        conversion.from_libspu(conversion.to_libspu(share), wanted)


def test_integers_of_another_width_become_those_that_are_declared():
    share = share_of(np.int64([1, -2, 3]))
    wanted = replace(share.type, plain=mp.TensorType("i32", (3,)))
    assert conversion.from_libspu(conversion.to_libspu(share), wanted).type == wanted
