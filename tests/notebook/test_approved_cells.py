"""An approval in a notebook: cells that run again keep it, changes of its lines end it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

pytest.importorskip("ipykernel")
from kernels import kernel

pytestmark = pytest.mark.needs("http", "ibis", "policy")

RULES = """
permit (principal, action in [Action::"run", Action::"read", Action::"disclose"], resource);
permit (principal, action == Action::"fetch", resource) when { context.approved };
"""
PROGRAM = """\
def pay():
    # the sum
    table = mp.dataset("bank", "people", ["pay"])
    return mp.device("P0")(lambda t: t.agg(pay=t.pay.sum()))(table)
"""
RUN = "print(mp.fetch(host, mp.evaluate(host, pay)).to_pylist())"


@pytest.fixture
def owner(tmp_path):
    """Return the folder of an owner: data, rules, a key and the worker's file."""
    (tmp_path / "people.csv").write_text("pay\n1\n2\n")
    (tmp_path / "bank.cedar").write_text(RULES)
    mplang(tmp_path, "approver-key", "ann.key")
    people = {"source": f"csv:{tmp_path}/people.csv", "columns": {"pay": "int64"}}
    gate = {"policy": f"{tmp_path}/bank.cedar", "log": f"{tmp_path}/bank.db"}
    gate |= {"approvals": f"{tmp_path}/approvals", "approvers": {"ann": f"{tmp_path}/ann.pub"}}
    fields = {"name": "bank", "mode": "production", "coordinators": ["local"]}
    fields |= {"data": {"people": people}, "gate": gate}
    (tmp_path / "worker.yaml").write_text(yaml.safe_dump(fields))
    return tmp_path


def mplang(folder, *args):
    """Run a command of the owner."""
    done = subprocess.run(
        [sys.executable, "-c", "from mplang_cli.entry import main; main()", *args],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_approval_outlives_the_cell_and_not_its_lines(owner):
    with kernel() as notebook:

        def run(code):
            found = notebook.run(code)
            assert not found.error, found.traceback
            return found.text

        run(
            "import yaml, mplang_core as mp\n"
            "from mplang_http import LocalCluster\n"
            f"fields = yaml.safe_load(open('{owner}/worker.yaml'))\n"
            "data, gates = {'bank': fields['data']}, {'bank': fields['gate']}\n"
            "local = LocalCluster(['bank', 'shop'], data=data, gates=gates, mode='production')\n"
            "host = mp.connect('http', local.spec)\n"
        )
        run(PROGRAM)
        run(
            "with mp.catalogue({'bank': {'people': {'columns': {'pay': 'int64'}}}}):\n"
            f"    mp.artifact.save('{owner}/pay.mpl', mp.compile(pay, cluster_spec=local.spec))"
        )
        assert "once bank has approved" in notebook.run(RUN).error[1]
        shown = mplang(owner, "review", "pay.mpl")
        assert "Cell In[2], line 4" in shown
        assert "“return mp.device" in shown
        mplang(owner, "approve", "pay.mpl", "--key", "ann.key", "--uses", "9", "--yes")
        assert "[{'pay': 3}]" in run(RUN)
        run(PROGRAM)  # the same cell once more: it has another number
        assert "[{'pay': 3}]" in run(RUN)
        run("1 + 1  # another cell")
        run(f"# a comment\n\n{PROGRAM.replace('# the sum', '# of all')}")
        assert "[{'pay': 3}]" in run(RUN)
        run(PROGRAM.replace("(table)", "(table)  # all"))
        refused = notebook.run(RUN).error
        assert "the text of its lines is not what was shown" in refused[1]
        run(PROGRAM)
        assert "[{'pay': 3}]" in run(RUN)
        run("host.close(); local.close()")
