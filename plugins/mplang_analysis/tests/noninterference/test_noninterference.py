"""What the table does not say, does not happen: on random programs and the shipped kernels.

``MPLANG_PROGRAMS`` sets the number of programs; see ``make test-noninterference``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mplang_http import LocalCluster

from noninterference.checking import check
from noninterference.experiment import of_seed, with_operands
from noninterference.generator import CLUSTER
from noninterference.lab import Lab
from noninterference.live import Live

pytestmark = [pytest.mark.needs("crypto", "http", "ibis", "jax", "spu"), pytest.mark.once]

PROGRAMS = int(os.environ.get("MPLANG_PROGRAMS", "120"))
BATCH = 40
ON_LINKS = 32  # programs whose messages go over TCP links of the HTTP backend
ON_WORKERS = 10  # programs on worker processes, whose SPU takes its time


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(i, marks=[pytest.mark.long(f"{BATCH} programs more")] * (i > 0))
        for i in range(0, PROGRAMS, BATCH)
    ],
)
def test_what_is_not_disclosed_makes_no_difference(lab, start):
    check(of_seed(seed, lab) for seed in range(start, min(start + BATCH, PROGRAMS)))


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(i, marks=[pytest.mark.long(f"{BATCH} programs more")] * (i > 0))
        for i in range(0, PROGRAMS // 8, BATCH)
    ],
)
def test_what_an_spu_takes_for_public_is_told(lab, start):
    check(with_operands(seed, lab) for seed in range(start, start + BATCH))


@pytest.fixture
def workers(monkeypatch) -> Iterator[LocalCluster]:
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    with LocalCluster(3, insecure=True, imports=("noninterference.own_data",)) as made:
        yield made


@pytest.mark.long(f"{ON_WORKERS} programs on three workers, some on SPU")
def test_what_is_fetched_of_worker_processes(workers):
    """Messages are not seen there: what the host fetches is, of real shares and ciphertexts."""
    with Live(workers) as live:
        check(of_seed(seed, live) for seed in range(0, 2 * ON_WORKERS, 2))


@pytest.mark.long(f"{ON_LINKS} programs over TCP")
def test_over_links():
    with Lab(CLUSTER, "links") as lab:
        check(of_seed(seed, lab) for seed in range(ON_LINKS))
