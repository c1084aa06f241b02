"""Compiled code of a worker: it outlives sessions, and stays with its coordinator."""

import os
from importlib.metadata import version

import jax
import numpy as np
import pytest
from log_reading import LogReader
from mplang_http import LocalCluster
from mplang_worker.base.allowed_plugins import installed_plugins
from mplang_worker.base.config import WorkerConfig
from mplang_worker.ext import Provider, Section
from mplang_worker.front.sections import provider_of
from test_confinement import act
from two_coordinators import certificates, worker_of_two

import mplang_core as mp
from mplang_core.errors import ConfigError

pytestmark = pytest.mark.needs("jax")

LONG_AGO = 1_000_000_000
X = np.linspace(0.1, 0.9, 8, dtype=np.float32)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the certificates of the worker, and of its coordinators."""
    return certificates(tmp_path_factory.mktemp("certs"))


@pytest.fixture
def place(tmp_path):
    """Return the folder of the compiled code, which is not there yet."""
    return tmp_path / "compiled"


def worker(files, place, tmp_path):
    """Run the worker, which keeps compiled code."""
    plugins = {**installed_plugins(), "mplang-cache": version("mplang-cache")}
    sections = {"compiled_code": str(place)}
    return worker_of_two(files, plugins=plugins, sections=sections, log=str(tmp_path))


def run(cluster, tls) -> bytes:
    """Run a function in an engine of its own, and return the bits of its result."""
    with mp.connect("http", cluster.spec, tls=tls) as host:
        made = mp.evaluate(
            host, lambda x: mp.device("P0")(lambda v: jax.numpy.sin(v) * 3 + v)(mp.put("P0", x)), X
        )
        return mp.fetch(host, made).tobytes()


def inodes(place):
    """Return what is kept: the inode of each entry, by coordinator's folder and name."""
    return {(entry.parent.name, entry.name): entry.stat().st_ino for entry in place.glob("*/*")}


def set_back(place) -> None:
    for entry in place.glob("*/*"):
        os.utime(entry, (LONG_AGO, LONG_AGO))


def read_of(place) -> set[str]:
    """Return the folders of those that have read or written something since :func:`set_back`."""
    return {e.parent.name for e in place.glob("*/*") if e.stat().st_mtime > LONG_AGO}


def test_code_is_there_for_the_coordinators_next_session_and_for_no_other(files, place, tmp_path):
    with worker(files, place, tmp_path) as cluster:
        first = run(cluster, files["host"])
        kept = inodes(place)
        ((mine, _),) = kept
        set_back(place)
        assert run(cluster, files["other"]) == first
        assert kept.items() < inodes(place).items()
        assert read_of(place) == {folder for folder, _ in inodes(place)} - {mine}  # of the other
    set_back(place)
    kept = inodes(place)
    with worker(files, place, tmp_path) as cluster:  # the worker starts again
        assert run(cluster, files["host"]) == first
        assert inodes(place) == kept  # nothing was compiled
        assert read_of(place) == {mine}
    assert "dropped" not in (tmp_path / "alice.log").read_text()


POISON = """
from mplang_cache import code_key, compiled_code
cache, key = compiled_code._used[0], code_key("xla", "poison")
"""


def test_what_an_engine_leaves_reaches_its_own_coordinator_alone(files, place, tmp_path):
    with worker(files, place, tmp_path) as cluster:
        with mp.connect("http", cluster.spec, tls=files["host"]) as host:
            assert act(host, f"{POISON}\ncache.put(key, b'poison')") == 0
            for path in (place, place.parent / "compiled.key"):
                assert act(host, f"open({str(path)!r})") != 0  # it has neither
        found = f"{POISON}\nif cache.get(key): raise OSError(77, '')"
        with mp.connect("http", cluster.spec, tls=files["other"]) as host:
            assert act(host, found) == 0
        with mp.connect("http", cluster.spec, tls=files["host"]) as host:
            assert act(host, found) == 77
            large = f"{POISON}\ncache.put(key, bytes((1 << 20) + 1))\nimport mplang_cache"
            assert act(host, large) == 0
            assert act(host, found) == 77  # what was there before
    assert all(entry.stat().st_size < 1000 for entry in place.glob("*/*"))


def test_an_entry_that_was_changed_is_dropped_and_compiled_anew(files, place, tmp_path):
    with worker(files, place, tmp_path) as cluster:
        first = run(cluster, files["host"])
        (entry,) = place.glob("*/*")
        whole = entry.read_bytes()
        entry.write_bytes(whole[:-1])
        log = LogReader(tmp_path / "alice.log")
        assert run(cluster, files["host"]) == first
        log.wait_for("is dropped, and made anew: it is damaged")
        assert len(entry.read_bytes()) > len(whole) // 2


def test_without_the_section_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLANG_COMPILED_CODE", str(tmp_path / "an-analysts"))
    with LocalCluster(1) as cluster:
        run(cluster, None)
    assert not any(tmp_path.iterdir())


# -- the configuration


def test_the_section_has_what_its_protocol_asks_for(place):
    from mplang_cache.section import SECTION

    config = WorkerConfig(name="alice", compiled_code=str(place))
    assert isinstance(SECTION, Section)
    assert isinstance(provider_of(config, "compiled_code", Provider), Provider)
    assert config.section("compiled_code") == {
        "folder": str(place), "key_file": f"{place}.key", "size": 64 << 20, "entries": 4096,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (7, "expected a folder, or its fields"),
        ({"folder": "c", "key_file": "c/key"}, "key_file must be outside of"),
        ({"folder": "c", "size": 0}, "field 'size'"),
        ({"foldr": "c"}, "did you mean 'folder'"),
    ],
)
def test_what_is_wrong_with_it_is_told(fields, told):
    with pytest.raises(ConfigError, match=f"field 'compiled_code'.*{told}|{told}"):
        WorkerConfig(name="alice", compiled_code=fields)


def test_a_worker_does_not_start_with_a_folder_that_is_open_to_others(place):
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    config = WorkerConfig(name="alice", compiled_code=str(place))
    with pytest.raises(ConfigError, match="field 'compiled_code': .*open to other users"):
        provider_of(config, "compiled_code", Provider)
