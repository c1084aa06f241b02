"""Status table of a cluster's workers."""

from __future__ import annotations

import datetime

from mplang_analysis import Rows

from mplang_core import ClusterSpec
from mplang_core.ext import RunError
from mplang_http.certificates import WARN, days
from mplang_http.client import WorkerClient
from mplang_http.config import TlsFiles
from mplang_http.tls import client_context


def cluster_status(
    cluster: ClusterSpec, tls: TlsFiles | str | None = None, *, patience: float = 3.0
) -> Rows:
    """Query the status of each worker.

    Args:
        cluster: nodes with addresses.
        tls: certificates of the coordinator.
        patience: timeout of a response, in seconds.

    Returns:
        A row per worker: ``name``, ``address``, ``mode`` (``production`` or ``development``),
        ``state`` (``starting``, ``ready``, ``lost``, or ``another worker``), ``crashes`` of its
        engines, ``failures``: the coordinator's failed runs there and their limit, as ``3 of 10``,
        ``certificate``: when it expires, as ``in 29 days``, and ``why`` it is lost.
    """
    files = TlsFiles.of(tls)
    context = client_context(files, "http/1.1") if files is not None else None
    rows = Rows()
    for node in cluster.nodes:
        client = WorkerClient(node.name, node.address, context, patience)
        row = {
            "name": node.name,
            "address": node.address,
            "mode": "",
            "state": "lost",
            "crashes": 0,
            "failures": "",
            "certificate": "",
            "why": "",
        }
        try:
            health = client.request("GET", "health")
            mine = health["name"] == node.name
            row["state"] = health["state"] if mine else "another worker"
            row["mode"] = health["mode"]
            row["crashes"] = health["crashes"]
            failures = health["failures"]
            row["failures"] = "{used} of {limit}".format(**failures) if failures else ""
            row["certificate"] = _expiry(health["expires"])
        except RunError as error:
            row["why"] = str(error)
        finally:
            client.close()
        rows.append(row)
    return rows


def _expiry(expires: str | None) -> str:
    if expires is None:
        return ""
    left = datetime.datetime.fromisoformat(expires) - datetime.datetime.now(datetime.UTC)
    return f"in {days(left)}" + (", renew it" if left < WARN else "")
