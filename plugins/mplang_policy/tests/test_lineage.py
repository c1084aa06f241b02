"""The gate remembers what stored values rest on, and tells each party once what is withdrawn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from mplang_analysis import ProgramRequest, RunRequest
from mplang_policy.gate import Gate
from mplang_policy.gate_config import GateConfig
from policy_testbed import PERMIT_ALL, names_of_bank


@pytest.fixture
def gate(tmp_path):
    (tmp_path / "rules.cedar").write_text(PERMIT_ALL)
    fields = {"policy": str(tmp_path / "rules.cedar"), "log": str(tmp_path / "gate.db")}
    made = Gate(GateConfig(**fields), "bank", names_of_bank())
    yield made
    made.close()


def begin(gate, run, at=(0,), **about):
    """Begin a run of bank, shop and clinic that stores something at parties."""
    asked = ProgramRequest(
        coordinator="analyst", party=0, names=("bank", "shop", "clinic"), program="0" * 64,
        name="p", rows=(), reads=(), stores={}, forms={}, mode="production", shown="0" * 64,
        storage=(("store", "x", at),) if at else (), spends=(), remarks=(),
    )  # fmt: skip
    asking = RunRequest(session="s", run=run, asked=asked, shared=f"analyst:s:{run}", **about)
    gate.begin(asking, gate.decide(asking))


def stop(gate, run):
    gate.stops.stop("analyst", [run], {"session": "s", "why": "the owner stopped it", "by": "cli"})


def test_what_rests_on_a_stopped_run_is_withdrawn_however_far(gate):
    for number in range(1, 50):
        begin(gate, f"s-{number}", loaded=[f"s-{number - 1}"])
    runs = {f"s-{number}" for number in range(50)}
    assert gate.lineage.withdrawn("analyst", runs) == set()
    stop(gate, "s-7")
    assert gate.lineage.withdrawn("analyst", runs) == {f"s-{number}" for number in range(7, 50)}
    assert gate.lineage.withdrawn("other", runs) == set()


def test_a_run_that_two_loads_make_rest_on_itself_is_no_endless_search(gate):
    gate.lineage.rest_on("analyst", "s-0", "s-1")
    gate.lineage.rest_on("analyst", "s-1", "s-0")
    assert gate.lineage.withdrawn("analyst", ["s-0"]) == set()


def test_what_begins_on_withdrawn_data_is_withdrawn_itself(gate):
    """Its session is about to be stopped, and has begun another run meanwhile."""
    begin(gate, "s-0")
    stop(gate, "s-0")
    assert gate.lineage.withdrawn("analyst", ["s-0"]) == {"s-0"}
    begin(gate, "s-1", loaded=["s-0"])
    begin(gate, "s-2")
    gate.lineage.rest_on("analyst", "s-2", "s-1")
    begin(gate, "s-3", loaded=["s-2"])
    assert gate.lineage.withdrawn("analyst", ["s-1", "s-2", "s-3"]) == {"s-1", "s-2", "s-3"}


def test_what_rests_on_an_approval_that_is_revoked_is_withdrawn(gate):
    begin(gate, "s-0", approved=["abc"])
    begin(gate, "s-1", loaded=["s-0"])
    assert gate.lineage.withdrawn("analyst", ["s-0", "s-1"]) == set()
    with gate._ledger.writing() as writing:
        writing.revoke("abc")
    assert gate.lineage.withdrawn("analyst", ["s-0", "s-1"]) == {"s-0", "s-1"}
    begin(gate, "s-2", approved=["abc"])
    assert gate.lineage.withdrawn("analyst", ["s-2"]) == {"s-2"}


def test_parties_that_have_stored_something_are_notified_once(gate):
    begin(gate, "s-0", at=(0,))
    begin(gate, "s-1", at=(1,), loaded=["s-0"])
    begin(gate, "s-2", at=())
    assert gate.lineage.notices() == ()
    stop(gate, "s-0")
    (notice,) = gate.lineage.notices()
    assert notice == ("analyst", "s-1", "shop")
    gate.lineage.notified(notice)
    assert gate.lineage.notices() == ()


def test_a_party_withdraws_what_runs_of_its_own_have_stored_and_that_is_on_record_once(gate):
    begin(gate, "s-0", at=(0,))
    about = {"why": "party shop has revoked it", "by": "party shop"}
    assert not gate.lineage.withdraw("analyst", "s-0", "eve", about)
    assert not gate.lineage.withdraw("other", "s-0", "shop", about)
    assert gate.lineage.withdrawn("analyst", ["s-0"]) == set()
    with ThreadPoolExecutor(4) as pool:
        asked = [("analyst", "s-0", "shop", about)] * 4
        assert all(pool.map(lambda each: gate.lineage.withdraw(*each), asked))
    assert gate.lineage.withdrawn("analyst", ["s-0"]) == {"s-0"}
    assert [each.kind for each in gate._ledger.entries()].count("stopped") == 1
    assert gate.lineage.notices() == ()  # shop knows, and clinic has stored nothing
