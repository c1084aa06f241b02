"""Nothing is lost: a gate that is killed amid runs has all of them on record, and counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import mplang_policy.envelope as envelope
import pytest
import yaml
from kill_runs import noisy
from mplang_policy import Ledger
from mplang_policy.sums import sums_that_differ
from mplang_policy.verification import mistakes
from policy_testbed import BANK, CATALOGUE, CLUSTER, RUNS
from typer.testing import CliRunner

import mplang_core as mp

KILLS = 200
RULES = RUNS + 'permit (principal, action == Action::"fetch", resource) when { context.approved };'


@pytest.mark.long("forks and kills 200 gates")
def test_no_use_is_forgotten_and_no_epsilon_given_back(tmp_path):
    from mplang_cli.cli import app

    envelope.new_key(tmp_path / "ann.key", None)
    (tmp_path / "rules.cedar").write_text(RULES)
    gate = {
        "policy": "rules.cedar", "log": "gate.db", "approvals": "approvals",
        "approvers": {"ann": "ann.pub"}, "budgets": {"people": {"epsilon": 1000}},
    }  # fmt: skip
    fields = {**BANK, "data": CATALOGUE["bank"], "gate": gate}
    (tmp_path / "worker.yaml").write_text(yaml.safe_dump(fields))
    with mp.catalogue(CATALOGUE):
        mp.artifact.save(tmp_path / "noisy.mpl", mp.compile(noisy, cluster_spec=CLUSTER))
    signing = ["-c", tmp_path / "worker.yaml", "--key", tmp_path / "ann.key", "--yes"]
    asked = ["approve", tmp_path / "noisy.mpl", "--uses", 1_000_000, *signing]
    done = CliRunner().invoke(app, list(map(str, asked)))
    assert done.exit_code == 0, done.output

    here = Path(__file__).parent
    paths = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(here / "kill_runs.py"), str(tmp_path), str(KILLS)]
    found = subprocess.run(
        command,
        capture_output=True,
        check=True,
        timeout=150,
        env={**os.environ, "PYTHONPATH": paths},
    )
    begun = json.loads(found.stdout)
    assert len({run.partition("-")[0] for run in begun}) == KILLS

    with closing(Ledger(tmp_path / "gate.db", read_only=True)) as ledger:
        runs = [each.body["run"] for each in ledger.entries() if each.kind == "run"]
        assert set(begun) <= set(runs)
        assert len(runs) - len(begun) <= KILLS  # one of each may not have been told
        assert sum(ledger.uses().values()) == len(runs)
        assert ledger.spent()["people", "analyst"].epsilon == 1000 * len(runs)
        assert list(mistakes(ledger.entries(), ledger.detail)) == []
        assert list(sums_that_differ(ledger)) == []
