"""What the table does not say, does not happen: on random programs and the shipped kernels.

``MPLANG_PROGRAMS`` sets the number of programs; see ``make test-noninterference``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest

pytestmark = pytest.mark.needs("crypto", "http", "ibis", "jax", "simulator", "spu")
pytest.importorskip("mplang_spu")

from noninterference import experiment, planted  # noqa: E402 (it needs the engines)
from noninterference.checker import Finding  # noqa: E402
from noninterference.experiment import Experiment  # noqa: E402
from noninterference.generator import CLUSTER  # noqa: E402
from noninterference.lab import Lab  # noqa: E402

PROGRAMS = int(os.environ.get("MPLANG_PROGRAMS", "200"))
BATCH = 40
BATCHES = range(0, PROGRAMS, BATCH)
HONEST = range(0, 200, 2)
ON_LINKS = 32  # of them, also over TCP links


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(CLUSTER) as made:
        yield made


@pytest.fixture
def linked_lab() -> Iterator[Lab]:
    with Lab(CLUSTER, "links") as made:
        yield made


def of_seed(seed: int, lab: Lab, length: int | None = None) -> Experiment:
    """Return an experiment: modes, chains and liars take turns."""
    return Experiment(
        seed,
        lab,
        mode=("launch", "standard")[seed // 2 % 2],
        liar=seed // 4 % 3 if seed % 2 else None,
        length=length or (1, 2, 1, 3)[seed // 4 % 4],
    )


def check(seeds: Sequence[int], lab: Lab) -> None:
    """Run experiments; fail with all findings, and the source of the first."""
    failed: list[tuple[Experiment, list[Finding]]] = []
    for seed in seeds:
        made = of_seed(seed, lab)
        found = made.findings()
        if found:
            failed.append((made, found))
    if failed:
        shown = "\n".join(f"seed {made.seed}: {found[:3]}" for made, found in failed)
        source = "\n\n".join(source.text for source in failed[0][0].chain)
        pytest.fail(f"{len(failed)} of {len(seeds)} programs\n{shown}\n\n{source}")


@pytest.mark.parametrize("start", BATCHES)
def test_what_is_not_disclosed_makes_no_difference(lab, start):
    check(range(start, min(start + BATCH, PROGRAMS)), lab)


def test_over_links(linked_lab):
    check(range(ON_LINKS), linked_lab)


FAULTS = {
    "move left out": planted.without_a_row("move"),
    "index left out": planted.without_a_row("index"),
    "predicate left out": planted.without_a_row("predicate"),
    "failures left out": planted.without_rows("failure"),
    "source of a move dropped": planted.without_a_source("move"),
    "source of a predicate dropped": planted.without_a_source("predicate"),
    "source of a result dropped": planted.without_a_source("result"),
}
LOST = {
    "labels": planted.without_labels(),
    "sources of labels": planted.without_sources_of_others(),
    "history": planted.without_history(),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(lab, monkeypatch, fault):
    monkeypatch.setattr(experiment, "follow", FAULTS[fault])
    assert any(of_seed(seed, lab).findings() for seed in HONEST)


@pytest.mark.parametrize("what", LOST)
def test_a_loss_from_program_to_program_is_found(lab, monkeypatch, what):
    monkeypatch.setattr("mplang_analysis.memory.follow", LOST[what])
    monkeypatch.setattr(experiment, "follow", LOST[what])
    assert any(of_seed(seed, lab, length=3).findings() for seed in HONEST)
