"""Owners and operators without an account at the worker's machine, by their certificates."""

from __future__ import annotations

import json

import pytest
from mplang_http.cli.control import control_client
from mplang_policy import control_client as control_of_policy
from mplang_testing.waiting import DEADLINE, wait_until
from mplang_worker.base.config import WorkerConfig
from mplang_worker.tls.keygen import make_certificates
from processes import processes_of_sessions
from stop_testbed import Stoppable, at_work, quick

import mplang_core as mp
from mplang_core.errors import ConfigError, MPLangError, PartyError, RunError

ROLES = {"anna": ["owner"], "otto": ["operator"], "audrey": ["auditor"]}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certs"), ["bank", "host", "eve", *ROLES])


@pytest.fixture(scope="module")
def workers(tmp_path_factory, certificates):
    made = Stoppable(tmp_path_factory.mktemp("remote"), "bank", ["bank"], ROLES, tls=certificates)
    with made.cluster:
        yield made


@pytest.fixture
def command(workers, certificates, monkeypatch):
    """Return a function that runs a command as somebody, elsewhere."""
    monkeypatch.setattr(control_of_policy, "_client", lambda: control_client)
    at = f"bank={workers.cluster.spec.nodes[0].address}"

    def run(who: str, *args: object, ok: bool = True) -> str:
        key = certificates[who].key.removesuffix(".key")
        return workers.command(*args, "--at", at, "--tls", key, ok=ok)

    return run


@pytest.fixture
def host(workers):
    with mp.connect("http", workers.cluster.spec, tls=workers.cluster.tls) as made:
        yield made


def test_an_operator_elsewhere_sees_what_runs_and_cancels_it(workers, host, command):
    program, approval = workers.approved(at_work)
    with workers.running(host, program) as running:
        (job,) = json.loads(command("audrey", "jobs", "--json"))
        assert (job["coordinator"], job["approval"]) == ("host", approval)
        assert host.session in command("otto", "cancel", job["run"])
        with pytest.raises(PartyError, match="owner of bank cancelled run"):
            running.result(DEADLINE)
    stopped = [each for each in workers.log() if each.kind == "stopped"][-1]
    assert stopped.body["by"] == "otto (certificate) as operator"


def test_an_owner_elsewhere_reads_rules_and_approvals_and_revokes_one(workers, host, command):
    program, approval = workers.approved(quick)
    result = mp.evaluate(host, program)
    assert "forbid (principal, action == Action" in command("anna", "policy", "show")
    listed = map(json.loads, command("anna", "approvals", "--json").splitlines())
    (row,) = (each for each in listed if each["approval"] == approval)
    assert (row["state"], row["for"]) == ("counts", ["host"])
    command("anna", "revoke", approval)
    wait_until(lambda: not processes_of_sessions(workers.cluster.workers[0].pid))
    with pytest.raises(MPLangError, match="the owner of bank revoked approval"):
        mp.fetch(host, result)
    command("anna", "revoke", approval)  # again: it is on record once
    (entry,) = (each for each in workers.log() if each.body.get("approval") == approval
                and each.kind == "revoked")  # fmt: skip
    assert entry.body["by"] == "anna (certificate) as owner"


def test_each_has_its_own_roles_and_others_have_none(workers, command):
    assert "is not an owner of this worker" in command("otto", "revoke", "0" * 16, ok=False)
    assert "is not an owner of this worker" in command("audrey", "pause", "host", ok=False)
    assert "is not an operator of this worker" in command("anna", "drain", ok=False)
    for who in ("eve", "host"):  # a coordinator is not an owner
        assert "of this worker" in command(who, "sessions", ok=False)
    assert "not among the coordinators" in command(
        "anna", "jobs", "--cluster", _cluster(workers), ok=False
    )


def _cluster(workers) -> str:
    nodes = [{"name": each.name, "address": each.address} for each in workers.cluster.spec.nodes]
    path = workers.folder / "cluster.yaml"
    path.write_text(json.dumps({"nodes": nodes}))
    return str(path)


def test_an_approval_is_revoked_at_the_socket_where_that_is_at_hand(workers, monkeypatch):
    monkeypatch.setattr(control_of_policy, "_client", lambda: control_client)
    _, approval = workers.approved(quick)
    workers.revoke(approval)
    wait_until(lambda: "revoked" in workers.kinds())
    entry = [each for each in workers.log() if each.kind == "revoked"][-1]
    assert (entry.body["approval"], entry.body["by"]) == (approval, "root (uid 0) as owner")


def test_without_a_worker_an_approval_is_revoked_in_its_log(workers, monkeypatch, tmp_path):
    monkeypatch.setattr(control_of_policy, "_client", lambda: control_client)
    fields = json.loads((workers.folder / "bank.yaml").read_text())
    del fields["control"]
    (tmp_path / "bank.yaml").write_text(json.dumps(fields))
    for control in ({}, {"control": {"path": str(tmp_path / "nobody")}}):
        (tmp_path / "bank.yaml").write_text(json.dumps({**fields, **control}))
        assert "does not count" in workers.command("revoke", "0" * 16, "-c", tmp_path / "bank.yaml")


def test_who_is_asked_and_by_which_certificate_is_named():
    for at, tls in [("https://bank:1", "c"), ("bank=https://bank:1", None)]:
        with pytest.raises(ConfigError, match="asked with your certificate"):
            control_client("worker.yaml", None, at, tls)
    with pytest.raises(ConfigError, match="--socket is of a worker on this machine"):
        control_client("worker.yaml", "s", "bank=https://bank:1", "c")


def test_certificates_are_listed_by_known_roles_and_with_tls_alone():
    control = {"path": "s", "certificates": {"anna": ["owner"]}}
    with pytest.raises(ConfigError, match="without tls no"):
        WorkerConfig(name="bank", control=control)
    with pytest.raises(ConfigError, match="certificates"):
        WorkerConfig(name="bank", control={"path": "s", "certificates": {"anna": ["boss"]}})


def test_a_worker_elsewhere_that_does_not_answer_is_named(certificates):
    client = control_client("", None, "bank=https://127.0.0.1:1", certificates["anna"].key[:-4])
    with pytest.raises(RunError, match="worker bank at https://127.0.0.1:1 does not answer"):
        client.request("GET", "jobs")
