"""A bank and a shop: revenue by nation and balance of the customers whom both have, in secret.

    make demo-sql

TPC-H's tables: the bank has four fifths of the customers, the shop the orders of six sevenths. The
query is reviewed and signed by every organization before its worker runs it. Nobody learns which
customers both have, nor how many; the analyst gets the sums of groups of four customers and more.
Then it is asked once more by a match, which tells the bank and the shop which customers both have.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import data
import duckdb
import pyarrow as pa
import yaml
from mplang_http import LocalCluster
from mplang_worker.tls.keygen import make_certificates
from query import REVENUE, by_match, by_secret_join
from rich.console import Console

import mplang_core as mp

NAMES = ("bank", "shop", "lab")  # the lab computes with them, and brings nothing
ANALYST, OFFICER = "analyst", "officer"
WAYS = {"by secret join": by_secret_join, "by match": by_match}
RULES = """\
// Nothing runs that this organization has not seen and signed.
@id("as approved")
permit (
  principal == Coordinator::"analyst",
  action in [
    Action::"run", Action::"read", Action::"disclose", Action::"forward", Action::"fetch"
  ],
  resource
) when {
  context.approved
};
"""


class Organizations:
    """Folders of the organizations: data, rules, keys of their officers, configuration.

    Args:
        root: the folder of all.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        data.make(root)
        self.files = make_certificates(root / "keys", [*NAMES, ANALYST])
        self.data = {name: data.catalogue(root, name) for name in data.OWN}
        self.gates = {name: self._gate(name) for name in NAMES}
        for name in NAMES:
            worker = {
                "name": name, "data": self.data.get(name, {}), "gate": self.gates[name],
                "coordinators": [ANALYST], "peers": dict.fromkeys(NAMES), "tls": name,
            }  # fmt: skip
            (root / name / "worker.yaml").write_text(yaml.safe_dump(worker))

    def _gate(self, name: str) -> Mapping[str, Any]:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        (folder / "rules.cedar").write_text(RULES)
        self.mplang(name, "approver-key", f"{OFFICER}.key")
        return {
            "policy": str(folder / "rules.cedar"), "log": str(folder / "gate.db"),
            "approvals": str(folder / "approvals"),
            "approvers": {OFFICER: str(folder / f"{OFFICER}.pub")},
        }  # fmt: skip

    def mplang(self, name: str, *args: str) -> str:
        """Run a command of mplang in an organization's folder, and return what it prints."""
        command = [str(Path(sys.executable).with_name("mplang")), *args]
        done = subprocess.run(
            command, cwd=self.root / name, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"mplang {' '.join(args)} fails:\n{done.stdout}{done.stderr}")
        return done.stdout

    def workers(self) -> LocalCluster:
        """Start all workers, in production."""
        files = {**self.files, "host": self.files[ANALYST]}
        return LocalCluster(
            NAMES, tls=files, coordinators=[ANALYST], data=self.data, gates=self.gates,
            mode="production", log=str(self.root),
        )  # fmt: skip

    def approve(self, artifact: Path) -> None:
        """Have all organizations sign a program, for one run of the analyst."""
        for name in NAMES:
            signed = ["--key", f"{OFFICER}.key", "--coordinator", ANALYST, "--yes"]
            self.mplang(name, "approve", str(artifact), *signed)


def in_one_place(root: Path) -> pa.Table:
    """Return what bare DuckDB gives over the tables of all owners."""
    with duckdb.connect() as con:
        for party, tables in data.OWN.items():
            for name in tables:
                con.execute(f"CREATE VIEW {name} AS FROM '{root}/{party}/{name}.parquet'")
        return con.sql(REVENUE.format(**{name: name for name in data.TABLES})).to_arrow_table()


def compare(console: Console, where: str, found: pa.Table, right: pa.Table, begin: float) -> None:
    """Print how a result compares with the right one, and fail if they differ in a digit."""
    rows, wanted = found.to_pylist(), right.to_pylist()
    total = sum(row["revenue"] for row in rows)
    console.print(
        f"{where}: {len(rows)} groups, revenue {total} hundredths of cents, "
        f"after {time.perf_counter() - begin:.1f} s"
    )
    if rows != wanted:
        raise SystemExit(f"{where}: DuckDB over all tables together gives something else")


def on_simulator(console: Console, made: Organizations, right: pa.Table) -> None:
    """Ask on a simulator, and show who would learn what."""
    cluster = mp.ClusterSpec([{"name": name} for name in NAMES])
    with mp.Simulator(cluster, data=made.data, mode="launch") as sim:
        for how, program in WAYS.items():
            begin = time.perf_counter()
            found = mp.fetch(sim, mp.evaluate(sim, program))
            compare(console, f"{how}, on the simulator", found, right, begin)
            console.print(f"  such as {found.to_pylist()[0]}")
            console.print("  who learns what:")
            for sentence in mp.analysis.disclosure(mp.compile(program).trace(sim)).sentences():
                console.print(f"  - {sentence}")


def on_workers(console: Console, made: Organizations, right: pa.Table) -> None:
    """Ask the workers: refused before it is signed, and once more after its run."""
    with (
        made.workers() as cluster,
        mp.connect("http", cluster.spec, tls=made.files[ANALYST]) as host,
    ):
        for how, program in WAYS.items():
            artifact = made.root / f"{program.__name__}.mpl"
            compiled = mp.compile(program, cluster_spec=host.cluster_spec)
            compiled.trace(host)
            mp.artifact.save(str(artifact), compiled)
            console.print("before anybody has signed it:", _refused(host, compiled))
            made.approve(artifact)
            begin = time.perf_counter()
            found = mp.fetch(host, mp.evaluate(host, compiled))
            compare(console, f"{how}, on production workers", found, right, begin)
            console.print("once more, as it was signed for one run:", _refused(host, compiled))


def _refused(host: Any, compiled: Any) -> str:
    try:
        mp.evaluate(host, compiled)
    except mp.MPLangError as error:
        return f"{str(error)[:120]}…"
    raise SystemExit("it was to be refused, and has run")


def main() -> None:
    """Run it all; ends with status 1 if a number is wrong."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    console = Console(soft_wrap=True, highlight=False, markup=False)
    with tempfile.TemporaryDirectory(prefix="bank-and-shop-") as folder:
        made = Organizations(Path(folder))
        right = in_one_place(made.root)
        on_simulator(console, made, right)
        on_workers(console, made, right)


if __name__ == "__main__":
    main()
