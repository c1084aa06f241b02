"""Large tensors are shared and reconstructed in blocks, to the same types and the same values."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from mplang_spu import ShareType, SpuConfig, blocks, conversion, engine, reconstruction, shares
from mplang_spu.config import resolve_config
from mplang_spu.shares import check_share
from spu_links import PROTOCOLS

import mplang_core as mp

pytestmark = pytest.mark.once

DTYPES = ["bool", "int8", "uint64", "float16", "float32", "float64"]


@pytest.fixture(params=[8, 16])
def small(request, monkeypatch):
    """Make blocks and chunks small: several blocks in a chunk, or one."""
    for module in (blocks, reconstruction):
        monkeypatch.setattr(module, "BLOCK", request.param)
    for module in (blocks, shares):
        monkeypatch.setattr(module, "CHUNK", 512)


def setting(parties, protocol, field, x):
    config = resolve_config(SpuConfig(protocol=protocol, field=field), mp.Mask.all(parties))
    kind = ShareType.of(mp.TensorType.of(x), config)
    return engine.io(parties, protocol, field, config.fxp_fraction_bits), kind


@pytest.mark.parametrize(("parties", "protocol"), PROTOCOLS)
@pytest.mark.parametrize("field", ["FM64", "FM128"])
@pytest.mark.parametrize("shape", [(7, 19), (16,), (0, 3), ()])
def test_blocks_give_what_the_whole_gives(small, parties, protocol, field, shape):
    for dtype in DTYPES:
        blocks_give_what_the_whole_gives(parties, protocol, field, dtype, shape)


def blocks_give_what_the_whole_gives(parties, protocol, field, dtype, shape):
    x = (np.random.default_rng(0).normal(size=shape) * 20).astype(dtype)
    x = np.asarray(np.asfortranarray(x))
    io, kind = setting(parties, protocol, field, x)
    made = blocks.make_shares(io, x, kind)
    if x.size > blocks.BLOCK:
        whole = io.make_shares(x, engine.visibility(True))
        assert [piece.meta for piece in whole] == [
            conversion.to_libspu(share).meta for share in made
        ]
        for share in made:
            check_share(share)
    found = reconstruction.reconstruct(made)
    assert (found.shape, found.dtype) == (x.shape, x.dtype)
    np.testing.assert_allclose(found, x, atol=1e-4, err_msg=dtype)


def test_blocks_of_equal_numbers_have_other_shares(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 16)
    x = np.ones(64)
    io, kind = setting(2, "SEMI2K", "FM64", x)
    for share in blocks.make_shares(io, x, kind):
        data = share.chunks[0][-x.size * 8 :]
        assert len({data[at : at + 128] for at in range(0, len(data), 128)}) == 4


PEAK = """
import resource, sys
import numpy as np
from mplang_spu import blocks
from test_blocks import setting

x = np.ones(4_000_000)
io, kind = setting(3, "ABY3", "FM128", x)
blocks.make_shares(io, x[:10], setting(3, "ABY3", "FM128", x[:10])[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
made = blocks.make_shares(io, x, kind)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_sharing_takes_little_more_memory_than_the_shares():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PEAK],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
        cwd=__file__.rpartition("/")[0],
    )
    shares_of_three = 3 * 4_000_000 * 32 / 2**20  # MB
    assert float(done.stdout) < shares_of_three * 1.7  # libspu by itself: 2.5 times
