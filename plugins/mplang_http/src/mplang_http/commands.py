"""What the command line does: ``mplang worker``, ``up``, ``status`` and ``keygen``."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from mplang_core.device import ClusterSpec
from mplang_core.errors import ConfigError, RunError
from mplang_http.client import WorkerClient
from mplang_http.config import TlsFiles, WorkerConfig
from mplang_http.tls import client_context

__all__ = ["keygen", "status", "up", "worker"]


def worker(config: str | os.PathLike[str], *, ready: Callable[[str], None] = print) -> None:
    """Run one party's worker until it is interrupted.

    Args:
        config: its configuration, a YAML file; see :class:`mplang_http.config.WorkerConfig`.
        ready: is told of its address once it takes programs.

    Raises:
        ConfigError: the configuration is wrong, or it cannot listen there.
    """
    from mplang_http.worker import run_worker

    run_worker(WorkerConfig.from_yaml(config), ready=ready)


def up(
    parties: int,
    out: str | os.PathLike[str] = "cluster.yaml",
    *,
    tls: bool = False,
    insecure: bool = False,
    show: Callable[[list[dict[str, Any]]], None] = lambda rows: print(rows),
) -> None:
    """Run a cluster on this machine until it is interrupted.

    Args:
        parties: how many workers.
        out: the file to write its description to.
        tls: whether they have certificates; the coordinator's stand beside ``out``.
        insecure: whether protocols that are for debugging may run.
        show: is given the rows of :func:`status` whenever they change.

    Raises:
        ConfigError: certificates are wanted, or the number is none.
    """
    from mplang_http.local import LocalCluster

    if parties < 1:
        raise ConfigError(f"a cluster has at least one worker, got {parties}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with LocalCluster(parties, tls=tls, insecure=insecure) as cluster:
        nodes = [{"name": node.name, "address": node.address} for node in cluster.spec.nodes]
        Path(out).write_text(yaml.safe_dump({"nodes": nodes}), encoding="utf-8")
        rows: list[dict[str, Any]] = []
        while True:
            found = status(cluster.spec, tls=cluster.tls)
            if found != rows:
                rows = found
                show(rows)
            try:
                time.sleep(1)
            except KeyboardInterrupt:
                return


def status(
    cluster: ClusterSpec, *, tls: TlsFiles | None = None, patience: float = 3.0
) -> list[dict[str, Any]]:
    """Return a row per worker: its name, where it is, and how it is."""
    context = client_context(tls, "http/1.1") if tls is not None else None
    rows = []
    for node in cluster.nodes:
        client = WorkerClient(node.name, node.address, context, patience)
        try:
            health = client.ask("GET", "health")
            state = "another worker" if health["name"] != node.name else health["state"]
            row = {"state": state, "restarts": health["restarts"]}
        except RunError as error:
            row = {"state": "lost", "why": str(error)}
        finally:
            client.close()
        rows.append({"name": node.name, "address": node.address, **row})
    return rows


def keygen(folder: str | os.PathLike[str], *names: str) -> dict[str, TlsFiles]:
    """Make an authority and certificates for a test.

    Args:
        folder: where they are written.
        *names: the parties and coordinators, one certificate each.
    """
    from mplang_http.keygen import make_certificates

    return make_certificates(Path(folder), names)


def _tell(pipe: int) -> Callable[[str], None]:
    def tell(address: str) -> None:
        with open(pipe, "w") as out:
            out.write(json.dumps({"address": address}) + "\n")

    return tell


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":  # as a local cluster starts it: the configuration, a pipe to tell by
    logging.basicConfig(level="WARNING", format="%(asctime)s %(name)s %(message)s")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    worker(sys.argv[1], ready=_tell(int(sys.argv[2])))
