"""Costs told before a run, and what a run takes: ten programs, two protocols.

Messages and bytes are libspu's own count of a session's first run (``profile_spu.py``), in a
process of its own, and so are the seconds of a member. Through links that a proxy delays and
limits, a later run of members in threads is timed, without what is set up once. CHEETAH's sorts
compare what they get in random order: what they send is told as a range.
"""

from __future__ import annotations

import argparse
import os

from bench_far import Parties, communicators, spu_job
from mplang_analysis import Network, OpCosts
from mplang_spu.costs.rule import costs_of_run
from profile_spu import PROGRAMS, PROTOCOLS, profiles_of
from rich.console import Console
from rich.table import Table

import mplang_core as mp

NETWORKS = (Network(rtt=1, rate=1000), Network(rtt=20, rate=200), Network(rtt=80, rate=50))
SHARE = {name: max(1.0, members / (os.cpu_count() or 1)) for name, members in PROTOCOLS.items()}
"""Members that share a core here."""


def spec_of(protocol: str) -> mp.ClusterSpec:
    """Return a cluster whose parties are the members of an SPU."""
    names = [f"node{i}" for i in range(PROTOCOLS[protocol])]
    config = {"protocol": protocol, **({"ot": "softspoken"} if protocol == "CHEETAH" else {})}
    spu = {"kind": "SPU", "members": names, "config": config}
    devices = {"P0": {"kind": "PPU", "members": names[:1]}, "SP0": spu}
    return mp.ClusterSpec.from_dict({"nodes": [{"name": n} for n in names], "devices": devices})


def told(protocol: str, name: str, network: Network) -> OpCosts:
    """Return the costs that are told of a program."""
    fn, args = PROGRAMS[name]
    kinds = [mp.MPType(mp.TensorType.of(arg), mp.Mask.of(0)) for arg in args]
    traced = mp.compile(mp.device("SP0")(fn), *kinds, cluster_spec=spec_of(protocol))
    (op,) = (each for each in traced.program.graph.walk() if each.opcode == "spu.run_jax")
    found = costs_of_run(op, network)
    assert found is not None
    return found


def counted(protocol: str, name: str) -> list[str]:
    """Compare what libspu counts with what was told."""
    found = told(protocol, name, NETWORKS[0])
    steps = [*found.steps, *(each for each in found.set_up if each.name != "the link")]
    messages, size = sum(each.messages for each in steps), sum(each.bytes for each in steps)
    seconds = sum(each.seconds for each in steps)
    members, took = profiles_of(protocol, name, runs=1)
    uses = [use for member in members for use in member.ops.values()]
    sent, of = sum(use.messages for use in uses), sum(use.size for use in uses)
    spread = max(each.spread for each in steps)
    return [
        f"{sent:,}",
        f"{messages / sent:.4f}",
        f"{of:,}",
        f"{size / of:.4f}" + (f" ± {spread:.0%}" if spread else ""),
        f"{took:.3f}",
        f"{seconds / took:.2f}",
    ]


def timed(protocol: str, name: str) -> list[str]:
    """Compare the seconds of a later run through slow links with what was told."""
    fn, args = PROGRAMS[name]
    cells = []
    for network in NETWORKS:
        found = told(protocol, name, network).steps
        computing = sum(each.seconds for each in found) * SHARE[protocol]
        seconds = computing + network.seconds(
            sum(each.rounds for each in found), sum(each.in_turn for each in found)
        )
        with communicators(
            PROTOCOLS[protocol], network.rtt / 2000, network.rate * 1e6 / 8
        ) as comms:
            took = spu_job(Parties(comms), spec_of(protocol), fn, args)
        cells += [f"{took:.2f}", f"{seconds / took:.2f}"]
    return cells


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="part of the names of programs")
    parser.add_argument("--counts", action="store_true", help="without runs through slow links")
    chosen = parser.parse_args()
    only = chosen.only
    heads = [f"{n.rtt:g} ms, {n.rate:g} Mbit/s" for n in NETWORKS]
    counts = Table("program", "protocol", *("messages", "told ÷ run", "bytes", "told ÷ run"),
                   *("seconds", "told ÷ run"))  # fmt: skip
    times = Table("program", "protocol", *(x for h in heads for x in (f"{h}, s", "told ÷ run")))
    for name in (each for each in PROGRAMS if only in each):
        for protocol in PROTOCOLS:
            counts.add_row(name, protocol, *counted(protocol, name))
            if not chosen.counts:
                times.add_row(name, protocol, *timed(protocol, name))
            print(".", end="", flush=True)
    for table in (counts, *([] if chosen.counts else [times])):
        Console(width=150).print(table)


if __name__ == "__main__":
    main()
