"""Tests under stress: again and again, beside three busy processes; ``make test-stress``.

    python tests/runner/stress.py --since REVISION   # what a change touches: five times
    python tests/runner/stress.py FILE_OR_TEST ...   # these: a hundred times
    python tests/runner/stress.py --all              # the whole suite: once

A test that fails here by chance fails there, sooner or later. A failure ends the command at once.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUSY = 3  # processes that only compute
ROUNDS = 5
TIMES = 100  # of tests that are named
MINUTES = 15.0
LEFT_OUT = "not slow and not long and not fuzz and not wheels"
HERE = ["-c", "pyproject.toml", "--rootdir", "."]  # of examples, too, which have files of their own
PARALLEL = ["-n", "3", "--max-worker-restart", "0"]


@contextlib.contextmanager
def busy(count: int = BUSY) -> Iterator[None]:
    """Keep the processors busy with processes that only compute."""
    code = "while True: pass"
    made = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for process in made:
            process.kill()
            process.wait()


def touched(since: str) -> list[str]:
    """Return the files of tests that changed since a revision, or import what changed."""
    names = _git("diff", "--name-only", since) + _git("ls-files", "--others", "--exclude-standard")
    changed = {ROOT / name for name in names if name.endswith(".py") and (ROOT / name).exists()}
    modules = {_module(file) for file in changed}
    tests = [
        file for file in map(Path, _git("ls-files", "*test_*.py")) if "template" not in file.parts
    ]
    return [
        str(file)
        for file in tests
        if (ROOT / file).exists() and (ROOT / file in changed or _imports(ROOT / file) & modules)
    ]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def _module(file: Path) -> str:
    """Return the name that tests import a file by."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    parts = parts[parts.index("src") + 1 :] if "src" in parts else parts
    parts = parts[parts.index("tests") + 1 :] if "tests" in parts else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                found.update(each.name for each in node.names)
            case ast.ImportFrom(module=str() as module):
                found.add(module)
                found.update(f"{module}.{each.name}" for each in node.names)
    return found


def repeat(commands: Sequence[Sequence[str]], times: int, minutes: float) -> int:
    """Run commands in turn, several times; return the exit code of the first that fails, or 0."""
    end = time.monotonic() + minutes * 60
    for number in range(1, times + 1):
        print(f"==> round {number} of {times}, beside {BUSY} busy processes", flush=True)
        for command in commands:
            try:
                done = subprocess.run(command, cwd=ROOT, timeout=end - time.monotonic())
            except subprocess.TimeoutExpired:
                print(f"==> stopped after {minutes:g} minutes, in round {number} of {times}")
                return 0
            if done.returncode not in (0, 5):  # 5: none of the tests is selected
                return done.returncode
    return 0


def main(arguments: Sequence[str]) -> int:
    """Run tests under stress; return 1 or so where one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--since", default="HEAD~1")
    given = parser.parse_args(arguments)
    pytest = [sys.executable, "-m", "pytest", "-q", *HERE, *PARALLEL]
    with busy():
        if given.all:
            return repeat([["make", "test"]], 1, 60)
        if given.tests:
            places = {name.partition("[")[0] for name in given.tests}
            only = [f"--only={name}" for name in given.tests]
            return repeat([[*pytest, "--count", str(TIMES), *only, *places]], 1, 60)
        files = touched(given.since)
        print(f"==> {len(files)} files of tests changed since {given.since}, or import what did")
        if not files:
            return 0
        chosen = [*pytest, "--dist", "loadfile", "-m", LEFT_OUT]
        return repeat([[*chosen, *files]], ROUNDS, MINUTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
