"""Warm process of a worker: imports once what engines need, gives up what they must not have.

It is the fork server of engines (:mod:`mplang_worker.process.fork_server`); it has no key, no log
file of its own, and no port.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
from typing import Any

import msgspec
from mplang_analysis import admission_checks
from mplang_confinement import give_up_privileges

from mplang_core.ext import ConfigError, plugin_manager
from mplang_worker.base.config import EngineConfig
from mplang_worker.base.logs import configure_logging
from mplang_worker.base.sections import GATE, section_of, section_packages
from mplang_worker.engine import checker, engine
from mplang_worker.engine.tls_preload import preload_tls
from mplang_worker.mpc import process as mpc_process
from mplang_worker.process.imports import Plugins, installed_natives, preload, restrict
from mplang_worker.process.own_folder import keep_for, keep_none
from mplang_worker.process.session_argument import EngineArgument, SessionArgument
from mplang_worker.wire import ipc
from mplang_worker.wire.worker_info import worker_info

SPARES = 3  # children forked ahead: the engine, the checker and the MPC process of the next session


def run(argument: dict[str, Any], file: int) -> None:
    """Run an engine, a checker, or an MPC process.

    Args:
        argument: as ``engine`` or ``mpc`` an :class:`EngineArgument`, or as ``checker`` a
            :class:`SessionArgument`, as plain data.
        file: descriptor of the socket to the front.
    """
    ((role, fields),) = argument.items()
    if role != "mpc":
        keep_none()
    if role == "checker":
        checker.run(msgspec.convert(fields, SessionArgument), file)
    else:
        process = mpc_process if role == "mpc" else engine
        process.run(msgspec.convert(fields, EngineArgument), file)


def rehearse(argument: dict[str, Any]) -> None:
    """Make an engine and an MPC process of nobody, ahead of those that are to be made here.

    Most of their time is spent on pages that are copied when they are first written to.

    Args:
        argument: the :class:`EngineConfig` in JSON, as ``config``.
    """
    config = EngineConfig.read(argument["config"])
    given = EngineArgument(
        config=argument["config"], coordinator="", session="", rank=0, parties=["", "peer"],
        timeout=1.0, link="", tls=True,
    )  # fmt: skip
    ours, theirs = ipc.channel()
    with ours, theirs:
        for make in (engine.Engine, mpc_process.MpcProcess):
            make(config, given, ours)
    gc.collect()  # they refer to themselves


def _preload_sections(plugins: Plugins) -> None:
    for name, package in section_packages().items():
        if name != GATE and (plugins is None or package in plugins):
            with contextlib.suppress(ConfigError):  # the front tells, where it has the section
                section_of(name)


def _configure(plugins: Plugins) -> None:
    """Give each plugin its section of the configuration.

    Raises:
        ConfigError: a plugin refuses its section, or takes none.
    """
    given = {name: each.settings for name, each in (plugins or {}).items() if each.settings}
    taken = set()
    for distribution, module in plugin_manager.modules():
        take = getattr(module, "mplang_configure", None)
        if take is None:
            continue
        try:
            take(given.get(distribution, {}))
            taken.add(distribution)
        except Exception as error:  # of code that is not ours
            raise ConfigError(f"field 'plugins.{distribution}': {error}", code="C003") from error
    if given.keys() - taken:
        names = ", ".join(sorted(given.keys() - taken))
        raise ConfigError(f"field 'plugins': no settings are taken by {names}", code="C003")


def prepare(argument: dict[str, Any]) -> dict[str, Any]:
    """Prepare this process to fork engines.

    Args:
        argument: the :class:`EngineConfig` in JSON, as ``config``, as ``memory`` the folder with
            the folders of MPC processes, and as ``file`` that of the worker's configuration, which
            plugins have as ``MPLANG_WORKER_FILE`` while they are configured.

    Returns:
        The description of the worker.
    """
    config = EngineConfig.read(argument["config"])
    os.environ["MPLANG_WORKER_FILE"] = argument["file"]
    if config.log_format == "json":  # what modules log when they are imported, too
        configure_logging(config.name, config.log_format, config.log_level)
    restrict(config.plugins)
    for module in config.imports:
        importlib.import_module(module)
    preload(config.plugins)
    _preload_sections(config.plugins)
    _configure(config.plugins)
    admission_checks(config.admission)  # so that a wrong section keeps the worker from starting
    info = worker_info(config)
    preload_tls()
    give_up_privileges()
    keep_for(installed_natives(), argument["memory"], config.readable)
    return info
