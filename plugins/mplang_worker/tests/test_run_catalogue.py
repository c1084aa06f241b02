"""`mplang run prog.py:fn` of programs that name data sets, on production workers with TLS.

The review of commit f9a7ea0 was told that "you may read none of its data sets" by ``run``, one line
after ``data list`` had said that it may.
"""

from __future__ import annotations

import json

import pytest
import yaml
from mplang_cli.cli import app
from mplang_http import LocalCluster
from typer.testing import CliRunner

pytestmark = pytest.mark.long("commands on production workers with TLS; test_commands has one")

PROGRAM = """
import mplang_core as mp

def mean():
    return mp.device("P0")(lambda t: t.agg(m=t.pay.mean()))(mp.dataset("bank", "p"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("analyst")
    (made / "p.csv").write_text("pay\n1.0\n2.0\n")
    (made / "prog.py").write_text(PROGRAM)
    people = {"source": f"csv:{made}/p.csv", "columns": {"pay": "float64"}}
    options = {"tls": str(made / "certs"), "data": {"bank": {"p": people}}, "mode": "production"}
    with LocalCluster(["bank", "shop"], **options) as cluster:
        nodes = [{"name": node.name, "address": node.address} for node in cluster.spec.nodes]
        (made / "cluster.yaml").write_text(yaml.safe_dump({"nodes": nodes}))
        yield made


@pytest.fixture
def mplang(folder, monkeypatch):
    """Return a function that runs a command in the analyst's folder, and returns what it prints."""
    monkeypatch.chdir(folder)

    def run(*args, ok=True):
        done = CliRunner().invoke(app, [*args])
        told = done.output + (str(done.exception) if done.exception else "")
        assert (done.exit_code == 0) is ok, told
        return told

    return run


HERE = ("--cluster", "cluster.yaml", "--tls", "certs/host")


def test_a_function_names_what_data_list_shows(mplang):
    """It connects first, and is traced by the data sets that the workers tell."""
    assert "you" in mplang("data", "list", *HERE)
    told = mplang("run", "prog.py:mean", *HERE, "--json")
    assert json.loads(told[told.index("[") :])[0]["value"] == [{"m": 1.5}]


def test_a_function_is_run_by_a_catalogue_in_a_file(mplang, folder):
    """As it is compiled by one; the workers refuse what is not theirs."""
    schema = mplang("data", "schema", *HERE)
    (folder / "catalogue.yaml").write_text(schema)
    told = mplang("run", "prog.py:mean", *HERE, "--json", "--catalogue", "catalogue.yaml")
    assert json.loads(told[told.index("[") :])[0]["value"] == [{"m": 1.5}]
    (folder / "old.yaml").write_text(schema.replace("pay:", "wage:"))
    told = mplang("run", "prog.py:mean", *HERE, "--catalogue", "old.yaml", ok=False)
    assert "pay" in told


def test_an_artifact_has_the_data_sets_that_it_was_compiled_for(mplang, folder):
    (folder / "catalogue.yaml").write_text(mplang("data", "schema", *HERE))
    given = ("--cluster", "cluster.yaml", "--catalogue", "catalogue.yaml")
    mplang("compile", "prog.py:mean", *given, "-o", "mean.mpl")
    told = mplang("run", "mean.mpl", *HERE, "--catalogue", "catalogue.yaml", ok=False)
    assert "--catalogue is for a function" in told
    told = mplang("run", "mean.mpl", *HERE, "--json")
    assert json.loads(told[told.index("[") :])[0]["value"] == [{"m": 1.5}]
