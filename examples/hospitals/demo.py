"""Two hospitals and a university: train, keep the model in shares, restart, score a new patient.

    make demo-hospitals

Each organization has its own folder, certificate, configuration and data; the analyst has the
addresses. Afterwards a look through the memory of the analyst's process, and all that went over its
sockets, tells whether it ever had a row.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import program
from organizations import ANALYST, NAMES, Organizations
from rich.console import Console
from watch import Rows, memory_of

import mplang_core as mp

HERE = Path(__file__).parent
TOLERANCE = 0.005


def plainly(known: pd.DataFrame, arrived: pd.DataFrame) -> tuple[float, np.ndarray, float]:
    """Train the same model in plain NumPy, on all columns in one place.

    Returns:
        The AUC, the scores of the test patients, and the score of the new one.
    """
    x, y = known.drop(columns=["id", "diagnosis"]).to_numpy(), known.diagnosis.to_numpy()
    mean, deviation = x[: program.TRAINING].mean(0), x[: program.TRAINING].std(0)
    new = (arrived.drop(columns=["id", "diagnosis"]).to_numpy() - mean) / deviation
    x = (x - mean) / deviation
    train, w, b = x[: program.TRAINING], np.zeros(x.shape[1]), 0.0
    for _ in range(program.EPOCHS):
        error = 1 / (1 + np.exp(-(train @ w + b))) - y[: program.TRAINING]
        w, b = w - program.RATE * train.T @ error / len(train), b - program.RATE * error.mean()
    scores = 1 / (1 + np.exp(-(x[program.TRAINING :] @ w + b)))
    found = float(program.auc(scores, y[program.TRAINING :]))
    return found, scores, float(1 / (1 + np.exp(-(new @ w + b)))[0])


class Analyst:
    """The analyst's process, in its folder, recorded.

    Args:
        made: the organizations.
    """

    def __init__(self, made: Organizations) -> None:
        self._folder = made.root / ANALYST
        self._traffic = self._folder / "traffic"
        tables = [made.known, made.arrived]
        self._rows = [Rows(table.drop(columns=["id", "diagnosis"])) for table in tables]

    def ask(self, name: str, *args: str) -> subprocess.CompletedProcess[str]:
        """Start a program, or pack it, and wait."""
        command = [sys.executable, str(HERE / "analyst.py"), name, "--cluster", "cluster.yaml"]
        return subprocess.run(
            [*command, "--tls", ANALYST, *args],
            cwd=self._folder, input="", capture_output=True, text=True, check=False,
        )  # fmt: skip

    def refused(self, name: str, *args: str) -> str:
        """Run a program that the organizations refuse, and return what the analyst reads.

        Raises:
            SystemExit: it runs.
        """
        done = self.ask(name, *args)
        if not done.returncode:
            raise SystemExit(f"{name} {' '.join(args)} was to be refused, and has run")
        return done.stderr.strip()

    def run(self, name: str) -> str:
        """Run a program, look through the process, and return what it printed.

        Raises:
            SystemExit: it failed, or has had a row.
        """
        recorded = [sys.executable, str(HERE / "watch.py"), str(self._traffic)]
        process = subprocess.Popen(
            [
                *recorded, str(HERE / "analyst.py"), name,
                "--cluster", "cluster.yaml", "--tls", ANALYST,
            ],
            cwd=self._folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        told = process.stdout.readline().decode().strip()
        looked = {}
        if told:
            looked["memory"] = self._look(memory_of(process.pid), aligned=True)
            looked["traffic"] = self._look([self._traffic.read_bytes()])
        process.stdin.close()
        if process.wait(60) or not told:
            raise SystemExit(f"the analyst's program {name} failed")
        for where, (size, found) in looked.items():
            if found:
                raise SystemExit(f"a row is in the analyst's {where}: {', '.join(found)}")
            if not size:
                raise SystemExit(f"nothing was seen of the analyst's {where}")
        sizes = ", ".join(f"{size / 1e6:.1f} MB of {where}" for where, (size, _) in looked.items())
        return f"{told} (no row in {sizes} of the analyst's process)"

    def _look(self, parts: Iterable[bytes], *, aligned: bool = False) -> tuple[int, list[str]]:
        size, found = 0, set()
        for part in parts:
            size += len(part)
            for rows in self._rows:
                found.update(rows.found_in(part, aligned=aligned))
        return size, sorted(found)


def check_that_rows_are_found(made: Organizations) -> None:
    """Check that a process that has rows is found out, by those that this one has."""
    rows = Rows(made.known.drop(columns=["id", "diagnosis"]))
    cells = made.known.drop(columns=["id", "diagnosis"]).to_numpy()
    csv = (made.root / "hospital_a" / "patients.csv").read_bytes()
    for data, how in (
        (b"x" * 3 + cells[:40].tobytes(), "float64"),
        (b"x" * 5 + cells[:40].astype(np.float32).tobytes(), "float32"),
        (csv, "text"),
    ):
        if how not in rows.found_in(data):
            raise SystemExit(f"a row as {how} would not be found")


def stored(made: Organizations, name: str) -> pd.DataFrame:
    """Return a table that lies in the sink of hospital B, as its own people read it."""
    path = made.root / "hospital_b" / "sink" / ANALYST / name / "current" / "value.parquet"
    return pd.read_parquet(path)


def compare(console: Console, what: str, found: float, wanted: float) -> None:
    """Print a number beside that of plain NumPy, and fail if they differ."""
    console.print(f"{what}: {found:.4f}; in plain NumPy, on all rows in one place: {wanted:.4f}")
    if abs(found - wanted) > TOLERANCE:
        raise SystemExit(f"{what} is wrong")


def on_workers(console: Console, made: Organizations, auc: float, scores: np.ndarray) -> None:
    """Train on workers, and check what the analyst and hospital B have."""
    begin = time.perf_counter()
    with made.running():
        console.print(f"three workers run, each in its folder, after {_since(begin)}")
        get_approved(console, made, "train", Analyst(made))
        begin = time.perf_counter()
        told = Analyst(made).run("train")
        console.print(f"trained in {_since(begin)}: AUC {told}")
        compare(console, "AUC", float(told.split()[0]), auc)
        console.print(
            "the same with one constant changed:",
            indented(Analyst(made).refused("train", "--rate", "1.01")),
            sep="\n",
        )
    for name in NAMES:
        console.print(
            f"the log of {name}, by what the others remember: {made.verify(name).strip()}"
        )
    table = stored(made, "predictions")
    console.print("predictions in the sink of hospital B:", table.head(3), sep="\n")
    if list(table.id) != list(made.known.id[program.TRAINING :]):
        raise SystemExit("the predictions are of other patients")
    worst = float(np.abs(table.score - scores).max())
    console.print(f"they differ from those of plain NumPy by {worst:.4f} at most")
    if worst > TOLERANCE:
        raise SystemExit("the predictions are wrong")


def get_approved(console: Console, made: Organizations, name: str, analyst: Analyst) -> None:
    """Have a program refused, reviewed, and signed by all organizations."""
    console.print(
        f"{name}, before anybody has signed it:", indented(analyst.refused(name)), sep="\n"
    )
    analyst.ask(name, "--pack", f"{name}.mpl")
    made.send(name)
    shown = made.review("hospital_a", name)
    told = [line for line in shown.splitlines() if line.startswith("  - ")]
    console.print(
        f"what hospital_a is shown of {name}, in {len(shown.splitlines())} lines, such as:"
    )
    console.print("\n".join(told[:3]))
    made.approve(name)
    console.print(f"all organizations have signed {name}, for one run")


def indented(text: str) -> str:
    """Return a text as a paragraph of its own."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def after_a_restart(console: Console, made: Organizations, score: float) -> None:
    """Start all workers again, and score the new patient by the model in their sinks."""
    with made.running():
        console.print("all workers were ended, and run again")
        get_approved(console, made, "score", Analyst(made))
        told = Analyst(made).run("score")
        console.print(f"scored: {told}")
    compare(console, "score of the new patient", float(stored(made, "arrivals").score[0]), score)


def on_simulator(console: Console, made: Organizations, auc: float) -> None:
    """Run the same programs on a simulator, over the same data."""
    nodes = [{"name": name} for name in NAMES]
    cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": program.DEVICES})
    data, sink = made.simulated(), made.root / "simulated"
    with mp.Simulator(cluster, data=data, sink=sink, mode="launch") as host:
        found = float(mp.fetch(host, mp.evaluate(host, program.train)))
        mp.evaluate(host, program.score)
    compare(console, "AUC of the same program on the simulator", found, auc)
    scored = [sink / "hospital_b" / "local" / "arrivals" / "current" / "value.parquet"]
    mine, theirs = pd.read_parquet(scored[0]).score[0], stored(made, "arrivals").score[0]
    compare(console, "score of the new patient, on the simulator", mine, theirs)


def _since(begin: float) -> str:
    return f"{time.perf_counter() - begin:.1f} s"


def main() -> None:
    """Run it all; ends with status 1 if a number is wrong, or the analyst has had a row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--keep", metavar="FOLDER", help="make the organizations there, and keep them"
    )
    args = parser.parse_args()
    console = Console(soft_wrap=True, highlight=False)
    root = Path(args.keep or tempfile.mkdtemp(prefix="hospitals-")).absolute()
    try:
        made = Organizations(root)
        check_that_rows_are_found(made)
        auc, scores, score = plainly(made.known, made.arrived)
        on_workers(console, made, auc, scores)
        after_a_restart(console, made, score)
        on_simulator(console, made, auc)
    finally:
        if not args.keep:
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
