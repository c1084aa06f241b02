"""Plugin of pytest: tests for libspu's own simulator run unchanged, on it or on mplang.

Tests call ``spu.utils.simulation.sim_jax``, which this replaces. The environment says how: ``ON``
is ``libspu``, or the protocol of an SPU of mplang; a line of JSON per test goes to the file
``TOLD``.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import spu.utils.simulation as theirs

import mplang_core as mp

LIBSPU = "libspu"
ON, TOLD = os.environ.get("ON", LIBSPU), os.environ.get("TOLD", "told.jsonl")
MEMBERS = {"ABY3": 3, "CHEETAH": 2}

_told: list[str] = []  # by warnings and errors of mplang, in the test that runs


@functools.cache
def _simulator(protocol: str) -> mp.Simulator:
    members = list(range(MEMBERS[protocol]))
    devices: dict[str, Any] = {f"P{i}": {"kind": "PPU", "members": [i]} for i in members}
    devices["SP0"] = {"kind": "SPU", "members": members, "config": {"protocol": protocol}}
    spec = mp.ClusterSpec.from_dict({"nodes": [{}] * len(members), "devices": devices})
    return mp.Simulator(spec, timeout=600).__enter__()


def sim_jax(
    sim: Any, fun: Callable[..., Any], static_argnums: int | Sequence[int] = (), copts: Any = None
) -> Callable[..., Any]:
    """Return a function that runs on an SPU of mplang; see ``spu.utils.simulation.sim_jax``."""
    numbers = (static_argnums,) if isinstance(static_argnums, int) else static_argnums

    def run(*args: Any, **kwargs: Any) -> Any:
        static = {i % len(args) for i in numbers}
        given = {i: arg for i, arg in enumerate(args) if i not in static}
        leaves, nest = jax.tree_util.tree_flatten((given, kwargs))
        results: list[Any] = []

        def on_leaves(*leaves: Any) -> list[Any]:
            given, kwargs = jax.tree_util.tree_unflatten(nest, leaves)
            out = fun(*[given.get(i, arg) for i, arg in enumerate(args)], **kwargs)
            flat, of_results = jax.tree_util.tree_flatten(out)
            results[:] = [of_results]
            return list(flat)

        with _noting():
            found = _run(_simulator(ON), on_leaves, [np.array(jnp.array(leaf)) for leaf in leaves])
        return jax.tree_util.tree_unflatten(results[0], found)

    run.pphlo = ""  # type: ignore[attr-defined]  # which some tests print
    return run


def _run(sim: mp.Simulator, fn: Callable[..., Any], arrays: list[Any]) -> list[Any]:
    with mp.with_ctx(sim):
        values = [mp.put("P0", array) for array in arrays]

    def program(*values: Any) -> list[Any]:
        return [mp.reveal(out, to="P0") for out in mp.device("SP0")(fn)(*values)]

    return [np.asarray(each) for each in mp.fetch(sim, mp.evaluate(sim, program, *values))]


@contextlib.contextmanager
def _noting() -> Iterator[None]:
    """Note what mplang warns of and refuses."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except mp.errors.MPLangError as error:
            _told.append(f"{type(error).__name__}: {error}")
            raise
        finally:
            ours = [each for each in caught if each.category.__module__.startswith("mplang")]
            _told.extend(f"{each.category.__name__}: {each.message}" for each in ours)


if ON != LIBSPU:
    theirs.sim_jax = sim_jax


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out tests that have a result."""
    with contextlib.suppress(FileNotFoundError), open(TOLD, encoding="utf-8") as file:
        known = {line["test"] for line in map(json.loads, file) if line["on"] == ON}
        items[:] = [item for item in items if item.nodeid not in known]


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note that a test began: it may end the process."""
    _note({"test": nodeid, "outcome": "began"})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, Any]:
    """Note how a test ended."""
    report = yield
    if report.when == "call" or not report.passed:
        line = {"test": item.nodeid, "outcome": report.outcome, "seconds": report.duration}
        line |= {"told": list(dict.fromkeys(_told)), "why": str(report.longrepr or "")[-500:]}
        _note(line)
        _told.clear()
    return report


def _note(line: dict[str, Any]) -> None:
    with open(TOLD, "a", encoding="utf-8") as file:
        file.write(json.dumps({"on": ON, **line}) + "\n")
