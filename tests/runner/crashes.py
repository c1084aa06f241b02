"""Plugin of pytest: a process of pytest-xdist that crashes makes the run fail, with its stacks.

Of such a process pytest-xdist says that it is "not properly terminated", if it sees it at all: what
the process forked may hold its pipe open, and one that crashes as it exits is not looked at.
"""

from __future__ import annotations

import contextlib
import faulthandler
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any

import pytest
from mplang_testing.waiting import DEADLINE
from xdist.workermanage import NodeManager

PATIENCE = 10.0  # seconds in which pytest-xdist has to notice itself that a process has ended

EXIT_SLOW = DEADLINE - 10  # seconds after which a process that exits writes its stacks

GIVEN_UP = 1
"""Exit code of a process that takes over 15 s to clean up after its tests: execnet ends it."""

CRASHES = pytest.StashKey[dict[str, str]]()
"""Why each process that crashed did, by its name."""

_NODES = pytest.StashKey[list[Any]]()


def _stacks(run: str, worker: str) -> Path:
    return Path(tempfile.gettempdir()) / f"mplang-{run}-{worker}.stacks"


@pytest.hookimpl(trylast=True)  # after pytest's own, whose file a process of pytest-xdist captures
def pytest_configure(config: pytest.Config) -> None:
    """Have a process of pytest-xdist write its stacks if it crashes, and give it time to exit."""
    config.stash[CRASHES], config.stash[_NODES] = {}, []
    NodeManager.EXIT_TIMEOUT = DEADLINE  # it is 10 s, too short beside busy processes
    _write_stacks(config)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Go on writing stacks while the process exits; pytest's own stops here."""
    file = _write_stacks(config)
    if file is not None:
        faulthandler.dump_traceback_later(EXIT_SLOW, file=file)


def _write_stacks(config: pytest.Config) -> IO[str] | None:
    given = getattr(config, "workerinput", None)
    if given is None:
        return None
    file = _stacks(given["testrunuid"], given["workerid"]).open("a", encoding="utf-8")
    faulthandler.enable(file)
    return file


@pytest.hookimpl(optionalhook=True)
def pytest_testnodeready(node: Any) -> None:
    """Watch a process, whose end may not be seen by the pipe to it."""
    node.config.stash[_NODES].append(node)
    threading.Thread(target=_watch, args=(node,), daemon=True).start()


def _watch(node: Any) -> None:
    _process(node).wait()
    threading.Event().wait(PATIENCE)
    if not node._down:
        node._down = True
        node.putevent(("errordown", {"node": node, "error": "its process has ended"}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    """Tell how a process ended before its tests."""
    if error is not None:
        _tell(node, str(error))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Fail a run of which a process crashed, even if it did so as it exited."""
    yield
    crashes = session.config.stash[CRASHES]
    for node in session.config.stash[_NODES]:
        if _process(node).poll() not in (0, GIVEN_UP) and node.gateway.id not in crashes:
            _tell(node, "after its tests")
        _stacks(node.workerinput["testrunuid"], node.gateway.id).unlink(missing_ok=True)
    if crashes:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def _process(node: Any) -> Any:
    return node.gateway._io.popen


def _tell(node: Any, why: str) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        _process(node).wait(PATIENCE)
    path = _stacks(node.workerinput["testrunuid"], node.gateway.id)
    stacks = path.read_text(encoding="utf-8") if path.exists() else ""
    text = f"{node.gateway.id} crashed, exit code {_process(node).poll()}: {why}"
    node.config.stash[CRASHES][node.gateway.id] = text
    print(f"\n{text}\n{stacks or 'It left no stacks.'}", file=sys.stderr)
