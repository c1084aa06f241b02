"""Run the tests of secretflow's machine learning library on mplang, and print a table.

The library (Apache-2.0, https://github.com/secretflow/sml) is no dependency: it is installed into a
folder of its own, without its dependencies, or read from a checkout. Its tests run unchanged, on
libspu's own simulator, and on ABY3 and CHEETAH of mplang::

    python benchmarks/sml/run.py                             # the newest of the package index
    python benchmarks/sml/run.py ridge glm --checkout PATH   # files of a checkout, some of them

It takes hours: a file whose tests take longer than the limit goes on with the next test.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
COLUMNS = ("libspu", "ABY3", "CHEETAH")
PASSED, TOO_LONG = "passed", "too long"


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--checkout", type=Path, help="of sml; else sf-sml is installed")
    parser.add_argument("--seconds", type=int, default=60, help="that a test may take")
    parser.add_argument("--on", nargs="*", default=COLUMNS, choices=COLUMNS)
    parser.add_argument("names", nargs="*", default=[""], help="parts of the names of files")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = args.checkout or _installed(Path(folder))
        files = sorted(source.rglob("*_test.py"))
        chosen = [path for path in files if any(name in path.name for name in args.names)]
        found = {on: _run(source, chosen, on, args.seconds) for on in args.on}
    print(table(found))


def _installed(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "-q", "--target", str(folder)]
    subprocess.run([*command, "sf-sml"], check=True)
    return folder


def _run(source: Path, files: list[Path], on: str, seconds: int) -> dict[str, Any]:
    """Run test files, each in a process of its own; return by test how it ended."""
    found: dict[str, Any] = {}
    for path in files:
        with tempfile.TemporaryDirectory() as folder:
            told = Path(folder, "told.jsonl")
            paths = [str(source), str(HERE), os.environ.get("PYTHONPATH", "")]
            environment = {**os.environ, "ON": on, "TOLD": str(told)}
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
            command = [sys.executable, "-m", "pytest", "-q", "-p", "adapter", "-c", os.devnull]
            command += ["-p", "no:cacheprovider", "--rootdir", str(source)]
            command += [f"--timeout={seconds}", str(path)]
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
            lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
        print(f"{on}: {path.relative_to(source)}: {len(lines)} tests", file=sys.stderr, flush=True)
        found |= {told["test"]: told for told in map(json.loads, lines)}
    return found


def table(found: dict[str, dict[str, Any]]) -> str:
    """Return how each test ended, in Markdown; below how many did how."""
    tests = sorted({test for ended in found.values() for test in ended})
    lines = [f"| test | {' | '.join(found)} | said |", "|---" * (len(found) + 2) + "|"]
    for test in tests:
        cells = [_cell(ended.get(test)) for ended in found.values()]
        said = [text for ended in found.values() for text in ended.get(test, {}).get("told", ())]
        short = said[-1].partition("\n")[0].replace("|", "\\|")[:160] if said else ""
        lines.append(f"| `{test}` | {' | '.join(cells)} | {short} |")
    counts = [
        f"{on}: {sum(each['outcome'] == PASSED for each in ended.values())} of {len(ended)} pass"
        for on, ended in found.items()
    ]
    return "\n".join([*lines, "", "; ".join(counts)])


def _cell(ended: dict[str, Any] | None) -> str:
    if ended is None:
        return ""
    if ended["outcome"] != PASSED:
        return TOO_LONG if "Timeout" in ended["why"] else "**fails**"
    return f"{ended['seconds']:.0f} s"


if __name__ == "__main__":
    main()
