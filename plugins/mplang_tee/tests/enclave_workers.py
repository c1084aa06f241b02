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
        folder: for logs.
        settings: what is different in the settings of the package, by party.
        **options: of the cluster.
    """

    def __init__(
        self, machine: Machine, folder: Path, settings: dict[str, Any] | None = None, **options: Any
    ) -> None:
        enclave = {"provider": "tpm", "maker": machine.maker}
        enclave["swap"] = "encrypted"  # of a machine that runs tests
        self._settings: dict[str, Any] = {"cloud": {"enclave": enclave}}
        self._others, self._expected = settings or {}, {"tpm": machine.expected}
        common = {"tls": True, "mode": "production", "log": str(folder), "log_level": "debug"}
        super().__init__(NAMES, **{**common, **options})

    def _configure(self, name: str, tls: Any, options: Any) -> Any:
        if len(self._settings) == 1:  # the others expect the file of the cloud's worker
            super()._configure("cloud", tls, self._with_plugins("cloud", options))
            known = {"files": [measure([self._path("cloud")]).hex()], "accepts": self._expected}
            owner = {"enclaves": {"cloud": known}}
            self._settings |= {"bank": owner, "shop": owner, **self._others}
        return super()._configure(name, tls, self._with_plugins(name, options))

    def _with_plugins(self, name: str, options: Any) -> dict[str, Any]:
        plugins: dict[str, Any] = {
            package: {"version": version} for package, version in installed_plugins().items()
        }
        plugins["mplang-tee"]["settings"] = self._settings[name]
        return {**options, "plugins": plugins}

    def connect(self) -> Any:
        devices = cluster("tpm").devices
        return mp.connect("http", mp.ClusterSpec(self.spec.nodes, devices), tls=self.tls)
