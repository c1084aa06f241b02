"""Receipts that a coordinator keeps: of each gate the last one, whoever wrote it."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest
from mplang_http.cli.receipts import receipts as command
from mplang_http.coordinator.receipts import Receipt, Receipts, receipts_path
from mplang_http.coordinator.remote_worker import RemoteWorker

from mplang_core.errors import ConfigError

GATE = "a" * 64


def receipt(number: int, party: str = "bank", when: float = 0.0) -> Receipt:
    text = f"{number}:{'b' * 64}:{'c' * 64}:{'d' * 128}"
    return Receipt(party, "https://bank:9000", f"s-{number}", when, text)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return receipts_path()


def test_the_last_receipt_of_a_gate_is_told_to_it_whoever_got_it(path):
    first, second = Receipts(), Receipts()
    assert first.latest(GATE) == ""
    assert not path.exists()
    for number in (3, 9, 7):
        first.keep(GATE, receipt(number))
    second.keep("b" * 64, receipt(12, "shop"))
    assert second.latest(GATE) == receipt(9).text
    assert [each.head for each in second.all() if each.party == "bank"] == [
        f"bank={number}:{'b' * 64}" for number in (3, 9, 7)
    ]
    assert os.stat(path).st_mode & 0o777 == 0o600
    for each in (first, second):
        each.close()


class Client:
    """Worker that says that it has a gate."""

    def __init__(self, name: str) -> None:
        self.name, self.address, self.is_closed = name, "https://bank:9000", False
        self.linked = b""

    def request(self, method, *path, body=(), **options):
        (self.linked,) = body
        return {"credential": {"gate": GATE}, "native": {}}


def test_a_worker_that_claims_the_gate_of_another_one_is_believed_of_itself_alone(path):
    kept, monitor = Receipts(), SimpleNamespace(update=lambda rank, status: None)
    bank, evil = (
        RemoteWorker(0, Client(name), "s", monitor, None, kept) for name in ("bank", "evil")
    )
    for worker, number in ((evil, 7), (bank, 7), (evil, 10**17)):
        worker.open({})
        worker._update(SimpleNamespace(run="s-0"), {"receipt": receipt(number, worker.name).text})
    bank.link({})
    assert json.loads(bank.client.linked) == {"receipt": receipt(7).text}
    kept.close()


@pytest.mark.parametrize("text", ["", "x:y", "9" * 20 + ":", "1:" + "b" * 600])
def test_what_is_no_receipt_is_not_kept(path, text):
    kept = Receipts()
    kept.keep(GATE, receipt(1)._replace(text=text))
    assert kept.latest(GATE) == ""


def test_a_host_that_can_write_nothing_runs_and_says_so_once(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    kept = Receipts(tmp_path / "file" / "receipts.db")
    for number in (1, 2):
        kept.keep(GATE, receipt(number))
    assert kept.latest(GATE) == receipt(2).text
    (message,) = caplog.messages
    assert "receipts of runs are not kept in" in message


def test_receipts_are_listed_and_forgotten(path, capsys):
    kept = Receipts()
    kept.keep(GATE, receipt(3))
    kept.keep("b" * 64, receipt(5, "shop", 60.0))
    command()
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"1970-01-01T00:00:00.000+00:00 bank=3:{'b' * 64} s-3 https://bank:9000",
        f"1970-01-01T00:01:00.000+00:00 shop=5:{'b' * 64} s-5 https://bank:9000",
    ]
    command(party="shop", as_json=True)
    assert '"text": "5:' in capsys.readouterr().out
    command(forget="bank")
    assert kept.latest(GATE) == ""
    with pytest.raises(ConfigError, match="there are no receipts of bank"):
        command(forget="bank")


def test_hosts_of_one_process_keep_their_locks_of_the_file(path):
    """Without, another process takes the log of SQLite away that is in use."""

    def locks() -> int:
        inode = f":{os.stat(path).st_ino} "
        return sum(f" {os.getpid()} " in line and inode in line for line in open("/proc/locks"))

    first, second = Receipts(), Receipts()
    first.keep(GATE, receipt(1))
    before = locks()
    second.keep(GATE, receipt(2))
    assert locks() == before > 0
    for each in (first, second):
        each.close()
