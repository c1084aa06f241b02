"""Expiry of stored values: each is on record before it is deleted, and what is used stays."""

from __future__ import annotations

import contextlib
import json
import time
from types import SimpleNamespace

import pytest
from mplang_data.stored import Sink, SinkConfig, StoreError
from mplang_data.stored.section import SECTION
from mplang_data.stored.server import SinkServer
from mplang_data.stored.versions import versions_of
from test_sink import entry, write

from mplang_core.errors import ConfigError

DAY = 86_400.0
RULE = {"retention": {"stored": "30d"}}


class SinkOfTests:
    """Sink with a rule, and the time that is told to it in days from now."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.sink = Sink(SinkConfig(folder=str(folder), **RULE))
        self.server = SinkServer(self.sink)
        self.noted: list[dict] = []

    def store(self, number=1, by="session", **fields):
        made = entry(number, **fields)
        write(self.sink, made, number, by=by)
        self.sink.commit("host", by, made.name, made.version)
        return made

    def settle(self, made, by="session"):
        self.sink.settle("host", by, made.name, made.version)

    def expire(self, days, note=None):
        self.server.expire(time.time() + days * DAY, note or self.noted.append)

    @property
    def names(self):
        return sorted(self.sink.entries("host"))


@pytest.fixture
def here(tmp_path):
    made = SinkOfTests(tmp_path / "sink")
    with contextlib.closing(made.sink):
        yield made


def test_a_value_expires_once_it_is_on_record(here):
    made = here.store()
    here.settle(made)
    here.expire(29.9)
    assert (here.names, here.noted) == (["model"], [])

    def note(about):
        assert here.names == ["model"]  # it is recorded before it is deleted
        here.noted.append(about)

    here.expire(30.1, note)
    assert here.names == []
    (about,) = here.noted
    assert about["values"] == [f"host/model, version {made.version[:8]}"]
    assert (about["count"], about["rule"]) == (1, "sink.retention.stored: 30d")
    assert list(here.folder.glob("host/*")) == []
    here.expire(31)
    assert len(here.noted) == 1


def test_what_cannot_be_recorded_is_not_deleted(here):
    here.settle(here.store())

    def note(about):
        raise OSError("the log is full")

    with pytest.raises(OSError, match="full"):
        here.expire(31, note)
    assert here.names == ["model"]
    here.expire(31)  # such as after a crash between record and deletion
    assert here.names == []


def test_what_a_session_stores_or_may_load_stays_until_it_is_done(here):
    made = here.store()
    here.expire(31)
    assert here.names == ["model"]  # it is not settled
    here.settle(made)
    here.server.versions(SimpleNamespace(coordinator="host", session="reader"), "model")
    here.expire(31)
    assert here.names == ["model"]
    here.sink.done("reader")
    here.expire(31)
    assert here.names == []


def test_nobody_stores_a_value_while_it_is_deleted(here):
    here.settle(here.store())
    folder = here.folder / "host" / "model"
    with here.sink.expiring(folder), pytest.raises(StoreError, match="try again"):
        here.store(2)
    here.settle(here.store(2))
    assert here.names == ["model"]


def test_a_version_of_an_interrupted_run_expires_alone(here):
    old = entry(1)
    write(here.sink, old, 1)
    here.sink.abandon("host", "session", "model", old.version, told=True)
    folder = here.folder / "host" / "model"
    file = folder / old.version / "entry.json"
    fields = json.loads(file.read_text())
    fields["entry"]["time"] -= 40 * DAY
    file.write_text(json.dumps(fields))
    new = here.store(2)
    here.sink.release("session")
    assert sorted(versions_of(folder)) == sorted([old.version, new.version])
    here.expire(1)
    assert versions_of(folder) == [new.version]
    assert here.names == ["model"]


def test_what_a_killed_process_was_writing_is_removed_when_the_next_starts(here):
    here.settle(here.store())
    here.sink.close()
    left = here.folder / "host" / "model" / ".new-0123"
    left.mkdir()
    (left / "value.npy").write_bytes(b"secret")
    here.sink = Sink(SinkConfig(folder=str(here.folder)))
    assert not left.exists()
    assert here.names == ["model"]


def test_many_values_are_recorded_by_their_names(here):
    for number in range(25):
        here.settle(here.store(number, name=f"v{number}"))
    here.expire(31)
    assert [len(about["values"]) for about in here.noted] == [20, 5]
    assert here.names == []


def test_what_will_expire_is_listed(here):
    here.settle(here.store())
    fields = {"folder": str(here.folder), **RULE}
    ((rule, what, when),) = SECTION.expiring(SECTION.read(fields, "/"))
    assert (rule, what) == ("sink.retention.stored", f"host/model, version {'0' * 8}")
    stored = max(each.stat().st_mtime for each in here.folder.rglob("*"))
    assert round((when - stored) / DAY) == 30
    assert SECTION.retention({"folder": "/srv"}) == {}
    assert list(SECTION.expiring({"folder": str(here.folder)})) == []
    with pytest.raises(ConfigError, match=r"sink.*retention.*stored"):
        SECTION.read({"folder": "/srv", "retention": {"stored": "soon"}}, "/")
