"""Changes that meet something under way: a reload that fails midway, a queue, a renewal, a host."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest
from authority import TestAuthority
from mplang_http.ext import PROTOCOLS
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.front.engines import Engines
from mplang_worker.front.gate_runs import GateRuns
from mplang_worker.front.live_config import ConfigFile, LiveConfig
from mplang_worker.front.run_ends import hear_head
from mplang_worker.tls import certificates
from mplang_worker.tls.certificates import Certificates
from mplang_worker.wire.requests import LinkRequest, SessionRequest, read_job

from mplang_core.errors import ConfigError


class Part:
    """Part of a front that keeps the quota of sessions; it fails for some."""

    def __init__(self, quota: int, bad: int = 0) -> None:
        self.quota, self.bad = quota, bad

    def prepare(self, after: WorkerConfig):
        def commit() -> None:
            self.quota = after.quotas.sessions
            if self.quota == self.bad:
                raise RuntimeError("a section of another package")

        return commit


class Record:
    """Log that has the quotas of configurations on record."""

    def __init__(self) -> None:
        self.noted: list[int] = []

    async def note_configuration(self, after: WorkerConfig) -> None:
        self.noted.append(after.quotas.sessions)


def with_quota(sessions: int) -> WorkerConfig:
    return WorkerConfig(name="bank", quotas={"sessions": sessions})


def test_a_configuration_that_a_part_fails_to_take_counts_for_no_part(tmp_path):
    """Also not for those that have taken it before, and the log says what counts."""
    (tmp_path / "bank.yaml").write_text("name: bank\n")
    config, record = with_quota(3), Record()
    parts = [Part(3), Part(3, bad=4), Part(3)]
    file = ConfigFile(str(tmp_path / "bank.yaml"), lambda: with_quota(4))
    front = SimpleNamespace(gate=record, sessions=[], end_soon=None)

    async def main() -> str:
        return await LiveConfig(config, file, front, parts).reload()

    assert asyncio.run(main()) == "a section cannot be reloaded: RuntimeError"
    assert [each.quota for each in parts] == [3, 3, 3]
    assert config.quotas.sessions == 3
    assert record.noted == [4, 3]


def test_a_part_that_does_not_take_back_what_was_keeps_no_other_one_from_it(tmp_path, caplog):
    (tmp_path / "bank.yaml").write_text("name: bank\n")
    broken = Part(3, bad=4)
    broken.prepare = lambda after: lambda: 1 / 0
    parts = [Part(3), broken]
    file = ConfigFile(str(tmp_path / "bank.yaml"), lambda: with_quota(5))
    front = SimpleNamespace(gate=Record(), sessions=[], end_soon=None)

    async def main() -> str:
        return await LiveConfig(with_quota(3), file, front, parts).reload()

    assert asyncio.run(main()) == "a section cannot be reloaded: ZeroDivisionError"
    assert parts[0].quota == 3
    assert "does not take back the configuration before" in caplog.text


# -- a queue


def test_a_coordinator_that_is_removed_while_its_session_waits_is_refused():
    engines = Engines.__new__(Engines)
    engines.draining, engines.paused = False, SimpleNamespace(check=lambda coordinator: None)
    engines._config = SimpleNamespace(name="bank", tls=object(), coordinators=("bob",))
    with pytest.raises(RequestError, match="ann is not among the coordinators of bank") as refused:
        engines._check_open(("ann", "s"), None)
    assert (refused.value.status, refused.value.code) == (403, "no-coordinator")


# -- a renewal


def test_a_renewal_under_way_does_not_put_back_whom_nobody_believes_any_more(tmp_path, monkeypatch):
    first, second = TestAuthority(tmp_path / "a"), TestAuthority(tmp_path / "b", "another")
    mine = first.issue("bank")
    partner = second.issue("partner")
    there = Certificates("bank", mine, {"partner": second.issue("x").ca})
    removed = there.prepare({})
    chain = certificates.read_certificates(partner.cert)
    there.trust.verify(chain)

    class Slow(certificates.Trust):
        """Trust that takes so long to read that a reload counts meanwhile."""

        def __init__(self, *args) -> None:
            super().__init__(*args)
            removed()

    monkeypatch.setattr(certificates, "Trust", Slow)
    there._stamps = []
    assert there.renew()
    monkeypatch.undo()
    for _ in range(2):
        with pytest.raises(Exception, match="validation failed"):
            there.trust.verify(chain)
        there.renew()


# -- a late head


def test_a_head_that_comes_late_is_charged_to_the_coordinator_of_its_run():
    charged, runs = [], GateRuns()
    runs.end("s-0", {"shop"})
    gate = SimpleNamespace(end=lambda *args: charged.append(args))
    shop = SimpleNamespace(name="shop", gate="f" * 64)
    session = SimpleNamespace(
        key=("ann", "s"), parties=["bank", "shop"], request=SimpleNamespace(rank=0), ends=[shop],
        gate_runs=runs, jobs=SimpleNamespace(get=lambda run: object()),
    )  # fmt: skip
    asyncio.run(hear_head(gate, session, "s-0", "shop", b"head"))
    assert charged == [("ann", {}, "ann:s:s-0", {"shop": (b"head", "f" * 64)})]


# -- a newer host


def opening(**more: object) -> bytes:
    party = {"name": "bank", "address": "http://127.0.0.1:1", **more}
    return json.dumps({"rank": 0, "parties": [party], **more}).encode()


def test_fields_that_a_newer_host_adds_are_ignored():
    config = WorkerConfig(name="bank")
    assert SessionRequest.read(opening(colour="blue"), config) == SessionRequest.read(
        opening(), config
    )
    credential = {"link": "0" * 32, "colour": "blue"}
    LinkRequest.read(json.dumps({"credentials": [credential], "colour": "blue"}).encode())


def test_a_host_of_another_wire_is_told_so_whatever_its_request_is_like():
    newer = {"rank": "first", "versions": {**PROTOCOLS, "wire": "9999"}}
    with pytest.raises(RequestError, match="versions differ") as refused:
        SessionRequest.read(json.dumps(newer).encode(), WorkerConfig(name="bank"))
    assert refused.value.status == 409
    with pytest.raises(RequestError, match="no SessionRequest"):
        SessionRequest.read(b'{"rank": "first"}', WorkerConfig(name="bank"))
    with pytest.raises(RequestError, match="no "):
        SessionRequest.read(b"\xff", WorkerConfig(name="bank"))


def test_a_job_of_a_newer_host_is_read():
    import msgspec

    job = {"run": "s-0", "program": "0" * 64, "generation": 0, "inputs": [], "parties": [0]}
    assert read_job(msgspec.msgpack.encode({**job, "colour": "blue"})).run == "s-0"


def test_an_own_error_of_a_section_is_told_as_it_is(tmp_path):
    (tmp_path / "bank.yaml").write_text("name: bank\n")

    class Refusing(Part):
        def prepare(self, after):
            raise ConfigError("field 'x': wrong")

    file = ConfigFile(str(tmp_path / "bank.yaml"), lambda: with_quota(4))
    front = SimpleNamespace(gate=Record(), sessions=[], end_soon=None)
    parts = [Part(3), Refusing(3)]

    async def main() -> str:
        return await LiveConfig(with_quota(3), file, front, parts).reload()

    assert "field 'x': wrong" in asyncio.run(main())
    assert (parts[0].quota, front.gate.noted) == (3, [])
