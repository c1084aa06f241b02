"""Two hospitals train one model on data that neither may see whole.

Hospital A (party 0) has some columns of scikit-learn's breast cancer data, hospital B
(party 1) has the others and the diagnoses. Each standardizes its own columns in plain JAX.
Logistic regression is trained on secret shares (SPU); the model stays shared, too. Only
the predictions for the test patients are revealed, to hospital B, which has the diagnoses.

With ``--parties 3`` a third party joins the computation. It brings no data, and learns none.

    python examples/vertical_lr.py --parties 3 --protocol ABY3

With ``--backend http`` it runs on the simulator and then, unchanged, on one worker process per
party, which have certificates and talk through one port each.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from sklearn.datasets import load_breast_cancer

import mplang_core as mp
from mplang_core.simp import SimpHost

RATE = 1.0
TOLERANCE = 0.005
NAMES = ["hospital_a", "hospital_b", "helper"]

# -- what each party runs, in plain JAX


def standardize(train, test):
    """Scale columns to mean 0 and deviation 1, by what is known of the training patients."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    return (train - mean) / deviation, (test - mean) / deviation


def auc(score, label):
    """Return how often a sick patient is scored above a healthy one (the area under ROC)."""
    above = (score[:, None] > score[None, :]) + 0.5 * (score[:, None] == score[None, :])
    pairs = (label[:, None] == 1) & (label[None, :] == 0)
    return (above * pairs).sum() / pairs.sum()


# -- what they run together, on shares


def epoch(weights, x, y):
    """One step of gradient descent over all training patients."""
    w, b = weights
    error = jax.nn.sigmoid(x @ w + b) - y
    return w - RATE * (x.T @ error) / x.shape[0], b - RATE * error.mean()


def predict(weights, x):
    """Return the probability of a diagnosis."""
    w, b = weights
    return jax.nn.sigmoid(x @ w + b)


# -- the program over all of it


def make_program(epochs: int, columns: int):
    """Return the multi-party program; its arguments are values at the hospitals."""

    def vertical_lr(a_train, a_test, b_train, b_test, y_train, y_test):
        a_train, a_test = mp.device("P0")(standardize)(a_train, a_test)
        b_train, b_test = mp.device("P1")(standardize)(b_train, b_test)
        x_train = mp.device("SP0")(lambda a, b: jnp.hstack([a, b]))(a_train, b_train)
        x_test = mp.device("SP0")(lambda a, b: jnp.hstack([a, b]))(a_test, b_test)
        y_train = mp.seal(y_train)
        weights = mp.seal((np.zeros(columns, np.float32), np.float32(0)))
        for _ in range(epochs):
            weights = mp.device("SP0")(epoch)(weights, x_train, y_train)
        scores = mp.device("SP0")(predict)(weights, x_test)
        scores = mp.reveal(scores, to="P1")
        return mp.device("P1")(auc)(scores, y_test)

    return vertical_lr


def load() -> dict[str, np.ndarray]:
    """Return what each hospital has, and the plain whole for comparison."""
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.target))
    x, y = data.data[order].astype(np.float32), data.target[order].astype(np.float32)
    train, test = slice(0, 455), slice(455, None)
    half = x.shape[1] // 2
    return {
        "a_train": x[train, :half],
        "a_test": x[test, :half],
        "b_train": x[train, half:],
        "b_test": x[test, half:],
        "y_train": y[train],
        "y_test": y[test],
    }


def plain(parts: dict[str, np.ndarray], epochs: int) -> float:
    """Train the same model in plain NumPy, on all columns in one place."""
    train = np.hstack([parts["a_train"], parts["b_train"]]).astype(np.float64)
    test = np.hstack([parts["a_test"], parts["b_test"]]).astype(np.float64)
    train, test = (train - train.mean(0)) / train.std(0), (test - train.mean(0)) / train.std(0)
    w, b = np.zeros(train.shape[1]), 0.0
    for _ in range(epochs):
        error = 1 / (1 + np.exp(-(train @ w + b))) - parts["y_train"]
        w, b = w - RATE * train.T @ error / len(train), b - RATE * error.mean()
    return float(auc(test @ w + b, parts["y_test"]))


# -- showing it


def show_placement(console: Console, program: mp.Program) -> None:
    """Print where each line of the program runs and by which ops, from the program itself."""
    lines: dict[int, collections.Counter[str]] = {}
    parties: dict[int, mp.Mask] = {}
    for op in program.graph.ops:
        line = op.location.line
        body = op.regions.get("do")
        name = body.ops[0].opcode if body else op.opcode
        lines.setdefault(line, collections.Counter())[name] += 1
        parties[line] = parties.get(line, mp.Mask()) | op.outputs[0].type.pmask
    with open(__file__, encoding="utf-8") as file:
        source = file.read().split("\n")
    table = Table("line", "source", "parties", "ops", title="Placement of each step")
    for line, ops in lines.items():
        shown = "\n".join(f"{name} ×{n}" if n > 1 else name for name, n in ops.items())
        table.add_row(str(line), Text(source[line - 1].strip()), str(parties[line]), shown)
    console.print(table)


class EpochBar:
    """Advances a progress bar as the epochs of a running program end."""

    def __init__(self, progress: Progress, program: mp.Program, epochs: int) -> None:
        lines = collections.Counter(
            op.location for op in program.graph.ops if self._runs_on_spu(op)
        )
        self._epoch = lines.most_common(1)[0][0]  # the line that runs most often
        self._progress = progress
        self._task = progress.add_task("training", total=epochs)

    @staticmethod
    def _runs_on_spu(op: Any) -> bool:
        return "do" in op.regions and op.regions["do"].ops[0].opcode == "spu.run_jax"

    def op_started(self, op: Any, index: int, total: int) -> None:
        """Nothing to show yet."""

    def op_finished(self, op: Any, index: int, total: int) -> None:
        """Count an epoch."""
        if op.location == self._epoch and self._runs_on_spu(op):
            self._progress.advance(self._task)


# -- where it runs


def make_cluster(args: argparse.Namespace, addresses: list[str]) -> mp.ClusterSpec:
    """Return the parties, and their devices."""
    names = NAMES[: args.parties]
    nodes = zip(names, addresses or [""] * len(names), strict=True)
    return mp.ClusterSpec.from_dict(
        {
            "nodes": [{"name": name, "address": address} for name, address in nodes],
            "devices": {
                "P0": {"kind": "PPU", "members": ["hospital_a"]},
                "P1": {"kind": "PPU", "members": ["hospital_b"]},
                "SP0": {
                    "kind": "SPU",
                    "members": names,
                    "config": {"protocol": args.protocol} if args.protocol else {},
                },
            },
        }
    )


@contextlib.contextmanager
def workers(args: argparse.Namespace, console: Console) -> Iterator[SimpHost]:
    """Have a worker process per party, with certificates and one port each; check the ports."""
    from mplang_http import LocalCluster

    options = {"insecure": args.protocol == "SEMI2K", "mode": "production"}  # as on their own
    with LocalCluster(NAMES[: args.parties], tls=True, **options) as local:
        cluster = make_cluster(args, [node.address for node in local.spec.nodes])
        with mp.connect("http", cluster, tls=local.tls) as host:
            yield host
        show_ports(console, local)


def show_ports(console: Console, local: Any) -> None:
    """Print where the workers' processes listen, and fail unless it is at one port each."""
    table = Table("worker", "processes", "listens at", title="Ports")
    for node, front in zip(local.spec.nodes, local.workers, strict=True):
        process = psutil.Process(front.pid)
        family = [process, *process.children(recursive=True)]
        sockets = [sock for one in family for sock in one.net_connections(kind="inet")]
        ports = {sock.laddr.port for sock in sockets if sock.status == psutil.CONN_LISTEN}
        table.add_row(node.name, str(len(family)), ", ".join(map(str, sorted(ports))))
        if ports != {int(node.address.rpartition(":")[2])}:
            raise SystemExit(f"{node.name} listens at {sorted(ports)}, and not at its port alone")
    console.print(table)


def train(
    host: SimpHost, parts: dict[str, np.ndarray], epochs: int, console: Console
) -> tuple[float, float]:
    """Run the program on a host; return the AUC, and the seconds that it took."""
    begin = time.perf_counter()
    with mp.with_ctx(host):  # the data is at the hospitals, not in the program
        values = {
            name: mp.put("P0" if name.startswith("a_") else "P1", data)
            for name, data in parts.items()
        }
    columns = parts["a_train"].shape[1] + parts["b_train"].shape[1]
    program = mp.compile(make_program(epochs, columns))
    traced = program.trace(host, **values)
    if host.mode == "launch":  # the workers get the program whole
        with mp.watch(host, console):
            result = mp.evaluate(host, program, **values)
        return float(mp.fetch(host, result)), time.perf_counter() - begin
    show_placement(console, traced.program)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), console=console,
    )  # fmt: skip
    with bar:
        listener = EpochBar(bar, traced.program, epochs)
        result = mp.evaluate(host, program, **values, listener=listener)
    secure = float(mp.fetch(host, result))
    return secure, time.perf_counter() - begin


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parties", type=int, choices=(2, 3), default=2)
    parser.add_argument("--protocol", choices=("CHEETAH", "ABY3", "SEMI2K"))
    parser.add_argument("--backend", choices=("simulator", "http"), default="simulator")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    args = parser.parse_args()
    if args.epochs < 1:
        parser.error("--epochs is at least 1")
    try:
        args.protocol = make_cluster(args, []).device("SP0").config.protocol
    except mp.errors.ConfigError as error:
        parser.error(str(error))
    return args


def main() -> int:
    """Run the demo."""
    args, console, parts = parse(), Console(), load()
    found = {}
    with mp.Simulator(make_cluster(args, [])) as host:
        found["simulator"] = train(host, parts, args.epochs, console)
    if args.backend == "http":
        with workers(args, console) as host:
            found["http"] = train(host, parts, args.epochs, console)

    secure, seconds = found[args.backend]
    reference = plain(parts, args.epochs)
    figures = {
        "auc": secure,
        "auc_plain": reference,
        "seconds": round(seconds, 3),
        "protocol": args.protocol,
        "parties": args.parties,
        "epochs": args.epochs,
        "backend": args.backend,
        "auc_simulator": found["simulator"][0],
    }
    summary = Table("", "AUC", "seconds", title=f"{args.protocol}, {args.parties} parties")
    for backend, (area, time_) in found.items():
        summary.add_row(f"on secret shares, {backend}", f"{area:.4f}", f"{time_:.1f}")
    summary.add_row("plain NumPy, all data in one place", f"{reference:.4f}", "")
    console.print(summary)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=2)
            file.write("\n")
    if any(abs(area - reference) > TOLERANCE for area, _ in found.values()):
        console.print(f"[red]they differ by more than {TOLERANCE}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
