"""Warm process of a worker: imports once what engines need, gives up what they must not have.

It is the fork server of engines (:mod:`mplang_http.process.fork_server`); it has no key, no log
file of its own, and no port.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from mplang_analysis import admission_checks
from mplang_confinement import give_up_files, give_up_privileges

from mplang_core.ext import ConfigError, PluginError, plugin_manager
from mplang_http.base import plugin_versions
from mplang_http.base.config import EngineConfig, PluginConfig
from mplang_http.base.logs import configure_logging
from mplang_http.engine import checker, engine
from mplang_http.engine.tls_preload import preload_tls
from mplang_http.mpc import process as mpc_process
from mplang_http.process.session_argument import EngineArgument
from mplang_http.wire import ipc
from mplang_http.wire.worker_info import worker_info

SPARES = 3  # children forked ahead: the engine, the checker and the MPC process of the next session

__all__ = ["SPARES", "EngineArgument", "preload", "prepare", "rehearse", "restrict", "run"]


def run(argument: dict[str, Any], file: int) -> None:
    """Run an engine, a checker, or an MPC process.

    Args:
        argument: an :class:`EngineArgument`, as ``checker`` a
            :class:`mplang_http.process.session_argument.SessionArgument`, or as ``mpc`` an
            :class:`EngineArgument`, as plain data.
        file: descriptor of the socket to the front.
    """
    if "checker" in argument:
        checker.run(argument["checker"], file)
    elif "mpc" in argument:
        mpc_process.run(argument["mpc"], file)
    else:
        engine.run(argument, file)


def rehearse(argument: dict[str, Any]) -> None:
    """Make an engine and an MPC process of nobody, ahead of those that are to be made here.

    Most of their time is spent on pages that are copied when they are first written to.

    Args:
        argument: the :class:`EngineConfig`, as ``config``.
    """
    given = EngineArgument(
        config=argument["config"], coordinator="", session="", rank=0, parties=["", "peer"],
        timeout=1.0, link="", tls=True,
    )  # fmt: skip
    ours, theirs = ipc.channel()
    with ours, theirs:
        for make in (engine.Engine, mpc_process.MpcProcess):
            make(given, ours)
    gc.collect()  # they refer to themselves


Plugins = Mapping[str, PluginConfig] | None


def restrict(plugins: Plugins) -> None:
    """Let this process import no plugins but these; import nothing.

    Raises:
        ConfigError: one is not installed in that version.
    """
    if plugins is None:
        return
    try:
        plugin_versions.restrict({name: each.version for name, each in plugins.items()})
    except PluginError as error:
        raise ConfigError(f"field 'plugins': {error}") from None


def check_installed(config: EngineConfig) -> None:
    """Check that what a configuration imports is installed; import nothing.

    Raises:
        ConfigError: a module is missing, or a plugin in that version.
    """
    for module in config.imports:
        try:
            installed = importlib.util.find_spec(module) is not None
        except (ImportError, ValueError):
            installed = False
        if not installed:
            raise ConfigError(
                f"WorkerConfig {config.name}: field 'imports': no module {module!r} is installed; "
                "a worker imports nothing from its working directory"
            )
    try:
        plugin_versions.check({k: each.version for k, each in (config.plugins or {}).items()})
    except PluginError as error:
        raise ConfigError(f"WorkerConfig {config.name}: field 'plugins': {error}") from None


def preload(plugins: Plugins) -> None:
    """Import the plugins, and what their kernels import when they first run.

    Args:
        plugins: those that may be imported; all if ``None``.

    Raises:
        ConfigError: one is not installed in that version.
    """
    restrict(plugins)
    plugin_manager.load_all()
    for _, module in plugin_manager.modules():
        tell = getattr(module, "mplang_preload", None)
        for name in tell() if tell is not None else ():
            with contextlib.suppress(ImportError):  # its kernels tell
                importlib.import_module(name)


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
            raise ConfigError(f"field 'plugins.{distribution}': {error}") from error
    if given.keys() - taken:
        names = ", ".join(sorted(given.keys() - taken))
        raise ConfigError(f"field 'plugins': no settings are taken by {names}")


def prepare(argument: dict[str, Any]) -> dict[str, Any]:
    """Prepare this process to fork engines.

    Args:
        argument: the :class:`EngineConfig`, as ``config``.

    Returns:
        The description of the worker.
    """
    config = EngineConfig(**argument["config"])
    if config.log_format == "json":  # what modules log when they are imported, too
        configure_logging(config.name, config.log_format, config.log_level)
    restrict(config.plugins)
    for module in config.imports:
        importlib.import_module(module)
    preload(config.plugins)
    _configure(config.plugins)
    admission_checks(config.admission)  # so that a wrong section keeps the worker from starting
    info = worker_info(config)
    preload_tls()
    give_up_privileges()
    give_up_files(config.readable)
    return info
