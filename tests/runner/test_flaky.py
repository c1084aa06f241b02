"""What .ci/run adds to pytest: failed tests run once more, alone; crashes tell their stacks."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mplang_testing.waiting import DEADLINE

HERE = Path(__file__).parent

PASSES = "def test_passes(): pass\n"
ONCE = """
import pathlib
def test_fails_once(tmp_path_factory):
    mark = pathlib.Path(__file__).with_name("mark")
    failed = mark.exists()
    mark.touch()
    assert failed
"""
ALWAYS = "def test_fails(): assert False\n"
ABORTS = "import os\ndef test_aborts(): os.abort()\n"
AT_EXIT = "import atexit, os\ndef test_aborts_later(): atexit.register(os.abort)\n"
ENDLESS = """
import atexit, threading
def test_does_not_exit(): atexit.register(threading.Event().wait)
"""
SILENT = """
import os
def test_vanishes():
    if os.fork() == 0:  # it holds the pipe to pytest open
        open("over").close()
    os._exit(7)
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs tests; it returns the exit code, the text and flaky tests."""

    def run(*modules: str, parallel: int = 0) -> tuple[int, str, list[str]]:
        for i, module in enumerate(modules):
            (tmp_path / f"test_{i}.py").write_text(module)
        (tmp_path / "pytest.ini").write_text("[pytest]")
        (tmp_path / "flaky").touch()
        os.mkfifo(tmp_path / "over")
        options = ["-p", "crashes", "-p", "flaky", "--flaky", str(tmp_path / "flaky")]
        options += ["-n", str(parallel), "--max-worker-restart=0"]
        with (tmp_path / "told").open("w") as told:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options], cwd=tmp_path, stdout=told,
                stderr=told, env={**os.environ, "PYTHONPATH": str(HERE)},
            )  # fmt: skip
        try:
            code = process.wait(4 * DEADLINE)
        finally:
            with contextlib.suppress(OSError):  # nobody reads it
                os.close(os.open(tmp_path / "over", os.O_WRONLY | os.O_NONBLOCK))
        text = (tmp_path / "told").read_text()
        return code, text, (tmp_path / "flaky").read_text().split()

    return run


@pytest.mark.parametrize("parallel", [0, 2])
def test_a_test_that_fails_once_is_named_and_the_run_passes(run, parallel):
    code, text, flaky = run(PASSES, ONCE, parallel=parallel)
    assert (code, flaky) == (0, ["test_1.py::test_fails_once"]), text
    assert "==> once more, alone: test_1.py::test_fails_once" in text


def test_a_test_that_fails_twice_fails_the_run(run):
    code, text, flaky = run(PASSES, ONCE, ALWAYS)
    assert (code, flaky) == (1, []), text


def test_many_failures_are_no_chance(run):
    code, text, flaky = run(*[ONCE.replace("mark", f"mark{i}") for i in range(11)])
    assert (code, flaky) == (1, []), text
    assert "once more" not in text


def test_an_error_in_a_module_is_no_chance(run):
    code, _, flaky = run(PASSES, "1 / 0\n")
    assert (code, flaky) == (2, [])


@pytest.mark.parametrize(
    ("module", "told"),
    [
        (ABORTS, "crashed, exit code -6: Not properly terminated\nFatal Python error: Aborted"),
        (AT_EXIT, "crashed, exit code -6: after its tests\nFatal Python error: Aborted"),
        pytest.param(
            ENDLESS, "crashed, exit code -9: after its tests\nTimeout (0:00:50)!",
            marks=[
                pytest.mark.long("a process has a minute to exit"),
                pytest.mark.timeout(600),
            ],
        ),
        pytest.param(
            SILENT, "crashed, exit code 7: its process has ended\nIt left no stacks.",
            marks=[
                pytest.mark.long("pytest-xdist has ten seconds to see it, and a minute to end"),
                pytest.mark.timeout(600),
            ],
        ),
    ],
    ids=["in a test", "at exit", "without an end", "without a word"],
)  # fmt: skip
def test_a_crash_of_a_process_fails_the_run_with_its_stacks(run, module, told):
    code, text, flaky = run(PASSES, module, parallel=2)
    assert (code, flaky) == (3, []), text
    assert told in text
