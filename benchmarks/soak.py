"""Soak: hosts that run programs for long, while peers restart and certificates and rules change.

Three organizations with TLS, gates and data sets; each host runs a guarded aggregate, a product on
shares, and what it stores and loads. ``make soak MINUTES=30 HOSTS=6`` prints a report and fails if
a result was wrong, a log has a false entry or lacks a run, or a process grows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
from authority import TestAuthority
from mplang_http import LocalCluster
from mplang_policy import Ledger
from processes import descendants

import mplang_core as mp
from mplang_core.errors import MPLangError

PARTIES = ("bank", "shop", "lab")
ROWS = 60
PAUSE = 300.0  # seconds between two restarts; certificates and rules change in the middle
GRACE = 60.0  # seconds after a restart in which runs may still end by it
SAMPLE = 5.0  # seconds between two looks at the memory of processes
SLOPE = 2.0  # MB an hour that a process may grow by, over the second half
WARM = 120.0  # seconds in which a process fills what it fills once
SPAN = 600.0  # seconds that a process has to be looked at for its growth to mean something
FALSE = ("set back", "refusal")  # nobody broke a rule, and nobody touched a log
JOBS = 50  # that a session remembers: a thousand, by default, take longer than the run to fill up
MB = 1 << 20
RULES = """// version {version}
@id("all") permit (principal, action, resource);
"""


PAY = np.arange(1.0, ROWS + 1)
PRICE = np.linspace(0.5, 1.5, ROWS)


def aggregate():
    """Return the mean pay, of at least ten people."""
    return mp.guard.aggregate(mp.dataset("bank", "people"), unit="id", k=10, pay=("pay", "mean"))


def product():
    """Return the product of two organizations' columns, computed on shares."""
    pay, price = mp.dataset("bank", "pay"), mp.dataset("shop", "price")
    total = mp.device("SP0")(lambda a, b: jnp.sum(a * b))(pay, price)
    return mp.reveal(total, to="P2")


def remembered():
    """Store a column at its owner."""
    mp.store(mp.device("P1")(lambda x: 2 * x)(mp.dataset("shop", "price")), "twice")


def recalled():
    """Return the sum of what was stored."""
    return mp.device("P1")(jnp.sum)(mp.load("shop", "twice"))


@dataclass
class Counts:
    """What a host did, and what went wrong.

    Attributes:
        done: number of runs with the right result, by program.
        interrupted: number of runs and openings that ended with a peer.
        wrong: what should not have been.
    """

    done: Counter[str] = field(default_factory=Counter)
    interrupted: int = 0
    wrong: list[str] = field(default_factory=list)


class Organizations:
    """Three organizations with their data, rules, logs and certificates; live workers."""

    def __init__(self, folder: Path, hosts: int) -> None:
        self.folder = folder
        self.hosts = [f"host{i}" for i in range(hosts)]
        self.authority = TestAuthority(folder / "keys")
        self.files = {name: self.authority.issue(name) for name in (*PARTIES, *self.hosts)}
        pd.DataFrame({"id": np.arange(ROWS), "pay": PAY}).to_csv(folder / "people.csv", index=False)
        np.save(folder / "pay.npy", PAY)
        np.save(folder / "price.npy", PRICE)
        array = {"array": f"f64[{ROWS}]", "readers": self.hosts}
        people = {"columns": {"id": "int64", "pay": "float64"}, "unit": "id"}
        data = {
            "bank": {
                "people": people | {"source": f"csv:{folder}/people.csv", "readers": self.hosts},
                "pay": array | {"source": f"npy:{folder}/pay.npy"},
            },
            "shop": {"price": array | {"source": f"npy:{folder}/price.npy"}},
        }
        gates = {}
        for name in PARTIES:
            self.write_rules(name, 0)
            gates[name] = {
                "policy": str(folder / f"{name}.cedar"), "log": str(folder / f"{name}.db"),
            }  # fmt: skip
        self.cluster = LocalCluster(
            PARTIES, tls={**self.files, "host": self.files["host0"]}, coordinators=self.hosts,
            data=data, gates=gates, mode="production", log=str(folder), sink=folder,
            limits={"jobs": JOBS},
        )  # fmt: skip

    def write_rules(self, name: str, version: int) -> None:
        """Replace the rules of an organization by others that say the same."""
        path = self.folder / f"{name}.cedar"
        path.with_suffix(".new").write_text(RULES.format(version=version))
        os.replace(path.with_suffix(".new"), path)

    def connect(self, name: str):
        """Return a host."""
        return mp.connect("http", self.cluster.spec, tls=self.files[name])

    def restart(self, rank: int) -> None:
        """Restart a worker as its service manager would: it drains first."""
        self.cluster.workers[rank].terminate()
        self.cluster.workers[rank].wait(60)
        self.cluster.restart(rank)

    def entries(self, name: str):
        """Return all entries of a log, whose chain is verified on the way."""
        with closing(Ledger(self.folder / f"{name}.db", read_only=True)) as ledger:
            return list(ledger.entries())


class Soak:
    """Run programs from all hosts while the organizations change."""

    def __init__(self, organizations: Organizations, minutes: float, pause: float) -> None:
        self.all = organizations
        self.pause = pause
        self.begun = time.monotonic()
        self.end = self.begun + 60 * minutes
        self.counts = {name: Counts() for name in organizations.hosts}
        self.memory = Memory()
        self.restarts: list[tuple[float, float]] = []  # seconds of the clock
        self._restarting: float | None = None
        self._over = threading.Event()

    def run(self) -> None:
        """Run until the time is over."""
        works = [threading.Thread(target=self._work, args=[name]) for name in self.all.hosts]
        others = [threading.Thread(target=each) for each in (self._change, self._look)]
        for thread in (*works, *others):
            thread.start()
        for thread in works:
            thread.join()
        self._over.set()
        for thread in others:
            thread.join()

    # -- hosts

    def _work(self, name: str) -> None:
        counts = self.counts[name]
        while time.monotonic() < self.end:
            try:
                with self.all.connect(name) as host:
                    while time.monotonic() < self.end:
                        self._round(host, counts)
            except MPLangError as error:
                counts.interrupted += 1
                if not self._explains(time.monotonic()):
                    counts.wrong.append(f"{name}: {type(error).__name__}: {error}")
                self._over.wait(1)
            except BaseException as error:
                counts.wrong.append(f"{name}: {error!r}")
                raise

    def _round(self, host, counts: Counts) -> None:
        pay = mp.fetch(host, mp.evaluate(host, aggregate)).to_pylist()
        self._count(counts, "aggregate", pay, [{"pay": PAY.mean()}])
        found = mp.fetch(host, mp.evaluate(host, product))
        right = np.allclose(found, PAY @ PRICE, rtol=1e-3)
        self._count(counts, "product", bool(right), True)
        mp.evaluate(host, remembered)
        self._count(counts, "store", None, None)
        found = mp.fetch(host, mp.evaluate(host, recalled))
        self._count(counts, "load", bool(np.allclose(found, 2 * PRICE.sum())), True)

    def _count(self, counts: Counts, program: str, found, expected) -> None:
        if found == expected:
            counts.done[program] += 1
        else:
            counts.wrong.append(f"{program} gave {found}, and not {expected}")

    def _explains(self, at: float) -> bool:
        """Return whether a restart explains that a run ended."""
        ends = [*self.restarts, *([(self._restarting, at)] if self._restarting else [])]
        return any(begin <= at <= end + GRACE for begin, end in ends)

    # -- what changes

    def _change(self) -> None:
        """Change one organization after the other.

        In the second half the last one alone restarts: the others live long enough for the slope
        of their memory to mean something, and grow if each restart of a peer costs something.
        """
        turn, half = 0, (self.begun + self.end) / 2
        while not self._over.wait(self.pause / 2):
            rank = turn // 2 % len(PARTIES)
            if turn % 2 and time.monotonic() >= half:
                rank = len(PARTIES) - 1
            if turn % 2:
                self._restarting = time.monotonic()
                self.all.restart(rank)
                self.restarts.append((self._restarting, time.monotonic()))
                self._restarting = None
            else:
                for name in (PARTIES[rank], self.all.hosts[turn % len(self.all.hosts)]):
                    self.all.authority.issue(name)
                self.all.write_rules(PARTIES[rank], turn)
                os.kill(self.all.cluster.workers[rank].pid, signal.SIGHUP)
            turn += 1

    def _look(self) -> None:
        while not self._over.wait(SAMPLE):
            for name, worker in zip(PARTIES, self.all.cluster.workers, strict=True):
                for pid in (worker.pid, *descendants(worker.pid)):
                    self.memory.look(name, pid)

    # -- the report

    def report(self) -> list[str]:
        """Print what was done; return what was wrong."""
        wrong = [each for counts in self.counts.values() for each in counts.wrong]
        for name in PARTIES:
            wrong += self._wrong_in_log(name)
        wrong += self.memory.growing(self.begun + (self.end - self.begun) / 2)
        total = sum((counts.done for counts in self.counts.values()), Counter())
        interrupted = sum(counts.interrupted for counts in self.counts.values())
        print(f"runs: {dict(total)}, {interrupted} interrupted by {len(self.restarts)} restarts")
        print(self.memory)
        return wrong

    def _wrong_in_log(self, name: str) -> list[str]:
        entries = self.all.entries(name)
        kinds = Counter(each.kind for each in entries)
        print(f"log of {name}: {dict(kinds)}")
        wrong = [f"log of {name}: {each}" for each in entries if each.kind in FALSE]
        if kinds["run"] != kinds["end"]:
            wrong.append(f"log of {name}: {kinds['run']} runs, and {kinds['end']} ends")
        for host, counts in self.counts.items():
            begun = sum(e.kind == "run" and e.body.get("coordinator") == host for e in entries)
            least = sum(counts.done.values())
            if not least <= begun <= least + counts.interrupted:
                wrong.append(f"log of {name}: {begun} runs of {host}, which made {least}")
        return wrong


class Memory:
    """Anonymous memory of processes over time, in MB, whether or not a fork shares it."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, int], list[tuple[float, float]]] = {}

    def look(self, party: str, pid: int) -> None:
        """Measure a process, unless it has ended."""
        try:
            kind = Path(f"/proc/{pid}/comm").read_text().strip()
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            return
        own = [int(line.split()[1]) for line in lines if line.startswith(("Anonymous:", "Swap:"))]
        if own:
            seen = self._seen.setdefault((party, kind, pid), [])
            seen.append((time.monotonic(), sum(own) / 1024))

    def save(self, path: str) -> None:
        """Write what was measured as CSV: party, kind and number of a process, seconds, MB."""
        with open(path, "w", encoding="utf-8") as file:
            for process, seen in self._seen.items():
                for at, mb in seen:
                    print(*process, f"{at:.1f}", f"{mb:.3f}", sep=",", file=file)

    def slopes(self, since: float) -> dict[tuple[str, str, int], float]:
        """Return the growth in MB an hour of the processes that lived long enough to tell."""
        found = {}
        for process, seen in self._seen.items():
            begun = max(since, seen[0][0] + WARM)
            late = np.array([each for each in seen if each[0] >= begun])
            if len(late) > 2 and late[-1, 0] - late[0, 0] >= SPAN:
                found[process] = 3600 * float(np.polyfit(late[:, 0], late[:, 1], 1)[0])
        return found

    def growing(self, since: float) -> list[str]:
        """Return the processes that grow."""
        return [
            f"{party}: {kind} {pid} grows by {slope:.1f} MB an hour"
            for (party, kind, pid), slope in self.slopes(since).items()
            if slope > SLOPE
        ]

    def __str__(self) -> str:
        """Return the largest memory of each kind of process, and the largest slope."""
        lines = []
        slopes = self.slopes(0)
        for kind in sorted({process[1] for process in self._seen}):
            peak = max(mb for p, seen in self._seen.items() if p[1] == kind for _, mb in seen)
            grown = [slope for process, slope in slopes.items() if process[1] == kind]
            told = f", up to {max(grown):+.1f} MB an hour" if grown else ""
            lines.append(f"{kind}: at most {peak:.0f} MB{told}")
        return "\n".join(lines)


def main() -> int:
    """Soak; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--hosts", type=int, default=6)
    parser.add_argument("--pause", type=float, default=None, help="seconds between two restarts")
    parser.add_argument("--series", help="file for the memory of each process over time, as CSV")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    organizations = Organizations(folder, chosen.hosts)
    with organizations.cluster:
        pause = chosen.pause or min(PAUSE, 60 * chosen.minutes / 4)
        soak = Soak(organizations, chosen.minutes, pause)
        soak.run()
    if chosen.series:
        soak.memory.save(chosen.series)
    wrong = soak.report()
    for each in wrong:
        print(f"WRONG: {each}")
    if wrong:
        print(f"logs and records are kept in {folder}")
    else:
        shutil.rmtree(folder)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
