"""What the README says of last digits: those of products differ from run to run, by little."""

from __future__ import annotations

import numpy as np
import pytest

import mplang_core as mp

STEP = 2.0**-40


@pytest.mark.parametrize(
    ("protocol", "parties"),
    [
        pytest.param(
            "CHEETAH", 2, marks=pytest.mark.long("CHEETAH sets up oblivious transfers: 4 s")
        ),
        ("ABY3", 3),
        ("SEMI2K", 2),
    ],
)
def test_products_of_two_runs_are_alike_to_the_last_digits_and_sums_equal(protocol, parties):
    names = [f"node{i}" for i in range(parties)]
    cluster = mp.ClusterSpec.from_dict(
        {
            "nodes": [{"name": name} for name in names],
            "devices": {
                "P0": {"kind": "PPU", "members": names[:1]},
                "SP0": {"kind": "SPU", "members": names, "config": {"protocol": protocol}},
            },
        }
    )

    def products_and_sums(x):
        both = mp.device("SP0")(lambda x: (x * x, x + x, x > 1))(x)
        return [mp.reveal(each, to="P0") for each in both]

    x = np.linspace(0.1, 3.0, 50)
    with mp.Simulator(cluster) as sim:
        with mp.with_ctx(sim):
            given = mp.put("P0", x)
        first, second = (
            mp.fetch(sim, mp.evaluate(sim, products_and_sums, given)) for _ in range(2)
        )
    assert np.abs(first[0] - second[0]).max() <= 8 * STEP
    assert np.abs(first[0] - x * x).max() <= 16 * STEP
    np.testing.assert_array_equal(first[1], second[1])
    np.testing.assert_array_equal(first[2], second[2])
