"""Plugins of a worker: what its configuration names is imported, and nothing else."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from log_reading import LogReader
from mplang_http import LocalCluster, WorkerConfig
from mplang_http.base.plugin_versions import Versions, compatible, misfits
from mplang_http.cli.status import cluster_status
from mplang_http.coordinator.client import WorkerClient
from mplang_http.coordinator.compatibility import WorkerFacts, check_parties, known_data
from mplang_http.tls.files import TlsFiles
from mplang_http.wire.versions import own_versions
from mplang_tables import table
from mplang_worker.base.allowed_plugins import installed_plugins
from mplang_worker.base.errors import RequestError
from mplang_worker.process.imports import check_installed
from mplang_worker.wire.requests import SessionRequest

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError

SPY = """
import os
from mplang_core.ext import hookimpl

open(os.environ["MPLANG_SPY"], "w").close()

@hookimpl
def mplang_feops():
    return []
"""


def install(folder: Path, version: str, since: str = "") -> str:
    """Install a distribution whose plugin leaves a file when it is imported."""
    (folder / "zspy.py").write_text(SPY)
    info = folder / f"zspy-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: zspy\nVersion: {version}\n")
    fits = f"[mplang.compatible]\n{since} = zspy\n" if since else ""
    (info / "entry_points.txt").write_text(f"[mplang.frontends]\nzspy = zspy\n{fits}")
    return str(folder)


@pytest.fixture
def spy(tmp_path, monkeypatch) -> Path:
    """Install the spy for processes that start; return the file that it leaves."""
    (tmp_path / "site").mkdir()
    monkeypatch.setenv("PYTHONPATH", install(tmp_path / "site", "1.0"))
    monkeypatch.setenv("MPLANG_SPY", str(tmp_path / "seen"))
    return tmp_path / "seen"


def without(*names: str) -> dict[str, str]:
    return {k: v for k, v in installed_plugins().items() if k not in names}


def test_what_is_not_named_is_not_imported(spy):
    with (
        LocalCluster(1, plugins=installed_plugins()) as workers,
        mp.connect("http", workers.spec) as host,
    ):
        double = mp.device("P0")(lambda x: x * 2)
        assert mp.fetch(host, mp.evaluate(host, lambda: double(mp.put("P0", np.int64(4))))) == 8
        facts = host._workers[0].client.request("GET", "facts")
        assert "zspy" not in {each["distribution"] for each in facts["plugins"]}
    assert not spy.exists()


def test_what_is_installed_is_imported_where_nothing_is_named(spy):
    with LocalCluster(1):
        assert spy.exists()


def test_a_program_of_a_plugin_that_a_worker_does_not_have():
    with (
        LocalCluster(
            1,
            plugins=without(
                *("mplang-jax", "mplang-joins", "mplang-match", "mplang-spu", "mplang-hello"),
                "mplang-he",
            ),
        ) as workers,
        mp.connect("http", workers.spec) as host,
    ):
        with pytest.raises(ConfigError) as error:
            mp.evaluate(host, lambda: mp.device("P0")(lambda x: x * 2)(mp.put("P0", np.ones(3))))
        *_, head, row, advice, command = str(error.value).splitlines()
        assert head.split() == ["(coordinator)", "node0"]
        assert row.split() == ["mplang-jax", "0.1.0", "not", "there"]
        assert "`plugins`" in advice
        assert command == "  at node0: pip install 'mplang-jax==0.1.0'"
        assert mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7)))[0] == 7


@pytest.mark.parametrize(
    ("plugins", "told", "code"),
    [
        ({"mplang-jax": "0.0.9"}, r"mplang-jax 0\.1\.0 is installed, not 0\.0\.9; pip", "P005"),
        ({"mplang-polars": "1.0"}, "no plugin of mplang-polars is installed; there are", "P002"),
        ({"mplang-jax": 0.1}, "field 'plugins.mplang-jax'", None),
    ],
)
def test_plugins_that_cannot_be(plugins, told, code):
    with pytest.raises(ConfigError, match=told) as error:
        LocalCluster(["alice"], plugins=plugins)
    assert code in (None, error.value.code)


@pytest.mark.parametrize(
    ("plugin", "settings", "told"),
    [
        ("mplang-ibis", {"minutes": 3}, "plugins.mplang-ibis': QuerySettings: field 'minutes'"),
        ("mplang-jax", {"a": 1}, "no settings are taken by mplang-jax"),
    ],
)
def test_a_section_that_its_plugin_does_not_take(plugin, settings, told):
    section = {"version": "0.1.0", "settings": settings}
    with pytest.raises(ConfigError, match=told):
        LocalCluster(["alice"], plugins=installed_plugins() | {plugin: section})


def test_a_plugin_that_another_one_needs_is_listed_too():
    listed = installed_plugins()
    needed = listed.pop("mplang-tables")
    text = f"field 'plugins': mplang-data needs mplang-tables {needed}, which is not listed"
    with pytest.raises(ConfigError, match=text):
        LocalCluster(1, plugins=listed)


def test_a_plugin_has_a_section_of_its_own(tmp_path):
    section = {"version": installed_plugins()["mplang-ibis"], "settings": {"seconds": 0.2}}
    plugins = installed_plugins() | {"mplang-ibis": section}
    words = table(pa.table({"word": ["x"] * 3000}))

    def count(t):
        pairs = t.cross_join(t.view(), rname="a_{name}")
        return pairs.cross_join(t.view(), rname="b_{name}").count().as_table()

    def slow():
        return mp.device("P0")(count)(mp.device("P0")(words)())

    with (
        LocalCluster(1, plugins=plugins, log=str(tmp_path), log_level="debug") as workers,
        mp.connect("http", workers.spec) as host,
    ):
        with pytest.raises(PartyError, match="failed in ibis.run"):
            mp.evaluate(host, slow)
        LogReader(tmp_path / "node0.log", begin=0).wait_for("took longer than 0.2 s")


def test_versions_of_all_plugins_are_compared(spy, tmp_path, monkeypatch):
    with LocalCluster(2) as workers:
        with mp.connect("http", workers.spec):
            pass
        (tmp_path / "newer").mkdir()
        monkeypatch.setenv("PYTHONPATH", install(tmp_path / "newer", "2.0"))
        workers.signal(1, signal.SIGKILL)
        workers.restart(1)
        with pytest.raises(ConfigError) as error:
            mp.connect("http", workers.spec)
        _, head, row, *_ = str(error.value).splitlines()
        assert head.split() == ["(coordinator)", "node0", "node1"]
        assert row.split() == ["zspy", "-", "1.0", "2.0"]


@pytest.mark.parametrize(
    ("version", "since", "fits"),
    [("2.0", "1.0", True), ("1.1", "0.9", True), ("2.0", "1.5", False), ("0.9", "0.1", False)],
)
def test_versions_that_a_plugin_declares_to_fit_run_together(
    spy, tmp_path, monkeypatch, version, since, fits
):
    """The newer one declares it, so that organizations upgrade one by one."""
    with LocalCluster(2) as workers:
        (tmp_path / "other").mkdir()
        monkeypatch.setenv("PYTHONPATH", install(tmp_path / "other", version, since))
        workers.signal(1, signal.SIGKILL)
        workers.restart(1)
        if not fits:
            with pytest.raises(ConfigError, match=rf"zspy +- +1\.0 +{version}"):
                mp.connect("http", workers.spec)
            return
        with mp.connect("http", workers.spec) as host:
            assert mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7)))[0] == 7


def test_with_certificates_plugins_are_named():
    files = TlsFiles.of("certs/alice")
    with pytest.raises(ConfigError, match=r"plugins names those .* mplang-jax: '0\.1\.0'"):
        WorkerConfig(name="alice", tls=files, coordinators=("host",), peers={})


def test_the_package_of_analysts_is_no_worker():
    """It was one before, so files of then may name it."""
    plugins = {"mplang-http": mp.__version__}
    with pytest.raises(ConfigError, match=f"add the line  mplang-worker: {mp.__version__}"):
        WorkerConfig(name="alice", plugins=plugins)
    both = plugins | {"mplang-worker": mp.__version__}
    check_installed(WorkerConfig(name="alice", plugins=both))


FACTS = {"alike": {"wire": "1"}, "plugins": [], "mode": "production", "data": {}}


@pytest.mark.parametrize(
    "change",
    [
        {"alike": {f"{i}": "1" for i in range(2000)}},
        {"alike": None},
        {"alike": {"passes": "x" * 5000}},
        {"plugins": [{"name": "a"}]},
        {"plugins": 7},
        {"mode": None, "alike": "text"},
    ],
)
def test_facts_that_no_worker_tells(change):
    with pytest.raises((LookupError, TypeError, ValueError, AttributeError)):  # the driver's names
        WorkerFacts.read("alice", FACTS | change)


@pytest.mark.parametrize(
    "data", [{"../x": {"columns": {"a": "int64"}}}, {"x": 7}, [1], None, {"x": {"columns": 7}}]
)
def test_a_catalogue_that_no_worker_tells_is_that_of_a_name(data):
    facts = [WorkerFacts.read(name, FACTS) for name in ("alice", "bob")]
    facts[1] = WorkerFacts.read("bob", FACTS | {"data": data})
    with pytest.raises(ConfigError, match="bob sent no catalogue of data sets"):
        known_data(facts)


def test_a_catalogue_of_a_newer_worker_is_read():
    data = {"x": {"columns": {"a": "int64"}, "epsilon": 1}}
    found = known_data([WorkerFacts.read("bob", FACTS | {"data": data})])
    assert found["bob"]["x"].columns == {"a": "int64"}


def test_long_settings_that_differ_at_their_end_differ():
    names = [f"a-pass-with-a-long-name-{i}" for i in range(9)]
    all_of_them = {"passes": ", ".join(names)}, {"passes": ", ".join(names[:-1])}
    facts = [FACTS | {"alike": each} for each in (*all_of_them, all_of_them[0])]
    workers = [WorkerFacts.read(name, each) for name, each in zip("abc", facts, strict=True)]
    with pytest.raises(ConfigError, match="SHA-256") as error:
        check_parties(workers)
    assert "to have passes as most workers have it, at b: mplang plugins, and" in str(error.value)


@pytest.mark.parametrize(
    ("name", "mine", "others", "command"),
    [
        ("TONE", "warm", "not set", "unset TONE, and start the worker again"),
        ("TONE", "not set", "warm", "export TONE=warm, and start the worker again"),
        ("TONE", "not set", "$(x) ;y", "export 'TONE=$(x) ;y', and start the worker again"),
        ("$(X)", "1", "2", "mplang doctor, and install the versions of the others"),
    ],
)
def test_a_setting_that_differs_is_told_with_a_command(name, mine, others, command):
    facts = [FACTS | {"alike": {name: value}} for value in (mine, others, others)]
    workers = [WorkerFacts.read(who, each) for who, each in zip("abc", facts, strict=True)]
    with pytest.raises(ConfigError) as error:
        check_parties(workers)
    assert str(error.value).endswith(f"as most workers have it, at a: {command}")


def test_a_table_is_short_and_plain():
    one, other = (
        WorkerFacts.read(name, FACTS | {"alike": {f"\x1b[31m{i}": name for i in range(900)}})
        for name in ("alice", "bob")
    )
    with pytest.raises(ConfigError) as error:
        check_parties([one, other])
    assert "and 850 more" in str(error.value)
    assert len(str(error.value)) < 6000
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize(
    "answer", [None, [], {"name": "node0"}, {"name": 1}, {"expires": 7}, {"failures": {}}]
)
def test_a_status_that_no_worker_tells_hides_no_other(answer, monkeypatch):
    good = {"name": "node1", "mode": "production", "state": "ready", "crashes": 0}
    told = {"node0": {**good, **answer} if isinstance(answer, dict) else answer, "node1": good}
    if answer == {"name": "node0"}:
        del told["node0"]["state"]
    monkeypatch.setattr(WorkerClient, "request", lambda self, *path: told[self.name])
    nodes = [{"name": name, "address": "http://127.0.0.1:1"} for name in told]
    first, second = cluster_status(mp.ClusterSpec(nodes))
    assert first["why"] == "it returned a response that this version cannot read"
    assert second["state"] == "ready"


@pytest.mark.parametrize(
    ("one", "other", "fit"),
    [
        (("1.0", ""), ("1.0", ""), True),
        (("1.0", ""), ("1.0.0", ""), False),  # as texts: nothing declares it
        (("1.0", ""), ("1.1", "1.0"), True),
        (("1.0", "0.1"), ("1.1", ""), False),  # the older one knows nothing of the newer one
        (("1.0", ""), ("1.1", "1.0.1"), False),
        (("1.9", ""), ("1.10", "1.9"), True),
        (("1.0", ""), ("1.1", "any"), False),
        (("one", ""), ("two", "one"), False),
        (("1.0", ""), ("1" * 5000, "1.0"), False),
    ],
)
def test_which_versions_fit(one, other, fit):
    def has(version, since):
        return Versions({"p": version}, {"p": since} if since else {}, {"p"})

    assert misfits([has(*one), has(*other)]) == misfits([has(*other), has(*one)])
    assert (not misfits([has(*one), has(*other), Versions({}, {}, set())])) == fit


def test_each_pair_of_parties_has_to_fit():
    old, mid, new = (
        Versions({"p": "1.0"}, {}, {"p"}),
        Versions({"p": "1.1"}, {"p": "1.1"}, {"p"}),
        Versions({"p": "1.2"}, {"p": "1.0"}, {"p"}),
    )
    assert misfits([old, new]) == misfits([mid, new]) == set()
    assert misfits([old, mid, new]) == {"p"}


@pytest.mark.parametrize(("old", "new"), [({"p"}, set()), (set(), {"p"}), (set(), set())])
def test_a_declaration_counts_if_no_party_needs_the_same_version(old, new):
    """A plugin with a pass is the same everywhere, also if only one of the versions has it."""
    parties = [Versions({"p": "1.0"}, {}, old), Versions({"p": "1.1"}, {"p": "1.0"}, new)]
    assert misfits(parties) == {"p"}


def test_packages_with_passes_fit_by_the_number_of_their_passes():
    """Organizations upgrade one by one: a release whose passes make the same programs fits."""

    def has(version, number):
        return Versions({"p": version}, {"p": "0"}, set(), {"p": number} if number else {})

    assert misfits([has("0.1.0", "1"), has("0.1.1", "1"), has("0.1.2", "1")]) == set()
    assert misfits([has("0.1.0", "1"), has("0.1.1", "2")]) == {"p"}
    assert misfits([has("0.1.0", ""), has("0.1.1", "1")]) == {"p"}
    assert misfits([has("0.1.0", "1"), has("0.1.0", "2")]) == {"p"}  # whoever made these


def test_a_worker_that_was_upgraded_runs_beside_one_that_was_not(monkeypatch):
    """Where the versions of packages differ, and no number of passes does."""
    own = own_versions()
    number = {"mplang-passes": "1", "mplang-stablehlo": "1"}
    mine = Versions(own.there, own.since, own.may_differ, number)
    monkeypatch.setattr("mplang_http.coordinator.compatibility.own_versions", lambda: mine)
    newer = {*own.may_differ, *number}
    upgraded = {name: "0.1.99" if name in newer else v for name, v in own.there.items()}
    since = dict.fromkeys(own.may_differ, "0.1.0")
    plugins = [{"name": n, "group": "mplang.kernels", "distribution": n, "version": "0.1.99"}
               for n in own.may_differ]  # fmt: skip
    facts = FACTS | {"alike": upgraded, "compatible": since, "plugins": plugins}
    check_parties([WorkerFacts.read("bob", facts | {"pass_versions": number})])
    with pytest.raises(ConfigError, match="mplang-passes"):
        check_parties([WorkerFacts.read("bob", facts)])


def session_request(versions: dict[str, str], since: dict[str, str]) -> SessionRequest:
    parties = [{"name": "alice", "address": "http://127.0.0.1:1"}]
    told = {"rank": 0, "parties": parties, "versions": versions, "compatible": since}
    return SessionRequest.read(json.dumps(told).encode(), WorkerConfig(name="alice"))


@pytest.mark.parametrize("name", ["wire", "link", "jax", "mplang-passes", "mplang-hello"])
def test_a_coordinator_cannot_declare_what_has_to_be_equal(name):
    with pytest.raises(RequestError, match=rf"{name} +99"):
        session_request({name: "99"}, {name: "0"})


@pytest.mark.parametrize("name", ["mplang-core", "mplang-http", "mplang-spu"])
def test_a_coordinator_declares_what_fits(name):
    assert session_request({name: "99"}, {name: "0"}).versions == {name: "99"}
    with pytest.raises(RequestError, match=rf"{name} +99"):
        session_request({name: "99"}, {})


def told_by(name: str, version: str, *groups: str, versioned: str = "zspy") -> WorkerFacts:
    """Return what a worker tells that has one thing, and declares any version of it to fit."""
    plugins = [
        {"name": "zspy", "group": group, "distribution": versioned, "version": version}
        for group in groups
    ]
    told = {"alike": {versioned: version}, "compatible": {versioned: "0"}, "plugins": plugins}
    return WorkerFacts.read(name, FACTS | told)


@pytest.mark.parametrize(
    ("old", "new", "fit"),
    [
        (["mplang.kernels"], ["mplang.kernels"], True),
        (["mplang.kernels"], ["mplang.kernels", "mplang.passes"], False),
        (["mplang.kernels", "mplang.passes"], ["mplang.kernels"], False),
        (["mplang.passes"], ["mplang.passes"], False),
        ([], [], False),  # a setting
        (["mplang.admission"], ["mplang.admission"], False),
    ],
)
def test_a_worker_declares_what_its_entry_points_allow(old, new, fit):
    workers = [told_by("alice", "1.0", *old), told_by("bob", "1.1", *new)]
    expected = pytest.raises(ConfigError, match=r"zspy +- +1\.0 +1\.1")
    with contextlib.nullcontext() if fit else expected:
        check_parties(workers)


def test_a_worker_cannot_pass_an_engine_off_as_a_plugin():
    workers = [told_by("alice", "99", "mplang.kernels", versioned="jax")]
    with pytest.raises(ConfigError, match=r"jax .* 99"):
        check_parties(workers)


def test_the_oldest_declaration_counts(tmp_path, monkeypatch):
    since = "1.10 = zspy\n1.9 = zspy\nany = zspy\n2.0"
    monkeypatch.setattr(sys, "path", [install(tmp_path, "2.0", since), *sys.path])
    assert compatible()["zspy"] == "1.9"


def test_a_worker_may_be_called_coordinator():
    workers = [
        WorkerFacts.read("coordinator", FACTS),
        WorkerFacts.read("bob", FACTS | {"alike": {"wire": "77"}}),
    ]
    with pytest.raises(ConfigError) as error:
        check_parties(workers)
    _, head, row = str(error.value).splitlines()
    assert head.split() == ["(coordinator)", "coordinator", "bob"]
    assert row.split()[2:] == ["1", "77"]
