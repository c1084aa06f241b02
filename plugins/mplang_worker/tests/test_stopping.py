"""What an owner stops ends at once, at all parties, and nothing of it is fetched or loaded."""

from __future__ import annotations

import pytest
from mplang_testing.waiting import DEADLINE, wait_until
from processes import processes_of_sessions
from stop_testbed import NAMES, Stoppable, at_work, kept_and_told, load, quick

import mplang_core as mp
from mplang_core.errors import MPLangError, PartyError


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    made = Stoppable(tmp_path_factory.mktemp("stopping"))
    with made.cluster:
        yield made


@pytest.fixture
def host(workers):
    with mp.connect("http", workers.cluster.spec) as made:
        yield made


def test_a_run_whose_approval_is_revoked_ends_at_once_at_all_parties(workers, host):
    program, approval = workers.approved(at_work)
    with workers.running(host, program) as running:
        workers.revoke(approval)
        with pytest.raises(PartyError, match=f"the owner of bank revoked approval {approval}"):
            running.result(DEADLINE)
    wait_until(lambda: not processes_of_sessions(workers.cluster.workers[0].pid))
    for name in NAMES:
        wait_until(lambda name=name: workers.kinds(name).count("end") == 1)
    (stopped,) = (each for each in workers.log() if each.kind == "stopped")
    assert stopped.body["runs"] == [f"{host.session}-0"]
    assert approval in stopped.body["why"]
    assert stopped.body["by"] == "revoke"


def test_nothing_that_a_revoked_run_made_is_fetched_or_loaded(workers):
    program, approval = workers.approved(kept_and_told)
    with mp.connect("http", workers.cluster.spec) as host:
        _, result = mp.evaluate(host, program)
        mp.evaluate(host, load)
        workers.revoke(approval)
        wait_until(lambda: not processes_of_sessions(workers.cluster.workers[0].pid))
        with pytest.raises(MPLangError, match="the owner of bank revoked approval"):
            mp.fetch(host, result)
    with mp.connect("http", workers.cluster.spec) as host:
        with pytest.raises(PartyError, match="bank does not load 'pay': the run that stored it"):
            mp.evaluate(host, load)
        again, _ = workers.approved(quick)
        mp.evaluate(host, again)


def test_a_run_that_rests_on_another_approval_goes_on(workers, host):
    program, _ = workers.approved(quick)
    _, other = workers.approved(at_work)
    result = mp.evaluate(host, program)
    workers.revoke(other)
    wait_until(lambda: other in workers.command("approvals", "-c", workers.folder / "bank.yaml"))
    mp.evaluate(host, program)
    assert mp.fetch(host, result) is not None
