"""Bytes at an owner: a coordinator that is refused over and over fills no disk, whatever it asks.

All places together: the log of the gate, what the worker logs, and what is stored.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from http_raw import DOUBLE, RawWorker, Response, changed
from mplang_http import LocalCluster
from mplang_http.tls.contexts import client_context
from mplang_policy import Ledger
from mplang_policy.ledger import Entry
from mplang_testing.waiting import DEADLINE, wait_until
from mplang_worker.tls.keygen import make_certificates

import mplang_core as mp
from mplang_core.errors import MPLangError

NAMES = ["bank", "shop"]
WHO = ["host", "other"]
MANY = [f"column_of_a_wide_table_{i}" for i in range(400)]
RULES = 'permit (principal, action in [Action::"run", Action::"read"], resource);\n'
A_FEW = 10  # refusals of a test; a thousand take minutes
MOST = 10_000  # bytes of one: a thousand are under 10 MB
WIDE = chr(0x10000)  # 12 bytes in JSON


class Owner:
    """A bank whose rules permit no result to leave it, and all that it keeps on disk."""

    def __init__(self, folder: Path, rules: str = RULES, **gate: Any) -> None:
        self.folder = folder / "owner"
        (self.folder / "logs").mkdir(parents=True)
        pd.DataFrame({"a": [1, 2]}).to_csv(folder / "t.csv", index=False)
        pd.DataFrame({name: [1, 2] for name in MANY}).to_csv(folder / "wide.csv", index=False)
        (folder / "bank.cedar").write_text(rules)
        columns = {"t": {"a": "int64"}, "wide": dict.fromkeys(MANY, "int64")}
        data = {
            name: {"source": f"csv:{folder}/{name}.csv", "columns": each, "readers": WHO}
            for name, each in columns.items()
        }
        self.files = make_certificates(folder / "keys", [*NAMES, *WHO])
        gate |= {"policy": str(folder / "bank.cedar"), "log": str(self.folder / "gate.db")}
        self.cluster = LocalCluster(
            NAMES, tls=self.files, data={"bank": data}, gates={"bank": gate}, mode="production",
            coordinators=WHO, sink=self.folder, log=str(self.folder / "logs"), log_level="info",
            log_format="json",
        )  # fmt: skip

    def connect(self, who: str = "host"):
        return mp.connect("http", self.cluster.spec, tls=self.files[who])

    def size(self) -> int:
        """Return the bytes of the bank's files, without SQLite's journal."""
        return sum(path.stat().st_size for path in self._files() if "db-" not in path.suffix)

    def journal(self) -> int:
        """Return the bytes of SQLite's journal, which is used again when it has some megabytes."""
        return sum(path.stat().st_size for path in self._files() if "db-" in path.suffix)

    def _files(self) -> list[Path]:
        found = self.folder.rglob("*")
        return [path for path in found if path.is_file() and "shop" not in str(path)]

    def log(self) -> list[Entry]:
        """Return the log of the gate."""
        with contextlib.closing(Ledger(self.folder / "gate.db", read_only=True)) as ledger:
            return list(ledger.entries())

    def recorded(self) -> list[str]:
        """Return all texts of the log, and what they speak of."""
        with contextlib.closing(sqlite3.connect(self.folder / "gate.db")) as file:
            query = "SELECT body FROM log UNION ALL SELECT body FROM details"
            return [text for (text,) in file.execute(query)]

    def refusals(self) -> int:
        """Return how many refusals it has."""
        return sum(each.kind == "refusal" for each in self.log())


class Session(RawWorker):
    """Session of the coordinator with the bank alone, by requests of its own.

    Args:
        owner: the bank.
    """

    def __init__(self, owner: Owner) -> None:
        super().__init__(owner.cluster, 0, client_context(owner.files["host"], "http/1.1"))

    def __enter__(self) -> Session:
        self.session = self.open()
        self.path = f"/v1/sessions/{self.session}"
        return self

    def __exit__(self, *_: object) -> None:
        self.ask("DELETE", self.path)

    def put(self, place: str) -> Response:
        return self.ask("PUT", self.path + place, b"[]")

    def refuse(self, what: str) -> None:
        assert REQUESTS[what](self).status in (400, 403, 422)


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    made = Owner(tmp_path_factory.mktemp("refused"))
    with made.cluster:
        yield made


@pytest.fixture
def host(owner):
    with owner.connect() as made:
        yield made


def table():
    return mp.dataset("bank", "t")


def renamed(*names):
    """Return a program with a result per name, each a table with one column of that name."""

    def program():
        return [mp.device("P0")(lambda t, n=name: t.select(**{n: t.a}))(table()) for name in names]

    return program


def of_many_columns():
    return mp.dataset("bank", "wide")


def called(name: str):
    """Return a program of that name."""

    def program():
        return table()

    program.__name__ = program.__qualname__ = name
    return program


def in_file(name: str):
    """Return a program whose lines are of that file."""
    scope = {"table": table}
    exec(compile("def program():\n    return table()\n", name, "exec"), scope)
    return scope["program"]


PROGRAMS: dict[str, Callable[[], object]] = {
    "names of columns": renamed(*(chr(0x10000 + i) * 13_000 for i in range(5))),
    "many names of columns": renamed(*(f"{i}{'x' * 300}" for i in range(20))),
    "columns": of_many_columns,
    "name of the program": called("n" * 50_000),
    "wide name of the program": called(WIDE * 20_000),
    "lines": in_file(f"/{'d' * 200}/{WIDE * 4000}.py"),
}


def unknown_op(session):
    """Upload a program with an op whose name is long."""

    def rename(envelope):
        envelope[5][1][0][4][0][1][1][0][0] = f"kit.{WIDE * 20_000}"

    return session.put_program(changed(DOUBLE, rename), session.session)


REQUESTS: dict[str, Callable[[Session], Response]] = {
    "a program that is none": lambda it: it.put_program(os.urandom(50_000), it.session),
    "an op that is not known": unknown_op,
    "a value that may not be put": lambda it: it.put(f"/values/{'v' * 120}"),
    "a value with a name of others": lambda it: it.put(f"/values/public.{'v' * 100}"),
    "an input of another name": lambda it: it.put(f"/inputs/{'0' * 64}"),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_what_a_refused_run_leaves_is_small_whatever_its_program_is_called(owner, host, what):
    refuse = run_refused(host, what)
    refuse()  # with what is written once for a session
    assert grown(owner, refuse, A_FEW) < A_FEW * MOST


@pytest.mark.parametrize("what", REQUESTS)
def test_what_a_refused_request_leaves_is_small(owner, what):
    with Session(owner) as session:
        assert grown(owner, lambda: session.refuse(what), A_FEW) < A_FEW * MOST


def test_what_is_cut_is_on_record_by_its_hash(owner, host):
    name = "pay" * 10_000

    def program():
        return table()

    program.__name__ = name
    with pytest.raises(MPLangError):
        mp.evaluate(host, program)
    last = wait_until(lambda: [each for each in owner.log() if each.body.get("refused")])[-1]
    digest = hashlib.sha256(name.encode()).hexdigest()
    assert f"… (30000 characters, SHA-256 {digest})" in last.body["name"]


@pytest.mark.long("starts workers of its own, and one of them again")
def test_a_coordinator_that_uses_up_its_quota_stops_itself_alone(tmp_path):
    owner = Owner(tmp_path, bytes=20_000)

    def refused_by(host):
        with pytest.raises(MPLangError) as told:
            mp.evaluate(host, PROGRAMS["columns"])
        return str(told.value)

    with owner.cluster, owner.connect() as host:
        full = "does nothing more for host today"
        wait_until(lambda: full in refused_by(host), "its quota is used up")
        entries = len(owner.log())
        assert "(gate.bytes); wait for the next day" in refused_by(host)
        assert "does nothing more for host" in owner.log()[-1].body["why"]
        refused_by(host)
        assert len(owner.log()) == entries
        with owner.connect("other") as other:
            assert "no rule permits" in refused_by(other)
        assert len(owner.log()) == entries + 1
        owner.cluster.signal(0, signal.SIGKILL)
        owner.cluster.workers[0].wait(DEADLINE)
        owner.cluster.restart(0)
        with owner.connect() as again:
            assert full in refused_by(again)


@pytest.mark.long("starts workers of its own")
def test_permitted_runs_that_differ_have_the_quota_too(tmp_path):
    """What a run may do is on record once, so each writes another one."""
    most = 20_000
    owner = Owner(tmp_path, "permit (principal, action, resource);\n", bytes=most)
    numbers = itertools.count()

    def refused(host) -> str:
        try:
            mp.evaluate(host, renamed(*(f"{next(numbers)}{'n' * 60}" for _ in range(5))))
        except MPLangError as error:
            return str(error)
        return ""

    with owner.cluster, owner.connect() as host:
        wait_until(lambda: "(gate.bytes)" in refused(host), "its quota is used up")
        assert "(gate.bytes)" in refused(host)
        assert [each.kind for each in owner.log()].count("run") > 1
        assert sum(map(len, owner.recorded())) < most


@pytest.mark.timeout(1200)
@pytest.mark.slow("runs five hundred refused programs, and sends as many requests")
def test_a_thousand_refusals_are_under_ten_megabytes_in_all_places_together(owner, host):
    times, journal = 1000 // (len(PROGRAMS) + len(REQUESTS)) + 1, owner.journal()
    count, size = 0, owner.size()
    for what in PROGRAMS:
        grown(owner, run_refused(host, what), times)
        count += times
    for what in REQUESTS:
        with Session(owner) as session:
            grown(owner, functools.partial(session.refuse, what), times)
            count += times
    assert count >= 1000
    assert owner.size() - size + max(0, owner.journal() - journal) < 10_000_000


def run_refused(host, what: str) -> Callable[[], None]:
    """Return a function that asks for a run that is refused."""

    def refuse():
        with pytest.raises(MPLangError):
            mp.evaluate(host, PROGRAMS[what])

    return refuse


def grown(owner, refuse: Callable[[], None], times: int) -> int:
    """Return how many bytes some refusals leave at the owner."""
    before, size = owner.refusals(), owner.size()
    for _ in range(times):
        refuse()
    wait_until(lambda: owner.refusals() >= before + times, "all refusals are on record")
    return owner.size() - size
