"""Holes in this backend, planted one by one: the kit finds each, and says what to do."""

from __future__ import annotations

import re

import mplang_core as mp
import pytest
from mplang_core.ext import RunError, type_of
from mplang_core.runtime.plan import make_plan
from mplang_core.simp.interfaces import participants_of
from mplang_testing import BackendSuite, CommunicatorSuite
from mplang_testing.backend_refusals import LIES

from mplang_grpc import wire, worker
from mplang_grpc.comm import GrpcCommunicator
from mplang_grpc.driver import SimpGrpcDriver


class Backend(BackendSuite):
    def make(self, cluster):
        return SimpGrpcDriver(cluster)


class Communicators(CommunicatorSuite):
    slack = 2.0

    def make(self, parties, timeout):
        return GrpcCommunicator.connected(parties, timeout)

    def finish(self, comms):
        for comm in comms:
            comm.shut()


class Trusting(worker.ObservedWorker):
    """A worker that runs what it is sent as it is."""

    def make_plan(self, program):
        mine = lambda op: self.rank in participants_of(op, program.mask)  # noqa: E731
        return make_plan(program.graph, self.kernels, mine)


def run_unverified(monkeypatch):
    worker._read.cache_clear()
    monkeypatch.setattr(worker, "ObservedWorker", Trusting)
    monkeypatch.setattr(worker, "verify", lambda program: None)


def give_out_all(monkeypatch):
    monkeypatch.setattr(worker, "check_fetchable", lambda value: None)


def give_out_keys(monkeypatch):
    def check(value):
        if type_of(value).form is mp.Form.SHARE:
            raise RunError("a share stays at its party")

    monkeypatch.setattr(worker, "check_fetchable", check)


def share_values(monkeypatch):
    """Have sessions look in one store; the name of a value is all that it takes."""
    values, begin = {}, worker.Party.__init__

    def begin_sharing(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        self._values = values

    monkeypatch.setattr(worker.Party, "__init__", begin_sharing)
    monkeypatch.setattr(worker.Party, "_value", lambda self, host, name: values[name])


@pytest.mark.parametrize(
    ("plant", "test", "found"),
    [
        (run_unverified, "a_worker_verifies_what_it_is_sent", "lies of the type of a value"),
        (give_out_all, "secrets_stay_at_their_party", "the fetch of a share from party 0"),
        (give_out_keys, "secrets_stay_at_their_party", "the fetch of a key from party 0"),
        (share_values, "values_of_another_session_are_not_there", "another session's value"),
    ],
)
def test_a_worker_that_leaves_something_out_is_found(monkeypatch, plant, test, found):
    plant(monkeypatch)
    with pytest.raises(pytest.fail.Exception, match=re.escape(found)) as told:
        getattr(Backend(), f"test_{test}")()
    assert "to do:    have the worker " in str(told.value)


def test_a_worker_that_runs_a_lie_of_who_holds_a_value_is_found(monkeypatch):
    """No op contradicts it, so the kit goes by what verification alone can know."""
    run_unverified(monkeypatch)
    monkeypatch.delitem(LIES, "type")
    with pytest.raises(pytest.fail.Exception, match="lies of the holders of a value is not"):
        Backend().test_a_worker_verifies_what_it_is_sent()


def tell_the_others_only(self, run, reason):
    for peer in self._peers.values():
        peer.start(wire.Abort(run, reason), self.timeout)


def tell_the_last_nothing(self, run, reason):
    self.stop(run, reason)
    for peer in list(self._peers.values())[:-1]:
        peer.start(wire.Abort(run, reason), self.timeout)


def tell_nobody_else(self, run, reason):
    self.stop(run, reason)


@pytest.mark.parametrize("abort", [tell_the_others_only, tell_the_last_nothing, tell_nobody_else])
def test_an_abort_that_misses_a_side_is_found(monkeypatch, abort):
    monkeypatch.setattr(GrpcCommunicator, "abort", abort)
    with pytest.raises(pytest.fail.Exception, match="all that wait end when a party fails"):
        Communicators().test_an_abort_wakes_all_who_wait()
