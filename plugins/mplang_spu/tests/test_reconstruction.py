"""Tensors are reconstructed in NumPy, bit by bit as libspu does it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from mplang_spu import ShareType, SpuConfig, blocks, conversion, engine, reconstruction
from mplang_spu.config import resolve_config
from mplang_spu.shares import SpuShare, header
from mplang_spu.storage import storages
from spu_links import PROTOCOLS

import mplang_core as mp
from mplang_core.errors import RunError

FIELDS = ["FM32", "FM64", "FM128"]
DTYPES = ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
FITTING = [
    (field, dtype)
    for field in FIELDS
    for dtype in DTYPES
    if field != "FM32" or np.dtype(dtype).itemsize < 8
]
SHAPE = (5, 7)


def setting(parties, protocol, field, dtype):
    config = resolve_config(SpuConfig(protocol=protocol, field=field), mp.Mask.all(parties))
    kind = ShareType.of(mp.TensorType.of(np.zeros(SHAPE, dtype)), config)
    return engine.io(parties, protocol, field, config.fxp_fraction_bits), kind


def by_libspu(io, shares):
    found = io.reconstruct([conversion.to_libspu(share) for share in shares])
    return np.asarray(found).astype(shares[0].type.plain.dtype.numpy)


def same_bits(x, y):
    return (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


@pytest.mark.parametrize(("parties", "protocol"), PROTOCOLS)
@pytest.mark.parametrize("field", FIELDS)
def test_any_pieces_in_any_storage_give_what_libspu_gives(parties, protocol, field):
    for dtype in (dtype for each, dtype in FITTING if each == field):
        storages_give_what_libspu_gives(parties, protocol, field, dtype)


def storages_give_what_libspu_gives(parties, protocol, field, dtype):
    io, kind = setting(parties, protocol, field, dtype)
    dice = np.random.default_rng(parties)
    for name, storage in storages(protocol, field).items():
        size = kind.plain.size * storage.nbytes
        head = header(size, 0)
        shares = [SpuShare(kind, name, (head + dice.bytes(size),)) for _ in range(parties)]
        if storage.form == "public":
            shares = shares[:1] * parties
        assert same_bits(reconstruction.reconstruct(shares), by_libspu(io, shares)), (name, dtype)


@pytest.mark.parametrize(("parties", "protocol"), PROTOCOLS)
@pytest.mark.parametrize("field", FIELDS)
def test_shares_of_a_tensor_give_it_back(parties, protocol, field):
    for dtype in ["bool", "i1", "i4", "f2", "f4"]:
        io, kind = setting(parties, protocol, field, dtype)
        x = (np.random.default_rng(1).normal(size=SHAPE) * 9).astype(dtype)
        shares = blocks.make_shares(io, x, kind)
        found = reconstruction.reconstruct(shares)
        assert same_bits(found, by_libspu(io, shares)), dtype
        np.testing.assert_allclose(found, x, atol=2**-8, err_msg=dtype)


def test_integers_of_128_bits_are_rounded_once():
    """As Python rounds them: to the nearest float64, ties to even."""
    dice = random.Random(1)
    near = [sign * (2**at + step) for sign in (1, -1) for at in range(126) for step in (-1, 0, 1)]
    ties = [2**n + 2 ** (n - 53) + step for n in range(60, 126) for step in (-1, 0, 1)]
    numbers = [*near, *ties, 2**127 - 1, -(2**127)]
    numbers += [dice.getrandbits(dice.randrange(1, 127)) for _ in range(5000)]
    low = np.array([x % 2**64 for x in numbers], np.uint64)
    high = np.array([(x >> 64) % 2**64 for x in numbers], np.uint64)
    np.testing.assert_array_equal(
        reconstruction.double(low, high), np.array([float(x) for x in numbers])
    )


# -- shares that do not belong together


def test_shares_in_different_storages_are_refused():
    """libspu would read the shorter one past its end."""
    io, kind = setting(3, "ABY3", "FM64", "i4")
    shares = list(blocks.make_shares(io, np.ones(SHAPE, np.int32), kind))
    size = 2 * kind.plain.size
    shares[1] = SpuShare(kind, "aby3.BShr<PT_U8,8>", (header(size, 0) + bytes(size),))
    with pytest.raises(RunError, match=r"aby3.AShr<FM64> at party 0, aby3.BShr<PT_U8,8> at party"):
        reconstruction.reconstruct(shares)


def test_public_numbers_that_differ_are_refused():
    _, kind = setting(2, "CHEETAH", "FM64", "i4")
    size = 8 * kind.plain.size
    share = SpuShare(kind, "Pub2k<FM64>", (header(size, 0) + bytes(size),))
    other = replace(share, chunks=(share.chunks[0][:-1] + b"\x01",))
    with pytest.raises(RunError, match="parties 0 and 1 hold different numbers"):
        reconstruction.reconstruct([share, other])
