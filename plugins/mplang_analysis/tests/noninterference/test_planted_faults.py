"""A fault of the table, or of labels, is found within 200 programs."""

from __future__ import annotations

import sys

import pytest

from noninterference import experiment, planted
from noninterference.experiment import Experiment, of_seed, with_operands
from noninterference.generator import CLUSTER
from noninterference.lab import Lab

pytestmark = [pytest.mark.needs("crypto", "http", "ibis", "jax", "spu"), pytest.mark.once]

HONEST = [100, *range(0, 200, 2)]  # the rarest first; in odd ones a party deviates

ROWS = {
    "move left out": planted.without_a_row("move"),
    "index left out": planted.without_a_row("index"),
    "predicate left out": planted.without_a_row("predicate"),
    "failures left out": planted.without_rows("failure"),
    "source of a move dropped": planted.without_a_source("move"),
    "source of a predicate dropped": planted.without_a_source("predicate"),
    "source of a result dropped": planted.without_a_source("result"),
    "shares do not meet": planted.without_meetings("share"),
    "ciphertexts have no key": planted.without_meetings("ciphertext"),
}
LABELS = {
    "labels": planted.without_labels(),
    "sources of labels": planted.without_sources_of_others(),
    "history": planted.without_history(),
}


@pytest.mark.parametrize("fault", ROWS)
def test_a_fault_of_the_table(lab, monkeypatch, fault):
    monkeypatch.setattr(experiment, "follow", ROWS[fault])
    assert any(of_seed(seed, lab).findings() for seed in HONEST)


@pytest.mark.parametrize("lost", LABELS)
def test_what_is_lost_from_program_to_program(lab, monkeypatch, lost):
    monkeypatch.setattr("mplang_analysis.memory.follow", LABELS[lost])
    monkeypatch.setattr(experiment, "follow", LABELS[lost])
    assert any(of_seed(seed, lab, length=3).findings() for seed in HONEST)


def test_public_operands_that_are_not_told(lab, monkeypatch):
    analysis = sys.modules["mplang_analysis.follow"]
    monkeypatch.setattr(analysis, "_cache", type(analysis._cache)())  # it is wrong afterwards
    monkeypatch.setattr("mplang_analysis.recorder.Recorder.publish", lambda *of: False)
    assert any(with_operands(seed, lab).findings() for seed in range(100))


@pytest.mark.parametrize("liar", [0, 1, 2])
def test_a_row_of_what_a_dishonest_party_gets(lab, monkeypatch, liar):
    monkeypatch.setattr(experiment, "follow", planted.without_a_receiver(liar))
    assert any(Experiment(seed, lab, liar=liar).findings() for seed in range(200))


def test_a_kernel_that_answers_anybody():
    """Of honest parties it would be found by its messages alone; here one party asks in vain."""
    with Lab(CLUSTER, kernels={"simp.shuffle_dynamic": planted.answer_anybody}) as lab:
        assert any(of_seed(seed, lab).findings() for seed in range(1, 200, 2))
