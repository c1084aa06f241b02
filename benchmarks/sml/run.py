"""Run the tests of secretflow's machine learning library on mplang, and print a table.

The library (Apache-2.0, https://github.com/secretflow/sml) is not a dependency: it is installed
into a folder of its own, without its dependencies, or read from a checkout. Its tests run
unchanged, on libspu's own simulator, and on ABY3 and CHEETAH of mplang::

    python benchmarks/sml/run.py                             # the newest of the package index
    python benchmarks/sml/run.py ridge glm --checkout PATH   # files of a checkout, some of them

It takes hours. With ``--results FILE`` it may be stopped, and goes on with the tests that the file
lacks. A test that takes longer than the limit, or ends the process, is one result. What other
columns say chooses tests: ``--on CHEETAH --passed-on ABY3``, ``--on libspu --failed-on ABY3``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
COLUMNS = ("libspu", "ABY3", "CHEETAH")
PASSED, FAILED, BEGAN, TOO_LONG = "passed", "failed", "began", "too long"
MAX_SHOWN = 160  # characters of what mplang says
QUIET: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
Ended = dict[str, Any]  # how a test ended


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--checkout", type=Path, help="of sml; else sf-sml is installed")
    parser.add_argument("--results", type=Path, help="file of results, which are not run again")
    parser.add_argument("--seconds", type=int, default=60, help="that a test may take")
    parser.add_argument("--on", nargs="*", default=COLUMNS, choices=COLUMNS)
    parser.add_argument("--passed-on", choices=COLUMNS, help="run the tests that passed there")
    parser.add_argument("--failed-on", choices=COLUMNS, help="run the tests that failed there")
    parser.add_argument("--table", action="store_true", help="run nothing, print the table")
    parser.add_argument("names", nargs="*", default=[""], help="parts of the names of files")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = args.checkout or _installed(Path(folder))
        results = args.results or Path(folder, "results.jsonl")
        files = sorted(source.rglob("*_test.py"))
        chosen = [path for path in files if any(name in path.name for name in args.names)]
        wanted = None
        for where, outcome in ((args.passed_on, PASSED), (args.failed_on, FAILED)):
            if where is not None:
                ended = _found(results).get(where, {}).items()
                wanted = {test for test, each in ended if each["outcome"] == outcome}
        for on in () if args.table else args.on:
            for path in chosen:
                _run(source, path, on, args.seconds, results, wanted)
        found = _found(results)
    print(table({on: found.get(on, {}) for on in args.on}))


def _installed(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "-q", "--target", str(folder)]
    subprocess.run([*command, "sf-sml"], check=True)
    return folder


def _run(
    source: Path, path: Path, on: str, seconds: int, results: Path, wanted: set[str] | None
) -> None:
    """Run the tests of a file that have no result, until all have one.

    Args:
        source: the folder of the library.
        path: the file.
        on: the column.
        seconds: the limit of time of a test.
        results: the file of results.
        wanted: the tests to run; ``None`` means all.
    """
    name = str(path.relative_to(source))
    paths = [str(source), str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "ON": on, "TOLD": str(results.absolute())}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "adapter", "-c", os.devnull]
    command += ["-p", "no:cacheprovider", "--rootdir", str(source)]
    command += [f"--timeout={seconds}", "--timeout-method=thread"]
    while True:
        known = _found(results).get(on, {})
        chosen = [str(path)]
        if wanted is not None:
            left = sorted(test for test in wanted - known.keys() if test.startswith(f"{name}::"))
            if not left:
                return
            chosen = [str(source / test) for test in left]
        subprocess.run([*command, *chosen], env=environment, **QUIET, check=False)
        now = _found(results).get(on, {})
        unfinished = [test for test, ended in now.items() if ended["outcome"] == BEGAN]
        _close(results, on, unfinished)
        if not unfinished:
            break
    print(f"{on}: {name}", file=sys.stderr, flush=True)


def _close(results: Path, on: str, tests: list[str]) -> None:
    """Note that tests ended the process: by the limit of time, or by a crash."""
    with open(results, "a", encoding="utf-8") as file:
        for test in tests:
            line = {"on": on, "test": test, "outcome": TOO_LONG, "told": [], "why": ""}
            file.write(json.dumps(line) + "\n")


def _found(results: Path) -> dict[str, dict[str, Ended]]:
    """Return how each test ended, by what it ran on: the last line of each counts."""
    found: dict[str, dict[str, Ended]] = {}
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    for ended in map(json.loads, lines):
        found.setdefault(ended["on"], {})[ended["test"]] = ended
    return found


def table(found: dict[str, dict[str, Any]]) -> str:
    """Return how each test ended, in Markdown; below how many did how."""
    tests = sorted({test for ended in found.values() for test in ended})
    lines = [f"| test | {' | '.join(found)} | what mplang says |", "|---" * (len(found) + 2) + "|"]
    for test in tests:
        cells = [_cell(ended.get(test)) for ended in found.values()]
        lines.append(f"| `{test}` | {' | '.join(cells)} | {_said(test, found)} |")
    counts = [f"{on}: {_count(ended)}" for on, ended in found.items()]
    return "\n".join([*lines, "", *counts])


def _said(test: str, found: dict[str, dict[str, Any]]) -> str:
    texts: list[str] = [
        text for ended in found.values() for text in ended.get(test, {}).get("told", ())
    ]
    return texts[-1].partition("\n")[0].replace("|", "\\|")[:MAX_SHOWN] if texts else ""


def _count(ended: dict[str, Any]) -> str:
    outcomes = Counter(each["outcome"] for each in ended.values())
    return f"{len(ended)} begun, " + ", ".join(f"{n} {name}" for name, n in outcomes.items())


def _cell(ended: dict[str, Any] | None) -> str:
    if ended is None:
        return ""
    outcome: str = ended["outcome"]
    if outcome == FAILED:
        is_refused = any(text.startswith("TraceError") for text in ended["told"])
        return "refused" if is_refused else "**fails**"
    return f"{ended['seconds']:.0f} s" if outcome == PASSED else outcome


if __name__ == "__main__":
    main()
