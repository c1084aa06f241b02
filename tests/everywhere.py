"""A pytest plugin: whatever a test evaluates is also run in the other mode, and from its artifact.

``make test-everywhere`` enables it. Each program that a test evaluates with success is evaluated
again in both modes. If the results of one mode are the same twice (they are not where keys or
nonces are drawn) and no warning says that numbers are wrong, those of the other mode must be the
same, too. Then the program is packed, with the data sets of its simulator as files. When all tests
are over, new processes run all packed programs: in both modes on the simulator and on workers in
development, and as a whole on workers in production, which take no other programs.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from mplang_analysis import storage_of
from mplang_tables.scan import loaded
from mplang_testing.waiting import DEADLINE

import mplang_core as mp
from mplang_core.edsl.literals import read_args
from mplang_core.errors import DisclosureError, MPLangError, PrecisionWarning
from mplang_core.ext import skip_package
from mplang_core.feop import flatten
from mplang_core.ir import op_defs

HERE = pathlib.Path(__file__).parent
counts: Counter[str] = Counter()
numbers = itertools.count()
if "MPLANG_EVERYWHERE" not in os.environ:  # else it is of the process that started this one
    os.environ["MPLANG_EVERYWHERE"] = tempfile.mkdtemp(prefix="mplang-everywhere-")
folder = pathlib.Path(os.environ["MPLANG_EVERYWHERE"])
original = mp.evaluate


def leaves_of(host: Any, result: Any) -> list[Any]:
    """Return what can be fetched of a result: an array, or ``None``, per party and leaf."""
    found: list[Any] = []
    for leaf in flatten(result)[0]:
        try:
            data = mp.fetch(host, leaf)
        except DisclosureError:
            continue
        found += data if isinstance(data, list) else [data]
    return found


def same(one: list[Any], other: list[Any]) -> bool:
    """Compare; fixed-point numbers differ in their last bits."""

    def equal(a: Any, b: Any) -> bool:
        if a is None or b is None:
            return a is b
        if isinstance(a, np.ndarray) and a.dtype.kind == "f":
            return a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True)
        return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else bool(a == b)

    return len(one) == len(other) and all(map(equal, one, other))


@functools.wraps(original)
def evaluate(host: Any, program: Any, *args: Any, **options: Any) -> Any:
    """Evaluate as asked, then everywhere else."""
    result = original(host, program, *args, **options)
    if "listener" in options or not isinstance(
        host, mp.connect("simulator", host.cluster_spec).__class__
    ):
        return result
    rest = {key: value for key, value in options.items() if key != "mode"}
    runs, wrong = [], []
    for mode in ("standard", "standard", "launch", "launch"):
        with host.options(), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            runs.append(leaves_of(host, original(host, program, *args, **rest, mode=mode)))
        wrong.append(any(issubclass(each.category, PrecisionWarning) for each in told))
    counts["programs"] += 1
    assert any(wrong[:2]) == any(wrong[2:]), "numbers are told to be wrong in one mode only"
    if any(wrong):
        counts["have numbers that are told to be wrong"] += 1
        return result
    if not same(*runs[:2]) or not same(*runs[2:]):
        counts["draw random numbers"] += 1
        return result
    assert same(runs[0], runs[2]), f"the modes differ: {runs[0]} and {runs[2]}"
    pack(host, program, args, rest, runs[0])
    return result


def pack(host: Any, program: Any, args: Any, kwargs: Any, expected: list[Any]) -> None:
    """Write a program, its arguments and results for the other process."""
    if not all(map(_is_public, read_args(args, kwargs)[0])):
        counts["take values of their host"] += 1
        return
    try:
        traced = _traced(host, program, args, kwargs)
        data = mp.artifact.pack(traced, host.cluster_spec)
    except MPLangError as error:
        counts[f"not packed: {str(error)[:60]}"] += 1
        return
    arrays = [array for array in expected if array is not None]
    params = zip(read_args(args, kwargs)[0], traced.in_leaves, strict=True)
    given = [np.asarray(leaf) for leaf, param in params if isinstance(param, mp.MPType)]
    if not all(
        isinstance(array, np.ndarray) and array.dtype.isbuiltin == 1 for array in arrays + given
    ):
        counts["have other things than NumPy's own"] += 1
        return
    if any(use.action == "load" for use in storage_of(traced.program)):
        counts["load what was stored"] += 1
        return
    stem = folder / _name()
    stem.with_suffix(".json").write_text(json.dumps(data_of(host)))
    there = np.array([array is not None for array in expected])
    named = {f"in{i}": a for i, a in enumerate(given)} | {
        f"out{i}": a for i, a in enumerate(arrays)
    }
    np.savez(stem.with_suffix(".npz"), there=there, **named)
    stem.with_suffix(".mpl").write_bytes(data)
    counts["packed"] += 1


def data_of(host: Any) -> dict[str, dict[str, Any]]:
    """Return the data sets of a simulator as files, by party and by name, for workers."""
    found: dict[str, dict[str, Any]] = {}
    for party, mine in zip(host.names, host._data, strict=True):
        for name in getattr(mine, "_openers", ()):
            described = host.catalogue[party][name]
            with mine.open(name, described.type) as opened:
                value = loaded(opened.read(described.type))
                file = folder / f"data-{_name()}"
                source = f"{'npy' if isinstance(value, np.ndarray) else 'parquet'}:{file}"
                if isinstance(value, np.ndarray):
                    np.save(file.open("wb"), value)
                else:
                    pq.write_table(value, file)
            told = described.public()
            if "match" in told:  # columns that nobody reads are in no copy
                told["match"] = [each for each in told["match"] if each in value.column_names]
            found.setdefault(party, {})[name] = {**told, "source": source}
    if found:
        counts["read data sets"] += 1
    return found


def _name() -> str:
    """Return another name for a file of this process; safe for threads."""
    return f"{os.getpid()}-{next(numbers):06}"


def _is_public(leaf: Any) -> bool:
    return not isinstance(leaf, mp.MPObject)


def _traced(host: Any, program: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(program, mp.TracedFunction):
        return program
    compiled = program if isinstance(program, mp.CompiledFunction) else mp.compile(program)
    return compiled.trace(host, *args, **kwargs)


LEGS = {
    "the simulator": ("standard", "launch"),
    "workers in development": ("standard", "launch"),
    "workers in production": ("launch",),
}


class Hosts:
    """A host per cluster, of one leg."""

    def __init__(self, leg: str, stack: contextlib.ExitStack) -> None:
        self._leg, self._stack = leg, stack
        self.modes = LEGS[leg]
        self._hosts: dict[str, Any] = {}
        self._workers: dict[tuple[str, ...], list[str]] = {}

    @contextlib.contextmanager
    def of(self, cluster: mp.ClusterSpec, data: Any) -> Any:
        """Yield the host of a cluster; without data sets it serves all programs of the cluster."""
        if data:
            with contextlib.ExitStack() as stack:
                yield self._made(cluster, data, stack)
            return
        if repr(cluster) not in self._hosts:
            self._hosts[repr(cluster)] = self._made(cluster, data, self._stack)
        yield self._hosts[repr(cluster)]

    def _made(self, cluster: mp.ClusterSpec, data: Any, stack: contextlib.ExitStack) -> Any:
        if self._leg == "the simulator":
            return stack.enter_context(
                mp.connect("simulator", cluster, timeout=DEADLINE, data=data)
            )
        addresses = self._addresses(cluster, data, stack)
        made = mp.connect("http", cluster, timeout=DEADLINE, addresses=addresses)
        return stack.enter_context(made)

    def _addresses(
        self, cluster: mp.ClusterSpec, data: Any, stack: contextlib.ExitStack
    ) -> list[str]:
        from mplang_http import LocalCluster

        names = tuple(node.name for node in cluster.nodes)
        if data or names not in self._workers:
            options = {"insecure": True, "imports": ("toy", "mplang_testing.dialect")}
            mode = self._leg.removeprefix("workers in ")
            local = stack.enter_context(LocalCluster(names, mode=mode, data=data, **options))
            addresses = [node.address for node in local.spec.nodes]
            if data:
                return addresses
            self._workers[names] = addresses
        return self._workers[names]


def run_all(source: pathlib.Path, hosts: Hosts) -> None:
    """Run all packed programs of a folder, in the modes of a leg; in a process of its own."""
    for path in sorted(source.glob("*.mpl")):
        artifact = mp.artifact.load(path)
        cluster = artifact.cluster.spec()
        sets = json.loads(path.with_suffix(".json").read_text())
        with np.load(path.with_suffix(".npz"), allow_pickle=False) as data:
            outs = iter([data[f"out{i}"] for i in range(int(data["there"].sum()))])
            expected = [next(outs) if there else None for there in data["there"]]
            given = [data[name] for name in data.files if name.startswith("in")]
        with hosts.of(cluster, sets) as host:
            for mode in hosts.modes:
                with host.options(mode=mode):
                    values = [host.lift(array) for array in given]
                    found = leaves_of(host, _placed(host, artifact, cluster, values, mode))
                assert same(found, expected), (path, artifact.name, mode, found, expected)


def _placed(sim: Any, artifact: Any, cluster: Any, values: Any, mode: str) -> Any:
    from mplang_core.edsl.interp import InterpVar
    from mplang_core.edsl.traced_function import place_results

    traced = artifact.traced(cluster)
    results = sim.evaluate(traced.program, values)
    outs = [InterpVar(sim, v.type, r) for v, r in zip(traced.out_vars, results, strict=True)]
    return place_results(sim, outs, traced)


def pytest_configure(config: pytest.Config) -> None:
    """Take the place of ``mp.evaluate``; let the ops of the tests pass for the core's."""
    import toy  # noqa: F401

    skip_package(__name__)  # it is not a line of the test's
    for space in (op_defs, mp.registry.feops):
        for name in space.provided_by({"toy"}):
            space.add(name, space.get(name), provider="mplang-core")
    mp.evaluate = evaluate  # type: ignore[assignment]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Run what was packed in new processes, once all that run tests have ended."""
    if hasattr(session.config, "workerinput"):  # one of pytest-xdist's processes
        (folder / f"counts-{os.getpid()}.txt").write_text(json.dumps(counts))
        return
    for file in folder.glob("counts-*.txt"):
        counts.update(json.loads(file.read_text()))
    paths = os.pathsep.join([str(HERE), str(HERE / "semantics")])
    print(f"\neverywhere: {json.dumps(dict(counts), indent=1)}")
    environment = {**os.environ, "PYTHONPATH": paths}
    command = (sys.executable, __file__, str(folder))
    with ThreadPoolExecutor() as pool:
        run = functools.partial(subprocess.run, env=environment, capture_output=True, text=True)
        legs = list(pool.map(run, ((*command, leg) for leg in LEGS)))
    for (leg, modes), done in zip(LEGS.items(), legs, strict=True):
        if done.returncode:
            print(done.stderr[-4000:])
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        else:
            where = f"in a new process, in {' and '.join(modes)} mode, on {leg}"
            print(f"everywhere: {counts['packed']} artifacts ran {where}")
    if not any(done.returncode for done in legs):  # else they are there to be looked at
        shutil.rmtree(folder)


if __name__ == "__main__":
    import toy  # noqa: F401  (the ops of the tests)

    with contextlib.ExitStack() as stack:
        run_all(pathlib.Path(sys.argv[1]), Hosts(sys.argv[2], stack))
