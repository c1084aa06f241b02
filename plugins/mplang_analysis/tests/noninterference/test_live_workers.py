"""What the table does not say, others do not see: on live workers in production, with mutual TLS.

Peers see how many messages of which size they get, the host what it fetches and is told.
``MPLANG_LIVE_PROGRAMS`` sets the number of programs; see ``make test-noninterference``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mplang_http import LocalCluster

from noninterference import experiment, planted
from noninterference.checking import check
from noninterference.experiment import live_of_seed
from noninterference.generator import ON_CHEETAH
from noninterference.link_logs import LinkLogs
from noninterference.live import Live

pytestmark = [pytest.mark.needs("crypto", "http", "ibis", "jax", "spu"), pytest.mark.once]

PROGRAMS = int(os.environ.get("MPLANG_LIVE_PROGRAMS", "2"))
BATCH = 10
FIRST = 4  # the first seed: the next are quick
NAMES = [node.name for node in ON_CHEETAH.nodes]


@contextlib.contextmanager
def connected(folder: Path, *imports: str) -> Iterator[Live]:
    """Start workers that log their frames, and yield a host of theirs."""
    here = str(Path(__file__).parents[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", here, prepend=os.pathsep)
        workers = LocalCluster(
            NAMES, tls=True, mode="production", log=str(folder), log_level="info",
            imports=("noninterference.own_data", "noninterference.recorded_links", *imports),
            quotas={"log": 1 << 40},
        )  # fmt: skip
    logs = contextlib.closing(LinkLogs(folder, NAMES))
    with workers, logs as read, Live(workers, ON_CHEETAH, read) as live:
        yield live


@pytest.fixture(scope="module")
def live(tmp_path_factory) -> Iterator[Live]:
    with connected(tmp_path_factory.mktemp("logs")) as made:
        yield made


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(i, marks=[pytest.mark.long(f"{BATCH} programs more")] * (i > 0))
        for i in range(0, PROGRAMS, BATCH)
    ],
)
def test_what_is_not_disclosed_makes_no_difference_to_others(live, start):
    seeds = range(FIRST + start, FIRST + min(start + BATCH, PROGRAMS))
    check(live_of_seed(seed, live) for seed in seeds)


@pytest.mark.long("finds a fault in some random programs")
@pytest.mark.parametrize("what", ["size", "predicate"])
def test_a_row_that_is_left_out_is_found(live, monkeypatch, what):
    monkeypatch.setattr(experiment, "follow", planted.without_rows(what))
    assert any(live_of_seed(seed, live).findings() for seed in range(FIRST, 100))


@pytest.mark.long("finds a fault in some random programs, on workers of its own")
def test_a_kernel_that_sends_more_for_some_values_is_found(tmp_path):
    with connected(tmp_path, "noninterference.leaking_kernel") as live:
        found = (f for seed in range(FIRST, 100) for f in live_of_seed(seed, live).findings())
        assert next(found).kind == "frames"
