"""First steps of the processes of a session: limits, confinement, and a name."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Collection
from typing import NoReturn

from mplang_confinement import give_up_calls

from mplang_worker.base.config import EngineConfig
from mplang_worker.base.logs import configure_logging
from mplang_worker.process.name import NICE, name_process
from mplang_worker.process.session_argument import EngineArgument

SWITCH_INTERVAL = 0.0005  # seconds that a thread holds the GIL while others wait for it
log = logging.getLogger("mplang.http.engine")


def run_process(
    name: str,
    argument: EngineArgument,
    file: int,
    serve: Callable[[EngineConfig, socket.socket], None],
    confine: Callable[[EngineConfig], Collection[str]] = lambda config: (),
) -> NoReturn:
    """Confine this process, serve the front until that ends the session, and exit.

    Args:
        name: of the process, as ps shows it.
        argument: what it is started with.
        file: descriptor of the socket to the front.
        serve: serves the front.
        confine: gives up files, and returns the system calls that it keeps, of those that are
            given up.
    """
    name_process(name)
    os.nice(NICE)  # so that the front, which says that the worker lives, is not kept waiting
    sock = socket.socket(fileno=file)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of a whole group; the front decides
    sys.setswitchinterval(SWITCH_INTERVAL)
    faulthandler.enable()  # so that the log has the stack of native code that crashed
    config = EngineConfig.read(argument.config)
    configure_logging(config.name, config.log_format, config.log_level)
    try:
        config.limits.apply(argument.cores)
        give_up_calls(confine(config))
        with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
            serve(config, sock)
    except BaseException:
        log.exception("%s ends", name)
        os._exit(1)
    os._exit(0)  # without waiting for what still runs
