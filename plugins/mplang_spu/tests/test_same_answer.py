"""The same program gives the same answer: on each protocol, backend and run.

Integers, bools and orders are equal; floats are within the tolerance. Where the simulator says
that a number is off, nothing is promised, so nothing is compared. Each random program has a number;
``MPLANG_SAME_ANSWER=40:80`` runs some of them, on the same clusters.
"""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
from typing import Any

import jax
import numpy as np
import pytest
from functions import Function, functions
from hypothesis import HealthCheck, Phase, given, settings
from mplang_spu.config import FRACTION_BITS
from mplang_spu.reference_check.tolerance import compare

import mplang_core as mp
from mplang_core.errors import MPLangError, PrecisionWarning

MEMBERS = {"ABY3": 3, "CHEETAH": 2, "SEMI2K": 2}
STEP = 2.0 ** -FRACTION_BITS["FM128"]
PROGRAMS = 200
FIRST, END = map(int, os.environ.get("MPLANG_SAME_ANSWER", f"0:{PROGRAMS}").split(":"))
RUNS = 3
some = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def cluster(protocol: str) -> mp.ClusterSpec:
    names = [f"n{i}" for i in range(MEMBERS[protocol])]
    devices: dict[str, Any] = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(2)}
    devices["SP0"] = {"kind": "SPU", "members": names, "config": {"protocol": protocol}}
    return mp.ClusterSpec.from_dict({"nodes": [{"name": n} for n in names], "devices": devices})


@pytest.fixture(scope="module")
def simulators():
    with contextlib.ExitStack() as stack:
        yield {
            (p, "simulator"): stack.enter_context(mp.Simulator(cluster(p), timeout=120.0))
            for p in MEMBERS
        }


@pytest.fixture(scope="module")
def workers():
    from mplang_http import LocalCluster

    with contextlib.ExitStack() as stack:
        made = {}
        for protocol in ("ABY3", "CHEETAH"):  # workers refuse SEMI2K, whose first party sees all
            spec = stack.enter_context(LocalCluster(MEMBERS[protocol])).spec
            made[protocol, "workers"] = stack.enter_context(mp.connect("http", spec))
        yield made


def results(host: Any, function: Function, runs: int) -> list[list[np.ndarray]] | None:
    """Return the results of each run; ``None`` if it is refused, or a number is said to be off."""

    def program(*xs):
        return mp.reveal(mp.device("SP0")(function.fn)(*xs), to="P0")

    with warnings.catch_warnings(record=True) as told, mp.with_ctx(host):
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrecisionWarning)
        args = [mp.put(f"P{i % 2}", x) for i, x in enumerate(function.args)]
        try:
            compiled = mp.compile(program, cluster_spec=host.cluster_spec)
            compiled.trace(host, *args)
        except MPLangError:  # what is refused while tracing is refused everywhere
            return None
        made = [mp.fetch(host, mp.evaluate(host, compiled, *args)) for _ in range(runs)]
    return None if told else [[np.asarray(x) for x in jax.tree.leaves(each)] for each in made]


def check(hosts: Any, function: Function, runs: int = RUNS) -> bool:
    """Compare all runs with the first one; return whether there was something to compare."""
    first = None
    for name, host in hosts.items():
        found = results(host, function, runs)
        if found is None:
            return False
        first = first or found[0]
        for run, mine in enumerate(found):
            for i, (x, y) in enumerate(zip(mine, first, strict=True)):
                assert (x.dtype, x.shape) == (y.dtype, y.shape), (name, run, i)
                exact = y.astype(np.float64) if y.dtype.kind == "f" else y
                off = compare(x.astype(exact.dtype), exact, STEP)
                assert not off.is_wrong or off.vanishes, (name, run, i, off, function)
    return True


@functools.cache
def drawn() -> list[Function]:
    """Return the random programs, the same ones in each process."""
    made: list[Function] = []

    @settings(some, max_examples=PROGRAMS)
    @given(functions())
    def programs(function):
        made.append(function)

    programs()
    return made


def test_a_program_gives_the_same_answer_on_each_protocol_and_in_each_run(simulators):
    compared = []

    @settings(some, max_examples=3)
    @given(functions(lines=6))
    def programs(function):
        compared.append(check(simulators, function, runs=2))

    programs()
    assert sum(compared) >= 2


@pytest.fixture(scope="module")
def compared():
    """Whether each program that was run had something to compare: half of many have."""
    found: list[bool] = []
    yield found
    assert len(found) < 20 or sum(found) >= len(found) // 2, f"{sum(found)} of {len(found)}"


@pytest.mark.slow("a random program, three runs on each protocol, simulated and on workers")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(FIRST, END))
def test_so_do_two_hundred_also_on_workers(simulators, workers, compared, number):
    compared.append(check({**simulators, **workers}, drawn()[number]))
    if not compared[-1]:
        pytest.skip("it is refused, or the simulator says that a number is off")
