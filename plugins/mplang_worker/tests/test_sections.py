"""Sections of a worker's configuration: packages have what the protocols of these ask for."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from mplang_data.section import SECTION as DATA_SECTION, DataSetClient, DataSetServer
from mplang_data.stored.client import SinkClient
from mplang_data.stored.section import SECTION as SINK_SECTION
from mplang_data.stored.server import SinkServer
from mplang_http import LocalCluster, WorkerConfig
from mplang_policy import Decision as CedarDecision, Gate as CedarGate
from mplang_policy.section import SECTION as GATE_SECTION
from mplang_worker import ext
from mplang_worker.base.config import EngineConfig

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError
from mplang_core.ext import plugin_manager

# -- mplang's own packages, which cannot import the protocols


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [
        (ext.DataSection, type(DATA_SECTION)),
        (ext.DataProvider, DataSetServer),
        (ext.StoreSection, type(SINK_SECTION)),
        (ext.Store, SinkServer),
        (ext.StoreClient, SinkClient),
        (ext.GateSection, type(GATE_SECTION)),
        (ext.Gate, CedarGate),
        (ext.Decision, CedarDecision),
    ],
)
def test_a_package_has_what_its_protocol_asks_for(protocol, kind):
    members = {
        name: getattr(protocol, name)
        for name in dir(protocol)
        if not name.startswith("_") and name not in dir(object)
    }
    assert members
    for name, wanted in members.items():
        found = getattr(kind, name)
        if callable(wanted):
            assert parameters(found) == parameters(wanted), name


def parameters(function: Any) -> list[tuple[str, Any, bool]]:
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default is each.empty) for each in found]


def test_kernels_find_data_sets_and_storage_in_an_engine():
    assert callable(DataSetClient(lambda *asked: ({}, ())).query)


# -- a package of one's own

VAULT = '''
"""Section ``vault``: a number for each coordinator, of which kernels take what they are given."""

from mplang_core.ext import ConfigError, RunError
import mplang_core as mp


class Vault:
    def read(self, fields, folder):
        if not isinstance(fields, dict) or not all(type(x) is int for x in fields.values()):
            raise ConfigError("field 'vault': expected a number by coordinator")
        return {**fields}

    def front(self, fields, worker):
        return Numbers(fields, worker["name"])

    def engine(self, ask):
        return lambda name: ask("number", {"as": name}, ())[0]


class Numbers:
    def __init__(self, numbers, worker):
        self.numbers, self.worker = numbers, worker

    def answer(self, asker, method, args, files):
        return {"number": self.numbers[asker.coordinator], "by": self.worker}, (), None

    def release(self, session):
        pass


@mp.simple_op("zvault.take")
def take(x: mp.TensorType) -> mp.TensorType:
    return x


@mp.kernel("zvault.take")
def _take(ctx, x):
    sections = ctx.interpreter.data.sections
    if "vault" not in sections:
        return x
    found = sections["vault"]("x")
    if "failed" in found:
        raise RunError(found["failed"])
    return x + found["number"]


SECTION = Vault()
'''


def install(site: Path, section: str, names: str) -> None:
    """Install a package that brings a section."""
    info = site / f"z{section}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: z{section}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mplang.sections]\n{section} = {names}\n")


@pytest.fixture(scope="module")
def vault(tmp_path_factory) -> Iterator[Any]:
    """Install a package with a section, here and for processes that start; return its module."""
    site = tmp_path_factory.mktemp("site")
    install(site, "vault", "zvault:SECTION")
    install(site, "other", "json:dumps")
    (site / "zvault.py").write_text(VAULT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(site))
        patch.syspath_prepend(str(site))
        patch.setattr(plugin_manager, "_found", None)  # what was found before
        yield importlib.import_module("zvault")


def test_a_kernel_asks_the_section_of_its_package(vault):
    options = {"imports": ["zvault"], "sections": {"vault": {"local": 30}}}
    with LocalCluster(1, **options) as workers, mp.connect("http", workers.spec) as host:
        take = mp.device("P0")(vault.take)
        found = mp.evaluate(host, lambda: take(mp.put("P0", np.int64(12))))
        assert mp.fetch(host, found) == 42


def test_an_engine_does_not_have_what_the_configuration_does_not_have(vault):
    with LocalCluster(1, imports=["zvault"]) as workers, mp.connect("http", workers.spec) as host:
        take = mp.device("P0")(vault.take)
        found = mp.evaluate(host, lambda: take(mp.put("P0", np.int64(12))))
        assert mp.fetch(host, found) == 12


def test_of_a_provider_that_fails_nothing_is_known_but_that(vault):
    options = {"imports": ["zvault"], "sections": {"vault": {"somebody": 30}}}
    with LocalCluster(1, **options) as workers, mp.connect("http", workers.spec) as host:
        take = mp.device("P0")(vault.take)
        with pytest.raises(PartyError, match="failed in zvault.take"):
            mp.fetch(host, mp.evaluate(host, lambda: take(mp.put("P0", np.int64(12)))))


def test_a_section_is_read_by_its_package(vault, tmp_path):
    file = tmp_path / "alice.yaml"
    file.write_text(yaml.safe_dump({"name": "alice", "vault": {"host": 5}}))
    made = WorkerConfig.from_yaml(file)
    assert (made.section("vault"), made.asked_sections) == ({"host": 5}, ["vault"])
    file.write_text(yaml.safe_dump(made.model_dump(mode="json")))
    assert WorkerConfig.from_yaml(file) == made
    assert WorkerConfig(name="alice", vault={"host": 5}) == made
    with pytest.raises(ConfigError, match="field 'vault': expected a number by coord") as raised:
        WorkerConfig(name="alice", vault={"host": "hunter2"})
    assert "hunter2" not in str(raised.value)
    with pytest.raises(ConfigError, match="plugins has to name zvault, which has `vault`"):
        WorkerConfig(name="alice", vault={"host": 5}, plugins={"mplang-worker": "0.1.0"})


def test_a_package_that_brings_something_else_is_told(vault):
    with pytest.raises(
        ConfigError, match=r"section of zother is not an mplang_worker\.ext\.Section"
    ):
        WorkerConfig(name="alice", other={})


# -- what is not installed


@pytest.fixture
def bare(monkeypatch):
    """Let no package bring a section."""
    from mplang_core.plugins import manager

    records = [
        each for each in manager.plugin_manager._index() if each[1].group != "mplang.sections"
    ]
    monkeypatch.setattr(manager.plugin_manager, "_found", records)


@pytest.mark.parametrize(
    ("fields", "package"),
    [
        ({"data": {"people": {"source": "csv:people.csv"}}}, "mplang-data"),
        ({"sink": {"folder": "results"}}, "mplang-data"),
        ({"gate": {"policy": "policy", "log": "gate.db"}}, "mplang-policy"),
    ],
)
def test_the_package_of_a_known_section_is_named(bare, tmp_path, fields, package):
    file = tmp_path / "alice.yaml"
    file.write_text(yaml.safe_dump({"name": "alice", **fields}))
    told = f"come with another package; try: pip install {package}"
    for make in (
        lambda: WorkerConfig(name="alice", **fields),
        lambda: WorkerConfig.from_yaml(file),
    ):
        with pytest.raises(ConfigError, match=told):
            make()


def test_all_that_is_wrong_in_a_file_is_told_at_once(tmp_path):
    text = "{name: alice, prot: 1, gate: {polcy: p}, data: {a: {source: x}, b: {sourc: 1}}}"
    (tmp_path / "worker.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        WorkerConfig.from_yaml(tmp_path / "worker.yaml")
    for word in ("prot", "polcy", "data.a", "data.b"):
        assert word in str(caught.value)


def test_an_unknown_section_is_told_with_those_that_there_are():
    with pytest.raises(
        ConfigError,
        match="no installed package has a section 'safe'; there are compiled_code, data, gate, ",
    ) as raised:
        WorkerConfig(name="alice", safe={"password": "hunter2"})
    assert "hunter2" not in str(raised.value)
    with pytest.raises(ConfigError, match="field 'prot': there is no such field, got 9000"):
        WorkerConfig(name="alice", prot=9000)


@pytest.mark.parametrize(
    ("fields", "meant"),
    [
        ({"limts": {"jobs": 3}}, "limits"),
        ({"gatte": {"policy": "x.cedar"}}, "gate"),
        ({"prot": 9000}, "port"),
        ({"limits": {"job": 3}}, "jobs"),
    ],
)
def test_a_misspelt_field_is_told_with_what_was_meant(tmp_path, fields, meant):
    file = tmp_path / "alice.yaml"
    file.write_text(yaml.safe_dump({"name": "alice", **fields}))
    with pytest.raises(ConfigError, match=f"did you mean '{meant}'"):
        WorkerConfig.from_yaml(file)


# -- what engines are told


def test_engines_read_the_configuration_as_the_front_has_it():
    config = WorkerConfig(
        name="alice",
        timeouts={"job": float("inf")},
        plugins={"mplang-worker": {"version": "0.1.0", "settings": {"least": -float("inf")}}},
        readable=["/srv/models"],
        admission={"few_values": {"most": 3}},
        host="127.0.0.2",
    )
    found = EngineConfig.read(config.for_engines)
    assert found == EngineConfig(**{n: getattr(config, n) for n in EngineConfig.model_fields})
    assert json.loads(config.for_engines).keys() == EngineConfig.model_fields.keys()
