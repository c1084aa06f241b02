"""Nothing is loaded that was made of what a revoked run has stored, at whichever party it is."""

from __future__ import annotations

import pytest
from mplang_testing.waiting import wait_until
from processes import processes_of_sessions
from stop_testbed import Stoppable, quick

import mplang_core as mp
from mplang_core.errors import MPLangError, PartyError


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    made = Stoppable(tmp_path_factory.mktemp("lineage"), controlled="bank", tls=True)
    with made.cluster:
        yield made


@pytest.fixture
def connect(workers):
    return lambda: mp.connect("http", workers.cluster.spec, tls=workers.cluster.tls)


def stored_as(name):
    """Return a program that stores the pay under a name, which needs an approval to be told."""

    def told_and_stored() -> mp.MPObject:
        pay = quick()
        mp.store(pay, name)
        return pay

    return told_and_stored


def copied(name, copy, at="P0"):
    """Return a program that stores under another name what it loads at the bank."""

    def copying() -> None:
        loaded = mp.load("P0", name)
        mp.store(loaded if at == "P0" else mp.put(at, loaded), copy)

    return copying


def loading(device, name):
    def load() -> mp.MPObject:
        return mp.keep(mp.load(device, name))

    return load


def test_what_was_made_of_a_value_is_withdrawn_with_the_run_that_stored_the_value(workers, connect):
    program, approval = workers.approved(stored_as("pay1"), workers.cluster.spec)
    for each in (program, copied("pay1", "copy1"), copied("copy1", "again1")):
        with connect() as host:  # a session for each
            mp.evaluate(host, each)
    with connect() as host:
        mp.evaluate(host, loading("P0", "again1"))
    workers.revoke(approval)
    with connect() as host:
        for name in ("pay1", "copy1", "again1"):
            with pytest.raises(PartyError, match=f"bank does not load '{name}'"):
                mp.evaluate(host, loading("P0", name))


def test_what_a_later_run_of_the_session_stored_is_withdrawn_too(workers, connect):
    """It may be made of what the run before has made."""
    program, approval = workers.approved(quick, workers.cluster.spec)
    with connect() as host:
        mp.evaluate(host, program)
        mp.evaluate(host, lambda: mp.store(mp.constant(1), "later"))
    workers.revoke(approval)
    with connect() as host, pytest.raises(PartyError, match="does not load 'later'"):
        mp.evaluate(host, loading("P0", "later"))


def test_a_session_that_has_loaded_what_is_withdrawn_ends(workers, connect):
    program, approval = workers.approved(stored_as("pay2"), workers.cluster.spec)
    with connect() as host:
        mp.evaluate(host, program)
    with connect() as host:
        mp.evaluate(host, loading("P0", "pay2"))
        workers.revoke(approval)
        wait_until(lambda: not processes_of_sessions(workers.cluster.workers[0].pid))
        with pytest.raises(MPLangError, match="loaded what was withdrawn"):
            mp.fetch(host, mp.evaluate(host, lambda: mp.constant(1)))


def test_a_peer_does_not_load_what_it_alone_stored_of_a_revoked_run(workers, connect):
    """No session is open when the approval is revoked: the fronts tell one another."""
    program, approval = workers.approved(stored_as("pay3"), workers.cluster.spec)
    for each in (program, copied("pay3", "passed", at="P1")):
        with connect() as host:
            mp.evaluate(host, each)
    with connect() as host:
        mp.evaluate(host, loading("P1", "passed"))
    before = workers.kinds("shop").count("stopped")
    workers.revoke(approval)
    wait_until(lambda: workers.kinds("shop").count("stopped") > before)
    with connect() as host, pytest.raises(PartyError, match="shop does not load 'passed'"):
        mp.evaluate(host, loading("P1", "passed"))
    (stopped,) = [each for each in workers.log("shop") if each.kind == "stopped"][before:]
    assert stopped.body["by"] == "party bank"


def test_what_rests_on_nothing_that_was_withdrawn_is_loaded(workers, connect):
    program, _ = workers.approved(stored_as("pay4"), workers.cluster.spec)
    other, approval = workers.approved(quick, workers.cluster.spec)
    with connect() as host:
        mp.evaluate(host, program)
    with connect() as host:
        mp.evaluate(host, copied("pay4", "copy4"))
        mp.evaluate(host, other)
    workers.revoke(approval)
    with connect() as host:
        mp.evaluate(host, loading("P0", "copy4"))
