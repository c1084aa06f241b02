"""Five bidders and a second-price auction: who won, and for how much; nothing else is told.

Each bidder is a party. Only three of them compute, since ABY3 is for three; the other two hand
their shares of their bids to those. The highest bidder wins, and pays the second highest bid. All
five learn the winner and the price; no bid but that one is seen by anybody.

    python examples/auction.py --bids 310 925 870 924 12

With ``--backend http`` it runs, unchanged, on one worker process per bidder.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np

import mplang_core as mp
from mplang_core.simp import SimpHost

NAMES = [f"bidder{i}" for i in range(5)]
BIDS = [310, 925, 870, 924, 12]


def second_price(*bids: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the place of the highest bid, the first one of equal bids, and the second highest."""
    all_bids = jnp.stack(bids)
    winner = jnp.argmax(all_bids)
    others = jnp.where(jnp.arange(len(bids)) == winner, 0, all_bids)
    return winner, others.max()


def auction(*bids: mp.MPObject) -> tuple[mp.MPObject, mp.MPObject]:
    """Run the auction on three of the parties, and tell its outcome to all."""
    winner, price = mp.device("SP0")(second_price)(*bids)
    return mp.reveal(winner), mp.reveal(price)


def make_cluster(addresses: Sequence[str] = ("",) * 5) -> mp.ClusterSpec:
    """Return five parties, of which the first three are an SPU."""
    nodes = zip(NAMES, addresses, strict=True)
    return mp.ClusterSpec.from_dict(
        {
            "nodes": [{"name": name, "address": address} for name, address in nodes],
            "devices": {
                **{f"P{i}": {"kind": "PPU", "members": [name]} for i, name in enumerate(NAMES)},
                "SP0": {"kind": "SPU", "members": NAMES[:3], "config": {"protocol": "ABY3"}},
            },
        }
    )


def hold(host: SimpHost, bids: Sequence[int]) -> tuple[int, int]:
    """Run the auction; each bid is put at its bidder first."""
    with mp.with_ctx(host):
        mine = [mp.put(f"P{i}", np.int64(bid)) for i, bid in enumerate(bids)]
    winner, price = mp.fetch(host, mp.evaluate(host, auction, *mine))
    return int(winner[0]), int(price[0])


@contextlib.contextmanager
def backend(name: str) -> Iterator[SimpHost]:
    """Have the parties in this process, or one worker process for each."""
    if name == "simulator":
        with mp.Simulator(make_cluster()) as sim:
            yield sim
        return
    from mplang_http import LocalCluster

    with LocalCluster(NAMES, tls=True, mode="production") as local:
        spec = make_cluster([node.address for node in local.spec.nodes])
        with mp.connect("http", spec, tls=local.tls) as host:
            yield host


def main(argv: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--bids", type=int, nargs=5, default=BIDS, metavar="BID")
    parser.add_argument("--backend", choices=["simulator", "http"], default="simulator")
    args = parser.parse_args(argv)
    with backend(args.backend) as host:
        winner, price = hold(host, args.bids)
    print(f"bidder{winner} wins, and pays {price}")


if __name__ == "__main__":
    main()
