"""What peers remember of a log: innocent ones are never accused, and no entry is taken back."""

from __future__ import annotations

import json
import os
import random
import shutil
from contextlib import closing

import pytest
from mplang_policy import Ledger
from mplang_policy.signed_heads import GateKey, HeadError, Seal, SignedHead, verifies
from mplang_policy.witness import BEFORE, Witness

from mplang_core.ext import ConfigError


class Party:
    """Party with a log, which tells others of it as its gate does."""

    def __init__(self, folder, name: str) -> None:
        self.name, self.path = name, folder / f"{name}.db"
        self.open()

    def open(self) -> None:
        self.ledger, self.key = Ledger(self.path), GateKey(self.path)
        self.witness = Witness(self.name, self.ledger, self.key)

    def run(self, name: str = "run", seen=None) -> bytes:
        """Have a run on record, and return the head that contains it."""
        with self.ledger.writing() as writing:
            writing.add("run", {"run": name})
            return self.witness.head(name, seen or {}, writing).encode()

    def runs(self, count: int) -> list[bytes]:
        return [self.run() for _ in range(count)]

    def fill(self, count: int) -> None:
        """Have runs on record that others are not told of."""
        with self.ledger.writing() as writing:
            for _ in range(count):
                writing.add("run", {"run": "run"})

    def note(self, other: Party, head: bytes, name: str = "run"):
        """Note a head of another party, as at the end of a run; return what is accepted."""
        with self.ledger.writing() as writing:
            heads = {other.name: (head, other.key.public)}
            return self.witness.note(writing, name, heads)

    def seen_by(self, other: Party) -> dict[str, str]:
        return {other.name: other.witness.seen([self.name])[self.name]}

    def findings(self) -> list[str]:
        kinds = [each.kind for each in self.ledger.entries()]
        return [kind for kind in kinds if kind in ("set back", "not shown")]

    def save(self) -> None:
        self.ledger.close()
        shutil.copy(self.path, f"{self.path}.backup")
        self.open()

    def restore(self) -> None:
        self.ledger.close()
        shutil.copy(f"{self.path}.backup", self.path)
        self.open()


@pytest.fixture
def parties(tmp_path):
    bank, shop = Party(tmp_path, "bank"), Party(tmp_path, "shop")
    yield bank, shop
    bank.ledger.close()
    shop.ledger.close()


def test_heads_that_come_in_any_order_accuse_nobody(parties):
    """Runs of twenty coordinators end as they like: an older head is on the chain that is known."""
    bank, shop = parties
    heads = shop.runs(60)
    for head in random.Random(7).sample(heads, 60):
        bank.note(shop, head)
    assert bank.findings() == []
    assert bank.ledger.heads()["shop"] == shop.ledger.head


@pytest.mark.parametrize("back", range(1, 11))
def test_each_of_the_last_ten_runs_is_remembered(parties, back):
    bank, shop = parties
    shop.fill(20)
    shop.save()
    for head in shop.runs(back):
        bank.note(shop, head)
    assert shop.witness.missing(shop.seen_by(bank)) is None
    shop.restore()
    who, why = shop.witness.missing(shop.seen_by(bank))
    assert who == "bank"
    assert "bank remembers entry" in why
    assert why.endswith("the log was set back")  # its own signature proves it
    # one with dishonest code goes on all the same: the peer has it on record with that run
    bank.note(shop, shop.run())
    assert bank.findings() == ["set back"]


def test_a_log_that_has_overtaken_what_is_remembered_has_to_show_it(parties):
    bank, shop = parties
    for head in shop.runs(3):
        bank.note(shop, head)
    shop.fill(2 * BEFORE)  # with other peers
    bank.note(shop, shop.run(seen=shop.seen_by(bank)))
    assert bank.findings() == []
    shop.save()
    for head in shop.runs(3):
        bank.note(shop, head)
    shop.restore()
    shop.fill(2 * BEFORE)
    bank.note(shop, shop.run(seen=shop.seen_by(bank)))
    assert bank.findings() == ["set back"]


def test_what_is_not_shown_accuses_nobody(parties):
    bank, shop = parties
    bank.note(shop, shop.run())
    shop.fill(2 * BEFORE)
    bank.note(shop, shop.run())  # which was asked for nothing
    assert bank.findings() == ["not shown"]
    bank.note(shop, shop.run())
    assert bank.findings() == ["not shown"]


def test_a_backup_that_is_far_behind_is_not_shown_and_known_on(parties):
    bank, shop = parties
    shop.run()
    shop.save()
    shop.fill(1500)
    bank.note(shop, shop.run())
    before = bank.ledger.heads()
    shop.restore()
    bank.note(shop, shop.run(seen=shop.seen_by(bank)))
    assert bank.findings() == ["not shown"]
    assert bank.ledger.heads() == before  # so the party itself finds that it lacks it
    assert shop.witness.missing(shop.seen_by(bank)) is not None


@pytest.mark.parametrize("back", [False, True])
def test_what_an_earlier_version_remembers_goes_on_counting(parties, back):
    """Commit f9a7ea0 kept number and hash of the last entry, and no signature."""
    bank, shop = parties
    shop.fill(3)
    shop.save()
    shop.fill(1)
    with bank.ledger.writing() as writing:
        row = ("shop", *shop.ledger.head, 0.0)
        writing.changed(lambda file: file.execute("INSERT INTO heads VALUES (?, ?, ?, ?)", row))
    if back:
        shop.restore()
        _, why = shop.witness.missing(shop.seen_by(bank))
        assert why.endswith(
            "the log was set back, or bank, or its coordinator, lies: no signature proves it"
        )  # it was never signed
    assert bank.note(shop, shop.run()) != {}
    assert bank.findings() == (["set back"] if back else [])
    assert bank.ledger.heads()["shop"].number == 4 + (not back)


def test_an_engine_makes_no_head(parties):
    """What it carries is as its gate has signed it, for this run, or counts for nothing."""
    bank, shop = parties
    head = shop.run("s-1")
    signed = SignedHead.read(head, shop.key.public)
    last = shop.ledger.head
    forged = [
        signed._replace(party="clinic"),
        signed._replace(run="s-2"),
        signed._replace(before=["0" * 64] * 5),
        signed._replace(shown={"bank": last}),
        signed._replace(seal=signed.seal._replace(number=99)),
        signed._replace(seal=signed.seal._replace(hash="0" * 64)),
    ]
    for each in (*(made.encode() for made in forged), b"", b"[]", b"[" * 60_000, head[:-1]):
        with pytest.raises(HeadError):
            SignedHead.read(each, shop.key.public)
        assert bank.note(shop, each, "s-1") == {}
    with pytest.raises(HeadError, match="its signature is not of the gate"):
        SignedHead.read(head, bank.key.public)
    assert bank.note(shop, head, "s-2") == {}  # an older one, said again
    assert bank.ledger.heads() == {}
    assert bank.note(shop, head, "s-1") == {"shop": [*last]}


def test_no_head_keeps_the_end_of_a_run_off_the_record(parties):
    """Neither what an engine makes, nor what a peer signs that is not a chain of hashes."""
    bank, shop = parties
    made = ["shop", "run", "1:" + "a" * 64, "", {"x": [float("inf"), "a"]}]
    last = shop.ledger.head
    signed = shop.key.sign("shop", "run", last._replace(number=2, hash="a" * 64), ["z" * 64], {})
    for each in (json.dumps(made).encode(), signed.encode()):
        assert bank.note(shop, each) == {}
    assert bank.ledger.heads() == {}


def test_what_a_peer_says_to_remember_and_nobody_signed_proves_nothing(parties):
    _, shop = parties
    shop.run()
    _, why = shop.witness.missing({"bank": "7:" + "a" * 64})
    assert why.endswith(
        "the log was set back, or bank, or its coordinator, lies: no signature proves it"
    )
    _, why = shop.witness.missing({"bank": "nonsense"})
    assert why.endswith(
        "an impossible head of this party's log: bank, or its coordinator, lies"
    )  # its engine tells it


@pytest.mark.parametrize(
    "text", ["", "7", "7:ab", "x:" + "a" * 64, "7:" + "g" * 64, "٧:" + "a" * 64]
)
def test_a_seal_is_read_as_it_is_written(text):
    with pytest.raises(HeadError):
        Seal.read(text)
    for seal in (Seal(7, "a" * 64), Seal(7, "a" * 64, "b" * 64, "c" * 128)):
        assert Seal.read(seal.to_text()) == seal


def test_the_key_of_a_gate_is_made_once_and_is_its_owners(tmp_path):
    first = GateKey(tmp_path / "gate.db")
    assert os.stat(tmp_path / "gate.db.key").st_mode & 0o777 == 0o600
    assert GateKey(tmp_path / "gate.db").public == first.public
    assert [each.name for each in tmp_path.iterdir()] == ["gate.db.key"]
    seal = first.sign("bank", "run", (1, "a" * 64), [], {}).seal
    assert verifies(first.public, seal)
    (tmp_path / "gate.db.key").write_text("no key")
    with pytest.raises(ConfigError, match=r"cannot use the key .*gate\.db\.key"):
        GateKey(tmp_path / "gate.db")


def test_a_transaction_that_fails_leaves_no_hash_that_others_are_told(parties):
    bank, shop = parties
    bank.note(shop, shop.run())

    def fail():
        with shop.ledger.writing() as writing:
            writing.add("run", {"run": "failed"})
            shop.witness.head("failed", {}, writing)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    for head in shop.runs(3):
        bank.note(shop, head)
    assert bank.findings() == []
    with closing(Ledger(shop.path, read_only=True)) as ledger:
        assert bank.ledger.heads()["shop"] == ledger.head
