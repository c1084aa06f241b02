"""Three organizations on one machine, each with its own folder: configuration, key, data, sink.

In life each lies on a machine of its own, and its owner runs ``mplang worker -c worker.yaml``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import program
import yaml
from mplang_worker.base.allowed_plugins import installed_plugins
from mplang_worker.tls.keygen import make_certificates
from sklearn.datasets import load_breast_cancer

ANALYST = "analyst"
NAMES = ("hospital_a", "hospital_b", "university")
READY_TIMEOUT = 60.0  # seconds
OFFICER = "officer"  # who signs for an organization
RULES = """\
// Nothing runs that this organization has not seen and signed.
@id("as approved")
permit (
  principal == Coordinator::"analyst",
  action in [
    Action::"run", Action::"read", Action::"disclose", Action::"forward", Action::"fetch",
    Action::"store"
  ],
  resource
) when {
  context.approved
};
"""


def patients() -> pd.DataFrame:
    """Return scikit-learn's breast cancer data, by the numbers of patients."""
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.target))
    names = [name.replace(" ", "_") for name in data.feature_names]
    frame = pd.DataFrame(data.data[order], columns=names)
    frame.insert(0, "id", 842_000 + 7 * np.arange(len(frame)))
    return frame.assign(diagnosis=data.target[order])


def arrivals(known: pd.DataFrame) -> pd.DataFrame:
    """Return a patient who came since: between two others."""
    return (known.iloc[[0]].reset_index(drop=True) + known.iloc[[1]].reset_index(drop=True)) / 2


class Organizations:
    """Folders of the organizations, and of the analyst, who has a certificate and addresses.

    Args:
        root: the folder of all.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.known = patients()
        self.arrived = arrivals(self.known).astype({"id": "int64"})
        self._ports = {name: _free_port() for name in NAMES}
        self._certificates()
        self._write_data()
        for name in NAMES:
            self._configure(name)
        addresses = {name: self.address(name) for name in NAMES}
        nodes = [{"name": name, "address": address} for name, address in addresses.items()]
        cluster = {"nodes": nodes, "devices": program.DEVICES}
        (root / ANALYST / "cluster.yaml").write_text(yaml.safe_dump(cluster, sort_keys=False))

    def address(self, name: str) -> str:
        """Return the address of an organization's worker."""
        return f"https://127.0.0.1:{self._ports[name]}"

    def columns(self, name: str) -> list[str]:
        """Return the columns of an organization."""
        measured = [column for column in self.known.columns if column not in ("id", "diagnosis")]
        if name == "hospital_a":
            return ["id", *measured[:15]]
        return ["id", *measured[15:], "diagnosis"] if name == "hospital_b" else []

    def _certificates(self) -> None:
        made = make_certificates(self.root / "authority", [*NAMES, ANALYST], replace=True)
        for name, files in made.items():
            folder = self.root / name
            folder.mkdir()
            for file, suffix in ((files.cert, ".pem"), (files.key, ".key")):
                os.rename(file, folder / f"{name}{suffix}")
            (folder / "ca.pem").write_bytes(Path(files.ca).read_bytes())

    def _write_data(self) -> None:
        shuffled = self.known.sample(frac=1.0, random_state=1)  # neither is in the other's order
        a, b = self.root / "hospital_a", self.root / "hospital_b"
        for name, known in (("patients", shuffled), ("arrivals", self.arrived)):
            known[self.columns("hospital_a")].to_csv(a / f"{name}.csv", index=False)
        offered = self.columns("hospital_b")
        self.known[offered].to_parquet(b / "patients.parquet", index=False)
        self.arrived[offered[:-1]].to_parquet(b / "arrivals.parquet", index=False)

    def _configure(self, name: str) -> None:
        folder = self.root / name
        folder.joinpath("sink.key").write_bytes(os.urandom(32))
        config = {
            "name": name,
            "port": self._ports[name],
            "tls": name,
            "coordinators": [ANALYST],
            "peers": {each: self.address(each) for each in NAMES},
            "plugins": installed_plugins(),
            "mode": "production",
            "log_level": "info",
            "sink": {"folder": "sink", "key_file": "sink.key"},
            "gate": {
                "policy": "rules.cedar", "log": "gate.db", "approvals": "approvals",
                "approvers": {OFFICER: f"{OFFICER}.pub"},
            },
        }  # fmt: skip
        folder.joinpath("rules.cedar").write_text(RULES)
        _mplang(folder, "approver-key", f"{OFFICER}.key")
        if self.columns(name):
            config["data"] = self._catalogue(name)
        (folder / "worker.yaml").write_text(yaml.safe_dump(config, sort_keys=False))

    def _catalogue(self, name: str) -> dict[str, Any]:
        suffix = "csv" if name == "hospital_a" else "parquet"
        whole = ("id", "diagnosis")
        columns = {each: "int64" if each in whole else "float64" for each in self.columns(name)}
        arrived = {each: kind for each, kind in columns.items() if each != "diagnosis"}
        common = {"unit": "id", "readers": [ANALYST]}
        return {
            "patients": {
                "source": f"{suffix}:patients.{suffix}", "columns": columns,
                "rows": len(self.known), **common,
            },
            "arrivals": {
                "source": f"{suffix}:arrivals.{suffix}", "columns": arrived, "rows": 1, **common,
            },
        }  # fmt: skip

    def send(self, name: str) -> None:
        """Send an artifact of the analyst to all organizations."""
        for each in NAMES:
            (self.root / each / f"{name}.mpl").write_bytes(
                (self.root / ANALYST / f"{name}.mpl").read_bytes()
            )

    def review(self, organization: str, name: str) -> str:
        """Return what an organization is shown of a program."""
        return _mplang(self.root / organization, "review", f"{name}.mpl")

    def approve(self, name: str) -> None:
        """Have all organizations sign a program, for one run of the analyst."""
        for each in NAMES:
            signed = ["--key", f"{OFFICER}.key", "--coordinator", ANALYST, "--yes"]
            _mplang(self.root / each, "approve", f"{name}.mpl", *signed)

    def verify(self, organization: str) -> str:
        """Verify the log of an organization, by what the others remember of it."""
        heads = []
        for each in NAMES:
            for line in _mplang(self.root / each, "audit", "heads").splitlines():
                whose, _, head = line.partition("=")
                if whose == organization:
                    heads += ["--head", f"{each}={head}"]
        return _mplang(self.root / organization, "audit", "verify", *heads)

    def simulated(self) -> Mapping[str, Any]:
        """Return the same catalogues for a simulator."""
        found: dict[str, Any] = {}
        for name in NAMES[:2]:
            for each, fields in self._catalogue(name).items():
                kind, _, file = fields["source"].partition(":")
                source = f"{kind}:{self.root / name / file}"
                found.setdefault(name, {})[each] = {**fields, "source": source}
        return found

    @contextlib.contextmanager
    def running(self) -> Iterator[Sequence[subprocess.Popen[bytes]]]:
        """Have all workers run, each in its folder; end them as their owners would."""
        command = [str(Path(sys.executable).with_name("mplang")), "worker", "-c", "worker.yaml"]
        workers = []
        try:
            for name in NAMES:
                with open(self.root / name / "worker.log", "ab") as log:
                    workers.append(
                        subprocess.Popen(command, cwd=self.root / name, stdout=log, stderr=log)
                    )
            for name in NAMES:
                self._wait_for(name)
            yield workers
        finally:
            for worker in workers:
                worker.send_signal(signal.SIGTERM)
            for worker in workers:
                worker.wait(60)

    def _wait_for(self, name: str) -> None:
        own = self.root / name
        tls = ssl.create_default_context(cafile=str(own / "ca.pem"))
        tls.check_hostname = False  # certificates have names of parties
        tls.load_cert_chain(own / f"{name}.pem", own / f"{name}.key")
        deadline = time.monotonic() + READY_TIMEOUT
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(
                    f"{self.address(name)}/ready", timeout=5, context=tls
                ).close()
                return
            time.sleep(0.1)
        told = (own / "worker.log").read_text()
        raise SystemExit(f"the worker of {name} does not start:\n{told}")


def _mplang(folder: Path, *args: str) -> str:
    """Run a command of mplang in a folder, and return what it prints.

    Raises:
        SystemExit: it fails.
    """
    command = str(Path(sys.executable).with_name("mplang"))
    done = subprocess.run([command, *args], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"mplang {' '.join(args)} fails:\n{done.stdout}{done.stderr}")
    return done.stdout


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
