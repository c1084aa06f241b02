"""Workers in production, of which that of a cloud is an enclave by a TPM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from machines import Machine, cluster
from mplang_http import LocalCluster
from mplang_tee.measurement import measure
from mplang_worker.base.allowed_plugins import installed_plugins

import mplang_core as mp

NAMES = ["bank", "shop", "cloud"]


class EnclaveWorkers(LocalCluster):
    """A bank, a shop, and a cloud whose worker is an enclave by a TPM.

    Args:
        machine: the cloud's.
        folder: for the file that is measured, and logs.
        settings: what is different in the settings of the package, by party.
        **options: of the cluster.
    """

    def __init__(
        self, machine: Machine, folder: Path, settings: dict[str, Any] | None = None, **options: Any
    ) -> None:
        measured = folder / "cloud.yaml"
        measured.write_text("name: cloud\n")
        files = [measure([measured]).hex()]
        owner = {"enclaves": {"cloud": {"files": files, "accepts": {"tpm": machine.expected}}}}
        enclave = {"provider": "tpm", "maker": machine.maker, "files": [str(measured)]}
        enclave["swap"] = "encrypted"  # of a machine that runs tests
        self._settings = {"bank": owner, "shop": owner, "cloud": {"enclave": enclave}}
        self._settings |= settings or {}
        common = {"tls": True, "mode": "production", "log": str(folder), "log_level": "debug"}
        super().__init__(NAMES, **{**common, **options})

    def _configure(self, name: str, tls: Any, options: Any) -> Any:
        plugins = {
            package: {"version": version} | self._of(package, name)
            for package, version in installed_plugins().items()
        }
        return super()._configure(name, tls, {**options, "plugins": plugins})

    def _of(self, package: str, name: str) -> dict[str, Any]:
        return {"settings": self._settings[name]} if package == "mplang-tee" else {}

    def connect(self) -> Any:
        devices = cluster("tpm").devices
        return mp.connect("http", mp.ClusterSpec(self.spec.nodes, devices), tls=self.tls)
