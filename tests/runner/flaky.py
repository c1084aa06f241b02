"""Plugin of pytest: a test that failed runs once more, alone; ``.ci/run`` uses it.

With ``--flaky FILE``, tests that failed run again at the end, each in a process of its own with
nothing beside it. If all pass, the run passes, and their names are appended to the file; a second
failure, a crash or an error of another kind is a failure of the run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from crashes import CRASHES

MOST = 10
"""Number of failed tests that may be chance; more are not."""

_FAILED = pytest.StashKey[dict[str, None]]()  # in their order


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--flaky",
        metavar="FILE",
        help="run a failed test once more, alone; append its name to FILE if it passes",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin with no failure."""
    config.stash[_FAILED] = {}
    if config.getoption("flaky"):
        config.pluginmanager.register(_Failures(config.stash[_FAILED]))


class _Failures:
    """Listener that collects the names of failed tests; the process that starts others has all."""

    def __init__(self, failed: dict[str, None]) -> None:
        self._failed = failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed[report.nodeid] = None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Run failed tests again, after the summary, if nothing else went wrong."""
    yield
    config, failed = session.config, list(session.config.stash[_FAILED])
    if hasattr(config, "workerinput") or session.exitstatus != pytest.ExitCode.TESTS_FAILED:
        return
    if not failed or len(failed) > MOST or config.stash[CRASHES]:
        return
    if all(_passes_alone(name, config) for name in failed):
        with Path(config.getoption("flaky")).open("a", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in failed)
        session.exitstatus = pytest.ExitCode.OK


def _passes_alone(name: str, config: pytest.Config) -> bool:
    print(f"\n==> once more, alone: {name}", flush=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0"]
    command += ["-c", str(config.inipath), "--rootdir", str(config.rootpath), name]
    done = subprocess.run(
        command, cwd=config.rootpath, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        print(done.stdout)
    return done.returncode == 0
