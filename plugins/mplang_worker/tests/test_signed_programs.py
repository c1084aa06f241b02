"""Approvals on live workers: for one program as it was shown, and for nothing that is like it."""

from __future__ import annotations

import datetime
from contextlib import closing
from pathlib import Path

import mplang_jax  # noqa: F401  (compiled code)
import pytest
from bank_and_shop import YEAR, at_bank, most, people, raw_of, refused
from mplang_policy import Ledger
from mplang_testing.waiting import wait_until

import mplang_core as mp
from mplang_core.errors import MPLangError


@pytest.fixture(scope="module")
def host(bank):
    with bank.connect() as made:
        yield made


def total(year):
    table = at_bank(lambda t: t.agg(pay=t.pay.sum() + 3), people())
    return table, mp.device("P1")(lambda y: y * 3)(year)


def other_constant(year):
    table = at_bank(lambda t: t.agg(pay=t.pay.sum() + 4), people())
    return table, mp.device("P1")(lambda y: y * 3)(year)


def other_sql(year):
    table = at_bank(lambda t: t.filter(t.id != 7).agg(pay=t.pay.sum() + 3), people())
    return table, mp.device("P1")(lambda y: y * 3)(year)


def other_code(year):
    table = at_bank(lambda t: t.agg(pay=t.pay.sum() + 3), people())
    return table, mp.device("P1")(lambda y: y * 4)(year)


def parts_of_both(year):
    return total(year), most()


def test_an_approved_program_runs_and_none_that_is_nearly_the_same(approvals, host):
    bank = approvals
    bank.approve(total, YEAR, inputs=["year=2015..2025"], uses=3)
    bank.approve(most)
    for changed in (other_constant, other_sql, other_code, parts_of_both):
        changed.__name__ = "total"
        assert "is for program" in refused(bank, host, changed, 2020)
    assert "year is 2026, and may be from 2015 to 2025" in refused(bank, host, total, 2026)
    mp.fetch(host, mp.evaluate(host, total, 2020))
    with bank.connect("other") as other:
        assert "it is for host" in refused(bank, other, total, 2020)


WRONG = {
    "expired": ({"expires": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)}, "expired"),
    "of another party": ({"made_for": "shop"}, "it is of shop"),
    "of another digest": ({"program": "0" * 64}, "it is for program 000000000000"),
    "of another coordinator": ({"coordinators": ("other",)}, "it is for other"),
    "of other versions": ({"versions": {"numpy": "0.1"}}, "numpy"),
    "of an unlisted key": ({"key": "eve"}, "mp.guard.aggregate"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_approval_that_does_not_count(approvals, host, case):
    changes, told = WRONG[case]
    approvals.approve(most, **changes)
    assert told in refused(approvals, host, most)


def test_an_approval_that_is_used_up_or_revoked_or_replayed(approvals, host):
    bank = approvals
    found = bank.approve(most)
    mp.fetch(host, mp.evaluate(host, most))
    assert "its 1 uses are used up" in refused(bank, host, most)
    file = bank.folder / f"{found.id}.approval"
    (bank.folder / "again.approval").write_bytes(file.read_bytes())
    assert "its 1 uses are used up" in refused(bank, host, most)
    another = bank.approve(most)
    with closing(Ledger(bank.folder / "bank.db")) as ledger, ledger.writing() as writing:
        writing.revoke(another.id)
    assert "it was revoked" in refused(bank, host, most)


def orders():
    return mp.dataset("shop", "orders")


def test_an_approval_that_one_of_two_has_signed(approvals, host):
    """The shop wants two signatures."""
    bank, before = approvals, len(approvals.log("shop"))
    for signers in ({"key": "ann"}, {"key": "eve"}, {"key": "ann", "also": "ann"}):
        bank.approve(orders, party="shop", **signers)
        with pytest.raises(MPLangError, match="once shop has approved this program"):
            mp.evaluate(host, orders)
    # a run that the bank refused before, of ``most``, may still begin and end at the shop
    entries = [each for each in bank.log("shop")[before:] if each.body.get("name") != "most"]
    kinds = [each.kind for each in entries if each.kind not in ("end", "approval")]
    assert kinds == ["refusal"] * 3
    bank.approve(orders, party="shop", key="ann", also="eve")
    mp.fetch(host, mp.evaluate(host, orders))


def best_paid_and_orders():
    return most(), orders()


def test_an_approval_is_not_used_up_by_a_run_that_another_party_refuses(approvals, host):
    """Each attempt is on record at both; the only use is that of the run that all permit."""
    bank = approvals
    approval, before = bank.approve(best_paid_and_orders), len(bank.log())
    for _ in range(2):
        with pytest.raises(MPLangError, match="once shop has approved this program"):
            mp.evaluate(host, best_paid_and_orders)

    def attempts():
        return [each for each in bank.log()[before:] if each.kind == "attempt"]

    wait_until(lambda: len(attempts()) == 2, "both attempts are on record")
    assert {each.body["name"] for each in attempts()} == {"best_paid_and_orders"}
    with closing(Ledger(bank.folder / "bank.db", read_only=True)) as ledger:
        assert approval.id not in ledger.uses()
    bank.approve(best_paid_and_orders, party="shop", key="ann", also="eve")
    mp.evaluate(host, best_paid_and_orders)
    with closing(Ledger(bank.folder / "bank.db", read_only=True)) as ledger:
        assert ledger.uses()[approval.id] == 1


def test_a_data_set_that_has_grown_is_still_the_one_that_was_approved(approvals, host):
    """Its bound is published, and its rows are not."""
    bank = approvals
    bank.approve(orders, party="shop", key="ann", also="eve", uses=2)
    before = mp.fetch(host, mp.evaluate(host, orders)).num_rows
    with (bank.folder / "orders.csv").open("a") as file:
        file.write("1000\n1001\n")
    assert mp.fetch(host, mp.evaluate(host, orders)).num_rows == before + 2


# -- approvals that the coordinator passes on


def passed_on(bank, **changes) -> str:
    """Return the file of an approval that only the coordinator has."""
    found = bank.approve(most, **changes)
    (bank.folder / "given").mkdir(exist_ok=True)
    moved = (bank.folder / f"{found.id}.approval").rename(bank.folder / "given" / found.id)
    return str(moved)


def test_an_approval_travels_with_the_job(bank):
    given = passed_on(bank)
    with bank.connect() as host:
        assert "it discloses single rows" in refused(bank, host, people)
        assert "once bank has approved this program" in refused(bank, host, most)
    with bank.connect(approvals=[given]) as host:
        mp.fetch(host, mp.evaluate(host, most))
        assert "its 1 uses are used up" in refused(bank, host, most)
    with bank.connect(approvals=[given]) as host:
        assert "its 1 uses are used up" in refused(bank, host, most)


@pytest.mark.parametrize("changes", [{"key": "eve"}, {"made_for": "shop"}])
def test_an_approval_that_counts_nowhere_is_told(bank, changes):
    given = passed_on(bank, **changes)
    with pytest.raises(MPLangError, match="counts at no party"), bank.connect(approvals=[given]):
        pass


def test_what_is_no_approval_is_not_passed_on(bank):
    with pytest.raises(MPLangError, match="cannot read the approval nowhere"):
        bank.connect(approvals=["nowhere"])
    raw = raw_of(bank)
    path = f"/v1/sessions/{raw.open()}/approvals"
    for data in (b"", b"[]", b"{" * 100_000, b'{"payload": 1}', b"\xff"):
        assert raw.ask("POST", path, data).status == 403
    signed = Path(passed_on(bank, key="eve")).read_bytes()
    assert raw.ask("POST", path, signed).json == {"counts": False}
    assert raw.ask("POST", path, b" " * (2 << 20)).status == 413
    for _ in range(64):
        assert raw.ask("POST", path, Path(passed_on(bank)).read_bytes()).json == {"counts": True}
    assert raw.ask("POST", path, Path(passed_on(bank)).read_bytes()).status == 429
