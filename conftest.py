"""What the tests share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import mplang_core as mp

ROOT = Path(__file__).parent

ENGINES = ("architecture", "artifact", "docs", "integration")
"""Folders of ``tests/`` whose tests depend on the plugins that are installed, each in its way."""

TOOLS = ("analysis", "cli", "passes", "testing", "trace")
"""Packages below ``plugins/`` that need no engine."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need no engine: they run once, by ``make test-core``.

    In :data:`ENGINES`, single tests have the mark themselves.
    """
    for item in items:
        top, folder, *_ = item.path.relative_to(ROOT).parts
        needs_none = (
            folder not in ENGINES if top == "tests" else folder in map("mplang_{}".format, TOOLS)
        )
        if top != "examples" and needs_none and item.get_closest_marker("needs") is None:
            item.add_marker("core")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    """Tell how a process of pytest-xdist ended that was not to end; xdist does not."""
    if error is not None:
        code = node.gateway._io.popen.wait(5)
        print(f"\n{node.gateway.id} ended with {code}: {error}", file=sys.stderr)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a plugin or a tool that is not in this environment."""
    for mark in item.iter_markers("needs"):
        missing = [f"mplang-{name}" for name in mark.args if find_spec(f"mplang_{name}") is None]
        missing += [tool for tool in mark.kwargs.get("tools", ()) if find_spec(tool) is None]
        if missing:
            pytest.skip(f"needs {', '.join(missing)}")


@pytest.fixture
def simulate() -> Iterator[Callable[..., mp.simp.SimpHost]]:
    """Make simulators that are closed after the test."""
    made: list[mp.simp.SimpHost] = []

    def make(parties: int | mp.ClusterSpec = 3, **options: object) -> mp.simp.SimpHost:
        cluster = mp.ClusterSpec.simple(parties) if isinstance(parties, int) else parties
        made.append(mp.Simulator(cluster, **{"timeout": 10.0, **options}))
        return made[-1]

    yield make
    for sim in made:
        sim.close()


@pytest.fixture(params=["standard", "launch"])
def mode(request: pytest.FixtureRequest) -> str:
    """Run the test in both modes."""
    return str(request.param)
