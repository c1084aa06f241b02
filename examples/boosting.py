"""One level of a boosted tree over two organizations: a bank has labels, a shop has features.

The bank encrypts the gradients of its labels, the shop adds them up by the bins of its features
without reading one, and the bank decrypts these histograms and chooses the best split. So the shop
learns nothing, and the bank learns every histogram, of the features that it does not choose as
well: the table that ``mp.analysis.disclosure`` gives says so. On an SPU it would learn the split
alone, see docs/ciphertexts.md.

    python examples/boosting.py --rows 200
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from mplang_phe import decrypt, encrypt, keygen, segment_sum

import mplang_core as mp

BINS = 8
GRID = 2**20
"""Steps of one, in which gradients are counted."""
REGULAR = 1.0
"""What keeps a leaf of few rows small, as lambda of XGBoost."""


class Data(NamedTuple):
    """What the two of them have.

    Attributes:
        gradients: the bank's, first and second ones, between -1 and 1; ``[rows, 2]``.
        bins: the shop's, the bin of each feature; ``[rows, features]``.
    """

    gradients: np.ndarray
    bins: np.ndarray


def made_up(rows: int, seed: int = 0) -> Data:
    """Return labels that the second feature tells, and their gradients of a logistic loss at 0."""
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, BINS, (rows, 3))
    labels = (bins[:, 1] + rng.normal(0, 1, rows) > 4).astype(float)
    return Data(np.stack([0.5 - labels, np.full(rows, 0.25)], axis=1), bins)


def histograms(
    gradients: mp.MPObject, features: list[mp.MPObject], bits: int = 3072
) -> list[mp.MPObject]:
    """Return for each feature the sums of gradients by bin, at the bank; ``[bins, 2]``.

    Args:
        gradients: the bank's.
        features: for each feature the bins of all rows, at the shop.
        bits: of the key.
    """
    private, public = mp.device("P0")(keygen)(bits=bits)
    sealed = mp.device("P0")(encrypt)(gradients, public, limit=1.0, scale=GRID.bit_length() - 1)
    sealed, there = mp.put("P1", sealed), mp.put("P1", public)
    sums = []
    for bins in features:
        total = mp.device("P1")(segment_sum)(sealed, bins, there, count=BINS)
        sums.append(mp.device("P0")(decrypt)(mp.put("P0", total), private))
    return sums


def of(data: Data, bits: int = 3072) -> list[mp.MPObject]:
    """Return the histograms of what the two of them have."""
    features = [mp.put("P1", bins) for bins in data.bins.T]
    return histograms(mp.put("P0", data.gradients), features, bits)


def best_split(*sums: np.ndarray) -> tuple[int, int]:
    """Return the feature, and the last bin on the left, that part the gradients best.

    The gain is that of Chen and Guestrin, "XGBoost: a scalable tree boosting system", KDD 2016,
    equation 7.
    """
    gains = np.full((len(sums), BINS - 1), -np.inf)
    for feature, each in enumerate(sums):
        left = np.cumsum(each, axis=0)[:-1]
        right = each.sum(axis=0) - left
        gains[feature] = sum(g**2 / (h + REGULAR) for g, h in (left.T, right.T))
    feature, last = np.unravel_index(int(gains.argmax()), gains.shape)
    return int(feature), int(last)


def main() -> None:
    """Run it on the simulator, and print the split."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--bits", type=int, default=3072, help="of the key")
    chosen = parser.parse_args()
    data = made_up(chosen.rows)
    with mp.Simulator(mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])) as sim:
        sums = mp.fetch(sim, mp.evaluate(sim, lambda: of(data, chosen.bits)))
    feature, last = best_split(*sums)
    print(f"split by feature {feature}: bins 0 to {last} go left")


if __name__ == "__main__":
    main()
