"""Workers with gates whose runs need the bank's approval, and the commands of its owner."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_policy import Ledger
from mplang_testing.waiting import wait_until
from typer.testing import CliRunner

import mplang_core as mp

NAMES = ["bank", "shop", "clinic"]
PERMIT_ALL = "permit (principal, action, resource);\n"
BANK = PERMIT_ALL + (
    'forbid (principal, action == Action::"fetch", resource)\n'
    'when { context.columns.contains(Column::"pay") } unless { context.approved };\n'
)
ARRAY = {"array": "f64[3]"}
CONTROL = {
    "path": "control/socket", "group": "users",
    "operators": "adm", "owners": "sudo", "auditors": "audio",
}  # fmt: skip


def at_work() -> tuple[mp.MPObject, mp.MPObject]:
    """Return the pay, and what takes all parties hours."""
    return quick(), mp.while_loop(lambda i: i < 1 << 40, lambda i: i + 1, 0)


def quick() -> mp.MPObject:
    """Return the pay."""
    return mp.dataset("bank", "pay")


def kept_and_told() -> tuple[mp.MPObject, mp.MPObject]:
    """Store the pay, keep it, and return it."""
    pay = quick()
    mp.store(pay, "pay")
    return mp.keep(pay), pay


def load() -> mp.MPObject:
    """Keep the pay that was stored, which needs no approval."""
    return mp.keep(mp.load("P0", "pay"))


class Stoppable:
    """Three workers with gates; runs that tell the pay need the approval of the bank.

    Args:
        folder: the folder of all their files.
        controlled: name of the one that has a control socket, if any.
        names: the parties, the bank first.
        certificates: roles at the one that is controlled, by names of certificates.
        **options: those of the cluster.
    """

    def __init__(
        self, folder: Path, controlled: str = "", names: Sequence[str] = NAMES,
        certificates: Mapping[str, Sequence[str]] = {}, **options: Any,
    ) -> None:  # fmt: skip
        self.folder = folder
        np.save(folder / "pay.npy", np.array([1.0, 2.0, 4.0]))
        self.command("approver-key", folder / "ann.key")
        data = {"bank": {"pay": {"source": f"npy:{folder}/pay.npy", **ARRAY}}}
        gates = {}
        self.names, tls = names, bool(options.get("tls"))
        for name in names:
            (folder / f"{name}.cedar").write_text(BANK if name == "bank" else PERMIT_ALL)
            gates[name] = {
                "policy": str(folder / f"{name}.cedar"), "log": str(folder / f"{name}.db"),
                "approvals": str(folder / f"{name}-approvals"),
                "approvers": {"ann": str(folder / "ann.pub")},
            }  # fmt: skip
            fields = {"name": name, "gate": gates[name], "data": data.get(name, {})}
            if name == controlled:
                fields["control"] = CONTROL
            if tls:
                fields |= {"tls": name, "coordinators": ["host"], "peers": dict.fromkeys(names)}
            (folder / f"{name}.yaml").write_text(json.dumps({**fields, "mode": "production"}))
        with pytest.MonkeyPatch.context() as patch:
            paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
            patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
            imports = ("mplang_testing.dialect",)
            options = {"mode": "production", "imports": imports, "sink": folder, **options}
            if controlled:
                path = str(folder / CONTROL["path"])
                control = {**CONTROL, "path": path, "certificates": certificates}
                options["controls"] = {controlled: control}
            self.cluster = LocalCluster(names, data=data, gates=gates, **options)

    def command(self, *args: object, ok: bool = True) -> str:
        """Run a command, and return what it prints."""
        from mplang_cli.cli import app

        done = CliRunner().invoke(app, [str(each) for each in args])
        printed = done.output + (str(done.exception) if done.exception else "")
        assert (done.exit_code == 0) is ok, printed
        return printed

    def approved(self, fn: Any, spec: mp.ClusterSpec | None = None) -> tuple[Any, str]:
        """Return a program that the bank has approved, and the name of the approval."""
        with mp.catalogue({"bank": {"pay": ARRAY}}):
            made = mp.compile(fn, cluster_spec=spec or self.cluster.spec)
            path = self.folder / f"{fn.__name__}.mpl"
            mp.artifact.save(path, made)
        before = self._approvals()
        signing = ["-c", self.folder / "bank.yaml", "--key", self.folder / "ann.key", "--yes"]
        self.command("approve", path, "--uses", 1000, *signing)
        (name,) = self._approvals() - before
        return made, name

    def _approvals(self) -> set[str]:
        printed = self.command("approvals", "-c", self.folder / "bank.yaml", "--json")
        return {json.loads(line)["approval"] for line in printed.splitlines() if line}

    def revoke(self, approval: str) -> None:
        """Revoke an approval, in another process than that of the worker."""
        self.command("revoke", approval, "-c", self.folder / "bank.yaml")

    def log(self, name: str = "bank") -> list[Any]:
        """Return the entries of a party's log."""
        with closing(Ledger(self.folder / f"{name}.db", read_only=True)) as ledger:
            return list(ledger.entries())

    def kinds(self, name: str = "bank") -> list[str]:
        """Return what the entries of a party's log are about."""
        return [each.kind for each in self.log(name)]

    @contextlib.contextmanager
    def running(self, host: Any, program: Any) -> Iterator[Future[Any]]:
        """Run a program in another thread; enter once it is on record at the bank."""
        runs = self.kinds().count("run")
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(mp.evaluate, host, program)
            wait_until(lambda: self.kinds().count("run") > runs or running.done())
            yield running
