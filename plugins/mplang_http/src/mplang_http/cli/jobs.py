"""CLI commands ``mplang jobs`` and ``cancel``: of an analyst, and of the owner of a worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
import typer

from mplang_core import ClusterSpec
from mplang_core.ext import ConfigError, MPLangError, RunError
from mplang_http.cli.control import control_client
from mplang_http.cli.owner import AsJson, At, Config, Socket, Who, Why, show
from mplang_http.coordinator.client import WorkerClient
from mplang_http.tls.contexts import client_context
from mplang_http.tls.files import TlsFiles

PATIENCE = 5.0  # seconds of a worker to answer

Cluster = Annotated[
    str | None,
    typer.Option(help="Yours, on the workers of a YAML file; else all of your own worker."),
]
Tls = Annotated[
    str | None, typer.Option(help="Your certificate: certs/host, as mplang keygen makes it.")
]


class _Job(msgspec.Struct):
    run: str
    session: str
    state: str


class _State(msgspec.Struct):
    state: str


class _Jobs(msgspec.Struct):
    jobs: list[_Job]


def jobs(
    cluster: Cluster = None,
    tls: Tls = None,
    config: Config = "worker.yaml",
    control: Socket = None,
    at: At = None,
    as_json: AsJson = False,
) -> None:
    """List the runs that have not ended: yours, with --cluster, or all of your own worker."""
    if cluster is None:
        show(
            control_client(config, control, at, tls).request("GET", "jobs"),
            "nothing runs",
            as_json=as_json,
        )
        return
    rows, failures = list[Mapping[str, str]](), 0
    for client in _clients(cluster, tls):
        try:
            mine = msgspec.convert(client.request("GET", "v1", "jobs"), _Jobs).jobs
        except (MPLangError, msgspec.ValidationError) as error:
            typer.echo(_failure(client, error), err=True)
            failures += 1
            continue
        finally:
            client.close()
        rows += [{"run": e.run, "worker": client.name, "state": e.state} for e in mine]
    show(rows, "nothing of yours runs", as_json=as_json)
    if failures:
        raise typer.Exit(1)


def cancel(
    run: Annotated[str, typer.Argument(help="Its name, as mplang jobs lists it.")],
    cluster: Cluster = None,
    tls: Tls = None,
    config: Config = "worker.yaml",
    control: Socket = None,
    at: At = None,
    coordinator: Who = None,
    reason: Why = "",
) -> None:
    """End a run: yours, at all parties, with --cluster, or any at your worker, and its session."""
    if cluster is None:
        owner = control_client(config, control, at, tls)
        asked = {"coordinator": coordinator, "reason": reason or None}
        show(owner.request("DELETE", "jobs", run, **asked), "nothing has ended")
        return
    session, dash, _ = run.rpartition("-")
    if not dash:
        raise ConfigError(
            f"a run is called as its session, and -0, -1, …, and not {run!r}", code="C006"
        )
    failures, why = 0, reason or "its coordinator cancelled it"
    rows = list[dict[str, str]]()
    for client in _clients(cluster, tls):
        try:
            status = client.request("DELETE", "v1", "sessions", session, "jobs", run, reason=why)
            state = msgspec.convert(status, _State).state
        except (RunError, msgspec.ValidationError) as error:
            state, failures = _failure(client, error), failures + 1
        finally:
            client.close()
        rows.append({"run": run, "worker": client.name, "state": state})
    show(rows, "there are no workers")
    if failures:
        raise typer.Exit(1)


def _clients(cluster: str, tls: str | None) -> list[WorkerClient]:
    files = TlsFiles.of(tls)
    context = client_context(files, "http/1.1") if files is not None else None
    nodes = ClusterSpec.from_yaml(cluster).nodes
    return [WorkerClient(node.name, node.address, context, PATIENCE) for node in nodes]


def _failure(client: WorkerClient, error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError):
        return f"{client.name} returned a response that this version cannot read"
    return str(error)
