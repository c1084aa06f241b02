"""Status table of a cluster's workers."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

import msgspec
from mplang_analysis import Rows, WorkerMode

from mplang_core import ClusterSpec
from mplang_core.ext import RunError, printable
from mplang_http.base.expiry import WARN, days
from mplang_http.coordinator.client import WorkerClient
from mplang_http.tls.contexts import client_context
from mplang_http.tls.files import TlsFiles

MISSING = {
    "data": "a source of its data sets cannot be reached",
    "gate": "its rules or its log are broken",
    "sink": "the folder of its sink has no room",
}


class _Failures(msgspec.Struct):
    used: int
    limit: int


class _LogAlarm(msgspec.Struct):
    log: Literal["own", "peer"]
    party: str
    run: str = ""

    def text(self) -> str:
        """Return it in words."""
        party, shown = printable(self.party), f" (run {printable(self.run)})" if self.run else ""
        if self.log == "own":
            return f"its log was set back: {party} remembers more of it{shown}"
        return f"the log of {party} was set back{shown}"


class _Health(msgspec.Struct):
    """Shown fields of ``/health``."""

    name: str
    mode: WorkerMode
    state: Literal["starting", "ready", "draining", "ended"]
    crashes: int
    native: list[str] = []
    failures: _Failures | None = None
    gate: Literal["none", "open", "shut"] = "none"
    configuration: Literal["current", "refused"] = "current"
    missing: list[str] = []
    logs: list[_LogAlarm] = []
    expires: Annotated[datetime.datetime, msgspec.Meta(tz=True)] | None = None


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
        engines and MPC processes, ``native``: the native services of the coordinator's sessions,
        which run in MPC processes, ``failures``: the coordinator's failed runs
        there and their limit, as ``3 of 10``, ``gate``: ``open``, ``shut`` while its owner has to
        mend rules or log, ``none`` without rules, ``certificate``: when it expires, as ``in 29
        days``, and ``why`` it is lost, its gate shut, its changed configuration refused, a
        source or a disk not there, or a log that was set back, its own or a peer's.
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
            "native": "",
            "failures": "",
            "gate": "",
            "certificate": "",
            "why": "",
        }
        try:
            health = msgspec.convert(client.request("GET", "health"), _Health)
            mine = health.name == node.name
            row["state"] = health.state if mine else "another worker"
            row["mode"] = health.mode
            row["crashes"] = health.crashes
            row["native"] = ", ".join(health.native)
            row["gate"] = health.gate
            broken = [MISSING[each] for each in health.missing if each in MISSING]
            if health.gate == "shut":
                broken = list(dict.fromkeys(["its rules or its log are broken", *broken]))
            if health.configuration == "refused":
                broken.append("its changed configuration is wrong, so the previous one applies")
            broken += [each.text() for each in health.logs]
            if broken:
                row["why"] = f"{'; '.join(broken)}; its own log tells its owner why"
            if health.failures is not None:
                row["failures"] = f"{health.failures.used} of {health.failures.limit}"
            row["certificate"] = _expiry(health.expires)
        except RunError as error:
            row["why"] = str(error)
        except (msgspec.ValidationError, RecursionError):
            row["why"] = "it returned a response that this version cannot read"
        finally:
            client.close()
        rows.append(row)
    return rows


def _expiry(expires: datetime.datetime | None) -> str:
    if expires is None:
        return ""
    left = expires - datetime.datetime.now(datetime.UTC)
    return f"in {days(left)}" + (", renew it" if left < WARN else "")
