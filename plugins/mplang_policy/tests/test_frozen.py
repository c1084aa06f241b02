"""Files of an owner that an earlier version wrote go on counting.

``frozen`` was written by commit f9a7ea0, when workers were a part of ``mplang-http``: the worker's
file, its rules, its log with a refusal and a run, an artifact, and an approval of two uses, one of
which is used.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from mplang_analysis import PublicInput, RunRequest
from mplang_policy import Gate, Ledger
from mplang_policy.offline import asked_of
from mplang_policy.owner import Owner
from mplang_policy.verification import mistakes
from policy_testbed import NAMES

import mplang_core as mp
from mplang_core.ext import AdmissionError

FROZEN = Path(__file__).parent / "frozen"


@pytest.fixture
def gate(tmp_path):
    """Return the gate of a copy of the files."""
    shutil.copytree(FROZEN, tmp_path / "bank")
    owner = Owner.read(str(tmp_path / "bank" / "worker.yaml"))
    made = Gate(owner.gate, "bank", owner.names)
    yield made
    made.close()


def test_an_approval_counts_for_the_uses_that_are_left(gate):
    program = mp.artifact.load(FROZEN / "pay.mpl").program
    asked = asked_of(program, NAMES, "bank", "analyst", "production")
    run = RunRequest("s", "s-0", asked, [PublicInput(0, (2020,)), PublicInput(1, (6,))])
    gate.begin(run, gate.decide(run))
    with pytest.raises(AdmissionError, match="its 2 uses are used up"):
        gate.refuse(run, gate.decide(run))


def test_the_log_is_read_before_any_gate_of_this_version_has_opened_it(tmp_path):
    shutil.copy(FROZEN / "gate.db", tmp_path / "gate.db")
    with closing(Ledger(tmp_path / "gate.db", read_only=True)) as ledger:
        assert list(mistakes(ledger.entries(), ledger.detail)) == []
        assert ledger.heads() == {}
