"""Private inference: a clinic has images, a vendor has a network, and neither shows its own.

The clinic encrypts its rows, the vendor computes its network on them without reading one, and the
clinic decrypts the scores. So the vendor learns nothing. The clinic learns ten scores for each row,
and these tell more than the digit: who may choose 4,096 rows copies the network by least squares,
which ``--copy`` shows. On an SPU it would learn the digit alone, see docs/ciphertexts.md.

    python examples/inference.py --rows 400 --copy
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

import mplang_core as mp

LARGEST = 0.35
"""How large a weight is, either way: parameters of ciphertexts follow from it."""
TRAINED_ON = 1400


class Network(NamedTuple):
    """Weights of the vendor: 64 inputs, 32 squares, 10 scores."""

    first: np.ndarray
    bias: np.ndarray
    second: np.ndarray
    offset: np.ndarray

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the scores of rows; of arrays, and of what stands for ciphertexts."""
        return (x @ self.first + self.bias) ** 2 @ self.second + self.offset


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return 1,797 images of 64 numbers from 0 to 1, and what they show."""
    x, y = load_digits(return_X_y=True)
    return x / 16.0, y


def trained(steps: int = 1500, rate: float = 0.003) -> Network:
    """Train the vendor's network in plain, by Adam, with weights of a bounded size."""
    x, y = (each[:TRAINED_ON] for each in digits())
    one, two = jax.random.split(jax.random.key(0))
    start = Network(
        jax.random.normal(one, (64, 32)) * 0.1, jnp.zeros(32),
        jax.random.normal(two, (32, 10)) * 0.1, jnp.zeros(10),
    )  # fmt: skip

    def loss(net: Network) -> jax.Array:
        return -jnp.mean(jax.nn.log_softmax(net(x))[jnp.arange(len(y)), y])

    def step(i: int, state: tuple[Network, Network, Network]) -> tuple[Network, Network, Network]:
        net, mean, square = state
        slope = jax.grad(loss)(net)
        mean = jax.tree.map(lambda m, s: 0.9 * m + 0.1 * s, mean, slope)
        square = jax.tree.map(lambda v, s: 0.999 * v + 0.001 * s * s, square, slope)
        by = (rate / (1 - 0.9 ** (i + 1)), 1 - 0.999 ** (i + 1))
        moved = jax.tree.map(
            lambda w, m, v: w - by[0] * m / (jnp.sqrt(v / by[1]) + 1e-8), net, mean, square
        )
        return jax.tree.map(lambda w: jnp.clip(w, -LARGEST, LARGEST), moved), mean, square

    zero = jax.tree.map(jnp.zeros_like, start)
    net, _, _ = jax.jit(lambda s: jax.lax.fori_loop(0, steps, step, s))((start, zero, zero))
    return Network(*(np.asarray(each, float) for each in net))


def sealed_scores(rows: mp.MPObject, net: Network) -> mp.MPObject:
    """Return the scores of rows, encrypted at the vendor.

    Args:
        rows: at the clinic, numbers from 0 to 1.
        net: at the vendor.
    """
    rows = mp.put("C", rows, range=(0, 1))
    net = Network(*(mp.put("V", each, range=(-LARGEST, LARGEST)) for each in net))
    return mp.device("H")(lambda net, x: net(x))(net, rows)


def scores(rows: mp.MPObject, net: Network) -> mp.MPObject:
    """Return the scores of rows at the clinic, which learns nothing but them."""
    return mp.reveal(sealed_scores(rows, net), to="C")


def labels_on_spu(rows: mp.MPObject, net: Network) -> mp.MPObject:
    """Return the digits alone at the clinic, by shares."""
    rows = mp.seal(mp.put("C", rows, range=(0, 1)), to="S")
    net = Network(*(mp.seal(mp.put("V", each, range=(-LARGEST, LARGEST)), to="S") for each in net))
    return mp.reveal(mp.device("S")(lambda net, x: jnp.argmax(net(x), axis=1))(net, rows), to="C")


def cluster(parties: int = 2) -> mp.ClusterSpec:
    """Return a clinic with the key and a vendor, and the SPU of both, or of a helper, too."""
    names = ["clinic", "vendor", "helper"][:parties]
    devices = {name[0].upper(): {"kind": "PPU", "members": [name]} for name in names[:2]}
    devices["H"] = {"kind": "HE", "members": names[:2], "config": {"holder": 0}}
    devices["S"] = {"kind": "SPU", "members": names}
    return mp.ClusterSpec.from_dict(
        {"nodes": [{"name": name} for name in names], "devices": devices}
    )


def copied(rows: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return the vendor's network, as sums of products of inputs, by rows and their scores.

    A square of sums is a sum of products: 2,145 unknown numbers for each score.
    """
    return np.linalg.lstsq(_products(rows), found, rcond=None)[0]


def _products(rows: np.ndarray) -> np.ndarray:
    one, other = np.triu_indices(rows.shape[1])
    return np.hstack([np.ones((len(rows), 1)), rows, rows[:, one] * rows[:, other]])


def scores_of_copy(copy: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the scores of a copy."""
    return _products(rows) @ copy


def run(sim: mp.Simulator, program, rows: np.ndarray, net: Network) -> np.ndarray:
    """Run a program on what the two of them have, and return what the clinic gets."""
    with mp.with_ctx(sim):
        there = mp.put("C", rows), Network(*(mp.put("V", each) for each in net))
    return mp.fetch(sim, mp.evaluate(sim, program, *there))


def main() -> None:
    """Run it on the simulator, and print how many digits are right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=397)
    parser.add_argument("--copy", action="store_true", help="copy the network, by chosen rows")
    chosen = parser.parse_args()
    (x, y), net = digits(), trained()
    x, y = x[-chosen.rows :], y[-chosen.rows :]
    with mp.Simulator(cluster()) as sim:
        found = run(sim, scores, x, net)
        print(f"{(found.argmax(1) == y).mean():.1%} of the digits are right")
        if chosen.copy:
            rows = np.random.default_rng(1).uniform(0, 1, (4096, 64))
            copy = copied(rows, run(sim, scores, rows, net))
            error = np.abs(scores_of_copy(copy, x) - np.asarray(net(x))).max()
            print(f"by 4,096 rows of its choice the clinic has a copy, off by {error:.1g}")


if __name__ == "__main__":
    main()
