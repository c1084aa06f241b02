"""Fork servers that the local clusters of one process of pytest share.

To import what engines need takes two seconds, and there are hundreds of clusters. A cluster shares
the server of one before if it has the same plugins, environment, folder and output. Else it gets
a server that is forked from a :class:`~nursery.Nursery`.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mplang_testing import probe
from mplang_worker.cli import local
from mplang_worker.process.forks import Child, ForkServer
from nursery import SEED, Nursery

KEPT = 3  # servers that nobody uses now

OURS = ("MPLANG_", "PYTEST_", "PYTHONPATH", "XDG_")
"""What the names of variables begin with that no module reads when it is imported."""

_ask_anew = probe.ask
_BEGAN = dict(os.environ)
_servers: dict[str, SharedServer] = {}  # the one that was used last is last


class ForkedServer(ForkServer):
    """A fork server that is a fork itself."""

    def _start(self, modules: Sequence[str], number: int, printed: int | None) -> Any:
        assert printed is None
        return _nursery().start(modules, number)


@functools.cache
def _nursery() -> Nursery:
    return Nursery(_BEGAN)


def _fits(environment: Mapping[str, str]) -> bool:
    """Return whether a nursery would have imported the same in an environment."""
    path = environment.get("PYTHONPATH", "")
    starts = any(os.path.exists(f"{each}/sitecustomize.py") for each in path.split(os.pathsep))
    longer = path.endswith(_BEGAN.get("PYTHONPATH", ""))
    return longer and not starts and _others(environment) == _others(_BEGAN)


def _others(environment: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in environment.items() if not k.startswith(OURS)}


class SharedServer:
    """A server, and how many clusters use it."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self.real = (ForkedServer if _fits(os.environ) else ForkServer)(*modules)
        self.users = 0


class Lease:
    """Use of a server by one cluster; its methods are those of a :class:`ForkServer`."""

    def __init__(self, *modules: str) -> None:
        self._modules = modules
        self._server: SharedServer | None = None

    def prepare(self, argument: Any) -> None:
        key = json.dumps([self._modules, argument, _surroundings()], sort_keys=True)
        found = _servers.pop(key, None)
        if found is None or not found.real.check():
            found = SharedServer(self._modules)
            try:
                found.real.prepare(argument)
            except BaseException:
                found.real.close()
                raise
        _servers[key] = self._server = found
        found.users += 1
        unused = [each for each in _servers if not _servers[each].users]
        for each in unused[:-KEPT]:
            _servers.pop(each).real.close()

    def fork(self, argument: Any, file: int, timeout: float) -> Child:
        assert self._server is not None
        return self._server.real.fork(argument, file, timeout)

    def close(self) -> None:
        if self._server is not None:
            self._server.users -= 1
            self._server = None


def _surroundings() -> list[Any]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    printed = [[found.st_dev, found.st_ino] for found in map(os.fstat, (1, 2))]
    return [environment, os.getcwd(), printed]


def _ask(question: str, *args: Any, seed: int = 0, timeout: float = probe.TIMEOUT) -> Any:
    """Ask in a fork what is asked in a process with another hash seed, which imports engines."""
    if seed == SEED and _fits(os.environ):
        return _nursery().ask(question, args, timeout)
    return _ask_anew(question, *args, seed=seed, timeout=timeout)


def share() -> None:
    """Have local clusters of this process share fork servers, and suites of the kit its nursery."""
    local.ForkServer = Lease  # type: ignore[assignment,misc]
    probe.ask = _ask


def close() -> None:
    """End all servers."""
    while _servers:
        _servers.popitem()[1].real.close()
    if _nursery.cache_info().currsize:
        _nursery().close()
        _nursery.cache_clear()
