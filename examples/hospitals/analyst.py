"""The analyst's process: it has a certificate and the addresses of the workers, and no data.

python analyst.py train --cluster cluster.yaml --tls certs/analyst
"""

from __future__ import annotations

import argparse
import sys

import program

import mplang_core as mp


def main() -> None:
    """Run a program on the workers, and print what it returns; or pack it, to be reviewed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=("train", "score"))
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--tls", required=True)
    parser.add_argument("--rate", type=float, help="another learning rate than in the program")
    parser.add_argument("--pack", metavar="FILE", help="only write the program to this file")
    args = parser.parse_args()
    program.RATE = args.rate or program.RATE
    cluster = mp.ClusterSpec.from_yaml(args.cluster)
    with mp.connect("http", cluster, tls=args.tls) as host:
        compiled = mp.compile(getattr(program, args.program), cluster_spec=host.cluster_spec)
        if args.pack:
            compiled.trace(host)
            mp.artifact.save(args.pack, compiled)
            return
        try:
            found = mp.evaluate(host, compiled)
        except mp.MPLangError as error:
            sys.exit(f"{type(error).__name__}: {error}")
        print("-" if found is None else float(mp.fetch(host, found)), flush=True)
        sys.stdin.readline()  # until whoever looks into this process has seen enough


if __name__ == "__main__":
    main()
