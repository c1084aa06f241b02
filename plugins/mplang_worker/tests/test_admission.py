"""Admission checks: an owner's own code refuses programs, by name and with reasons."""

from __future__ import annotations

import os

import pytest
from mplang_http import LocalCluster, WorkerConfig
from mplang_worker.engine.programs import Programs

import mplang_core as mp
from mplang_core.errors import AdmissionError, ConfigError, PartyError
from mplang_core.ext import to_bytes

pytestmark = pytest.mark.needs("http", "hello")

CHECKS = '''
from mplang_core.ext import StrictModel

class Fussy(StrictModel):
    """Fails for all."""

    def refusals(self, submission):
        raise KeyError("secret")

class Quits(StrictModel):
    """Ends the process, or would."""

    def refusals(self, submission):
        raise SystemExit("secret")

class Told(StrictModel):
    """Tells what it was asked."""

    def refusals(self, submission):
        program, coordinator, party, parties = submission
        return [f"{coordinator} asks party {party} of {', '.join(parties)} for {program.name}"]

no_class = 5
'''
ENTRIES = """
[mplang.admission]
fussy = ours:Fussy
quits = ours:Quits
told = ours:Told
number = ours:no_class
gone = ours:Gone
"""


@pytest.fixture
def ours(tmp_path, monkeypatch):
    """Install checks of an owner for processes that start."""
    folder = tmp_path / "site"
    info = folder / "ours-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "ours.py").write_text(CHECKS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PYTHONPATH", path)


def ping_pong():
    return mp.put("P0", mp.put("P1", mp.put("P0", 1)))


def test_a_check_of_a_plugin_refuses_a_program():
    with (
        LocalCluster(2, admission={"few_values": {"most": 1}}) as workers,
        mp.connect("http", workers.spec) as host,
    ):
        assert mp.fetch(host, mp.evaluate(host, lambda: mp.put("P1", 1))) == 1
        told = r"few_values refuses the program: node0 would hold 2 values, at most 1 are allowed"
        with pytest.raises(PartyError, match=told):
            mp.evaluate(host, ping_pong)
        assert mp.fetch(host, mp.evaluate(host, lambda: mp.put("P0", 2))) == 2


def test_a_check_knows_who_asks_for_what(ours):
    with (
        LocalCluster(["bank", "shop"], admission={"told": {}}) as workers,
        mp.connect("http", workers.spec) as host,
        pytest.raises(PartyError, match=r"local asks party \d of bank, shop for ping_pong"),
    ):
        mp.evaluate(host, ping_pong)


@pytest.mark.parametrize("check", ["fussy", "quits"])
def test_a_check_that_fails_refuses_and_tells_nothing(ours, check):
    with (
        LocalCluster(1, admission={check: {}}) as workers,
        mp.connect("http", workers.spec) as host,
    ):
        with pytest.raises(
            PartyError, match=f"admits nothing: its check {check!r} failed"
        ) as error:
            mp.evaluate(host, lambda: mp.constant(1))
        assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"no_such": {}}, "field 'admission.no_such': no such check is installed; there are: "),
        ({"few_values": {"most": -1}}, "field 'admission.few_values': .*most"),
        ({"few_values": {"least": 1}}, "field 'admission.few_values': .*least"),
        ({"number": {}}, "field 'admission.number'"),
        ({"gone": {}}, "field 'admission.gone'"),
        ({"few_values": 5}, "admission"),
    ],
)
def test_a_worker_does_not_start_with_a_section_that_is_wrong(ours, section, told):
    with pytest.raises(ConfigError, match=told):
        LocalCluster(["alice"], admission=section)


def test_a_check_is_asked_before_a_program_is_kept():
    config = WorkerConfig(name="a", admission={"few_values": {"most": 1}})
    programs = Programs(config, "ann", 0, ["a", "b"])
    program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), ping_pong).program
    data = to_bytes(program)
    import hashlib

    name = hashlib.sha256(data).hexdigest()
    with pytest.raises(AdmissionError, match="few_values"):
        programs.put(name, data)
    with pytest.raises(Exception, match="not here"):
        programs.get(name)
