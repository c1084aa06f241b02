"""The analyst's process: it has a certificate and the addresses of the workers, and no data.

python analyst.py train --cluster cluster.yaml --tls certs/analyst
"""

from __future__ import annotations

import argparse
import sys

import program

import mplang_core as mp


def main() -> None:
    """Run a program on the workers, and print what it returns."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=("train", "score"))
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--tls", required=True)
    args = parser.parse_args()
    cluster = mp.ClusterSpec.from_yaml(args.cluster)
    with mp.connect("http", cluster, tls=args.tls) as host:
        found = mp.evaluate(host, getattr(program, args.program))
        print("-" if found is None else float(mp.fetch(host, found)), flush=True)
        sys.stdin.readline()  # until whoever looks into this process has seen enough


if __name__ == "__main__":
    main()
