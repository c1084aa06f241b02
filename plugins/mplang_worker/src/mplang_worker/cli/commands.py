"""CLI commands of this package: ``mplang worker``, ``up`` and ``keygen``."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import yaml

from mplang_core import MPLangError
from mplang_core.ext import ConfigError
from mplang_worker.base.config import WorkerConfig, WorkerMode

if TYPE_CHECKING:
    from mplang_worker.cli.local import LocalCluster

MARK = "# written by mplang up\n"
MODES: dict[WorkerMode, str] = {
    "development": "standard mode and eager calls run, too; --mode production refuses them",
    "production": "whole programs only, no standard mode and no eager calls",
}


def worker(
    config: Annotated[str, typer.Option("--config", "-c", help="A YAML file; see the docs.")],
    log_format: Annotated[
        str | None, typer.Option(help="text or json, in place of the file's log_format.")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(help="debug, info, warning or error, in place of the file's.")
    ] = None,
) -> None:
    """Run one party's worker until it is interrupted, or drained by SIGTERM."""
    from mplang_worker.base.logs import configure_logging

    # a terminal has people before it; elsewhere a program collects the lines
    default = "text" if sys.stderr.isatty() else "json"
    as_json = (log_format or default) == "json"
    if as_json:
        configure_logging(None, "json", "info")  # for errors of the configuration
    try:
        made = _read_config(config, log_format, default, log_level)
        as_json = made.log_format == "json"
        configure_logging(made.name, made.log_format, made.log_level)
        _run_worker(made, config, lambda: _read_config(config, log_format, default, log_level))
    except (MPLangError, KeyboardInterrupt) as error:
        if not as_json:
            raise
        if isinstance(error, KeyboardInterrupt):
            raise typer.Exit(130) from None
        text = "; ".join(str(error).splitlines())  # a line of a log, of all wrong fields
        logging.getLogger("mplang.http").critical("%s (mplang explain %s)", text, error.code)
        raise typer.Exit(1) from None


def _read_config(
    path: str, log_format: str | None, default: str, log_level: str | None
) -> WorkerConfig:
    if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):
        raise ConfigError(
            "a worker imports nothing from its working directory, but python -m puts that first; "
            "start it as mplang worker, or by python -P -m",
            code="C015",
        )
    given = {"log_format": log_format, "log_level": log_level}
    made = WorkerConfig.from_yaml(path, **{k: v for k, v in given.items() if v is not None})
    if "log_format" not in made.model_fields_set:
        made = made.model_copy(update={"log_format": default})
    return made


def _run_worker(config: WorkerConfig, path: str, read: Callable[[], WorkerConfig]) -> None:
    from mplang_worker.base.logs import json_event
    from mplang_worker.cli.worker import ignore_hangup, run_worker
    from mplang_worker.front.live_config import ConfigFile
    from mplang_worker.front.warm_process import WARM
    from mplang_worker.process.end import end_process
    from mplang_worker.process.forks import ForkServer

    as_json = config.log_format == "json"

    def tell(address: str) -> None:
        text = f"worker {config.name} at {address}"
        typer.echo(json_event(config.name, text, address=address) if as_json else text)

    ignore_hangup()
    alone = threading.active_count() == 1 and "jax" not in sys.modules  # it has threads, too
    forks = ForkServer(WARM, here=alone, captured=as_json)  # before this process reads a key
    run_worker(config, forks=forks, ready=tell, file=ConfigFile(path, read))
    end_process(0)


def up(
    parties: Annotated[int, typer.Option("-n", "--parties", help="How many workers.")] = 3,
    out: Annotated[
        str, typer.Option("--out", "-o", help="The file that describes the cluster.")
    ] = "cluster.yaml",
    tls: Annotated[
        str | None, typer.Option(help="A folder for certificates; by default there are none.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Permit protocols that are for debugging only.")
    ] = False,
    mode: Annotated[
        WorkerMode,
        typer.Option(help="production: the workers take whole programs only, as on their own."),
    ] = "development",
) -> None:
    """Run a cluster on this machine until it is interrupted; start what ends again."""
    from mplang_worker.cli.local import LocalCluster

    if parties < 1:
        raise ConfigError(f"a cluster has at least one worker, got {parties}", code="C015")
    if Path(out).exists() and not Path(out).read_text(encoding="utf-8").startswith(MARK):
        raise ConfigError(
            f"{out} exists already, and is not of mplang up; --out names another file", code="C015"
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with (
        _kept_from_others(Path(out), "--out"),
        contextlib.nullcontext() if tls is None else _kept_from_others(Path(tls), "--tls"),
        LocalCluster(parties, tls=tls or False, insecure=insecure, mode=mode) as cluster,
    ):
        nodes = [{"name": node.name, "address": node.address} for node in cluster.spec.nodes]
        text = yaml.safe_dump({"nodes": nodes}, sort_keys=False)
        Path(out).write_text(MARK + text, encoding="utf-8")
        typer.echo(f"wrote {out}")
        typer.echo(f"mode: {mode}; {MODES[mode]}")
        mine = f" --tls {tls}/host" if tls else ""
        typer.echo(f"try: mplang run prog.py:fn --cluster {out}{mine}")
        _show_until_interrupted(cluster)


@contextlib.contextmanager
def _kept_from_others(path: Path, option: str) -> Iterator[None]:
    """Keep a file, or the folder of certificates, of a cluster that runs from another ``up``.

    Raises:
        ConfigError: it is that of a cluster that runs, which would be lost, or it cannot be opened.
    """
    try:
        if option == "--tls":
            path.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDONLY)
        else:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ConfigError(f"cannot open {path}: {error.strerror}", code="C015") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise ConfigError(
            f"{path} is in use by another mplang up, whose cluster runs; end that one, or take "
            f"another one by {option}",
            code="C015",
        ) from None
    try:
        yield
    finally:
        os.close(file)  # and so the lock


def _show_until_interrupted(cluster: LocalCluster) -> None:
    from mplang_http import cluster_status
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            try:
                for line in cluster.watch():
                    console.print(line, highlight=False, soft_wrap=True)
                live.update(cluster_status(cluster.spec, cluster.tls), refresh=True)
                time.sleep(1)
            except KeyboardInterrupt:
                return


def keygen(
    folder: Annotated[str, typer.Argument(help="Where the PEM files are written.")],
    names: Annotated[list[str], typer.Argument(help="Parties and coordinators, as alice bob.")],
    days: Annotated[float, typer.Option(help="For how long they are good.")] = 90,
) -> None:
    """Create a certificate authority and certificates, for tests."""
    from mplang_worker.tls.keygen import make_certificates

    made = make_certificates(Path(folder), names, days=days)
    for name, files in made.items():
        typer.echo(f"{name}: {files.cert} {files.key} {files.ca}")
