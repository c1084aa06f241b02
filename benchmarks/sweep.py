"""Sweep of JAX's functions on SPU: which run, which are refused and why, and which are wrong.

``make sweep`` runs all in child processes, of which one may die: its cell is then recorded as
such, and another goes on after it. What was measured before of the same sources, in a folder of
``--results`` that is named by their digest, is not run again. So all can be run in slices:

    python benchmarks/sweep.py --minutes 50 --processes 2
    python benchmarks/sweep.py --shapes empty --dtypes bool --every 20 --part 3
    python benchmarks/sweep.py --only jnp.sort --protocols CHEETAH --hosts workers
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
TESTS = ROOT / "plugins/mplang_spu/tests"
sys.path[:0] = [str(TESTS)]

import sweep_inputs  # noqa: E402
from sweep_calls import part_of  # noqa: E402

MEMBERS = {"ABY3": 3, "CHEETAH": 2}
HOSTS = ("simulator", "workers")
PER_PROCESS = 300
"""Units that a process runs before another takes over: libspu keeps memory of each."""
PATIENCE = 240
"""Seconds without a result after which a process is ended, and its unit is ``t``."""

Key = tuple[str, str, str, str, str]  # host, protocol, shape, dtype, name


def order(options: argparse.Namespace) -> Iterator[tuple[str, str, str, str]]:
    """Generate what the functions are run with, in rounds: what tells most is first."""
    for shape in options.shapes:
        for host in options.hosts:
            for protocol in options.protocols:
                for dtype in options.dtypes:
                    yield host, protocol, shape, dtype


# -- results


def read(path: pathlib.Path) -> tuple[dict[Key, dict[str, Any]], Key | None]:
    """Return what was measured, and the unit that was begun last and did not end."""
    found: dict[Key, dict[str, Any]] = {}
    begun = None
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            key = tuple(line["unit"])
            if line.get("begun"):
                begun = key
                continue
            found[key] = line
            begun = None if begun == key else begun
    return found, begun


def results(folder: pathlib.Path) -> dict[Key, dict[str, Any]]:
    """Return what all processes measured."""
    found: dict[Key, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        found |= read(path)[0]
    return found


def write(path: pathlib.Path, **line: Any) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def content() -> str:
    """Return the digest of the sources on which results depend."""
    names = ("mplang_core/**/*.py", "plugins/*/src/**/*.py", "plugins/mplang_spu/tests/sweep_*.py")
    found = sorted(path for name in names for path in ROOT.glob(name))
    versions = [importlib.metadata.version(name) for name in ("jax", "jaxlib", "spu")]
    digest = hashlib.sha256("\n".join(versions).encode())
    for path in found:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# -- a process that measures


def is_mine(name: str, options: argparse.Namespace) -> bool:
    if options.only and not any(name.startswith(each) for each in options.only):
        return False
    share = zlib.crc32(name.rpartition(".")[2].encode()) % options.processes
    return bool(share == options.share and part_of(name, options.every) == options.part)


def is_on(host: str, name: str) -> bool:
    """Return whether a function is run there; workers run the same code, so a twentieth will do."""
    return host == "simulator" or part_of(name, 20) == 0


def child(options: argparse.Namespace) -> bool:
    """Run units until there are enough; return whether some are left."""
    import sweep_calls
    import sweep_cells

    warnings.simplefilter("ignore")
    path = options.results / f"{options.share}.jsonl"
    done = results(options.results)
    of_code = {(*u[:2], line["code"]): line for u, line in done.items() if line.get("code")}
    mine = [f for f in sweep_calls.functions() if is_mine(f.name, options)]
    ways = Ways(options.results / f"{options.share}.ways")
    ran = 0
    with Hosts() as hosts:
        for host, protocol, shape, dtype in order(options):
            for function in mine:
                key = (host, protocol, shape, dtype, function.name)
                if key in done or not is_on(host, function.name):
                    continue
                if ran == options.units or time.monotonic() > options.until:
                    return time.monotonic() <= options.until
                write(path, unit=key, begun=True)
                way = ways.of(function)
                unit = way and sweep_cells.prepare(way[1], way[0], dtype, shape)
                if not unit:
                    write(path, unit=key, letters="-" if way else "")
                    continue
                code = (host, protocol, unit.key)
                if code in of_code:
                    write(path, **{**of_code[code], "unit": key, "like": of_code[code]["unit"]})
                    continue
                line = asdict(sweep_cells.run(hosts.of(host, protocol), unit))
                of_code[code] = {**line, "unit": key, "code": unit.key}
                write(path, **of_code[code])
                ran += 1
    return False


class Ways:
    """How functions are called; kept in a file, since to find it takes long."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def of(self, function: Any) -> Any:
        """Return the number of arrays and the call; ``None`` if JAX takes none."""
        import sweep_calls

        if function.name not in self._known:
            self._known[function.name] = sweep_calls.way_of(function)
            self._path.write_text(json.dumps(self._known), encoding="utf-8")
        way = self._known[function.name]
        return None if way is None else sweep_calls.call_of(function, way)


class Hosts(contextlib.ExitStack):
    """Simulators and local clusters, opened once."""

    def of(self, host: str, protocol: str) -> Any:
        """Return a host."""
        import mplang_core as mp

        self.made: dict[tuple[str, str], Any] = getattr(self, "made", {})
        if (host, protocol) not in self.made:
            members = MEMBERS[protocol]
            if host == "simulator":
                opened = mp.Simulator(mp.ClusterSpec.simple(members), timeout=120)
            else:
                from mplang_http import LocalCluster

                workers = self.enter_context(LocalCluster(members))
                opened = mp.connect("http", workers.spec)
            self.made[host, protocol] = self.enter_context(opened)
        return self.made[host, protocol]


# -- the process that watches


def parent(options: argparse.Namespace) -> None:
    """Keep processes at work until all is measured or the time is over."""
    options.results.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + options.minutes * 60
    children: dict[int, Any] = {i: _start(i, until, options) for i in range(options.processes)}
    while children:
        time.sleep(1)
        for share, process in list(children.items()):
            path = options.results / f"{share}.jsonl"
            status = process.poll()
            quiet = time.time() - path.stat().st_mtime if path.exists() else 0
            if status is None and quiet < PATIENCE:
                continue
            if status is None:
                process.kill()
                process.wait()
            if status == 0:
                del children[share]
                continue
            begun = read(path)[1]
            if status != MORE and begun:
                letter = "t" if status is None else "k"
                write(path, unit=begun, letters=letter, details={letter: f"status {status}"})
            children[share] = _start(share, until, options)


MORE = 75


def report(options: argparse.Namespace) -> int:
    """Print what was found; return 1 if something is worse than in the record."""
    import sweep_report

    found = results(options.results)
    print(sweep_report.counts(found))
    print(sweep_report.wrong(found, "R!xktU"))
    worse = sweep_report.lost(sweep_report.read_record(), found)
    print(*worse, f"{len(worse)} are worse than in the record", sep="\n")
    if options.write:
        whole = {**sweep_report.read_record(), **found}
        sweep_report.write_record(whole)
        sweep_report.write_page(whole)
    return int(bool(worse) and not options.write)


def _start(share: int, until: float, options: argparse.Namespace) -> Any:
    results = ["--results", str(options.results)]
    arguments = [*sys.argv[1:], *results, "--share", str(share), "--until", str(until)]
    return subprocess.Popen([sys.executable, __file__, *arguments])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path(".sweep"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--units", type=int, default=PER_PROCESS)
    parser.add_argument("--every", type=int, default=1, help="run one in so many functions")
    parser.add_argument("--part", type=int, default=0, help="which of them")
    parser.add_argument("--only", nargs="*", default=[], help="how names of functions begin")
    shapes = [*sweep_inputs.SHAPES, *sweep_inputs.SQUARE]
    parser.add_argument("--shapes", nargs="*", default=shapes)
    parser.add_argument("--dtypes", nargs="*", default=sweep_inputs.DTYPES)
    parser.add_argument("--protocols", nargs="*", default=list(MEMBERS))
    parser.add_argument("--hosts", nargs="*", default=list(HOSTS))
    parser.add_argument("--write", action="store_true", help="write the record and the tables")
    parser.add_argument("--share", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.share is None:
        options.results /= content()
        parent(options)
        sys.exit(report(options))
    if child(options):
        sys.exit(MORE)


if __name__ == "__main__":
    main()
