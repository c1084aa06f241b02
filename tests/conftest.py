"""What the tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest

import mplang_core as mp


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a plugin that is not in this environment; see ``make test-core``."""
    for mark in item.iter_markers("needs"):
        missing = [name for name in mark.args if find_spec(f"mplang_{name}") is None]
        if missing:
            pytest.skip(f"needs mplang-{', mplang-'.join(missing)}")


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
