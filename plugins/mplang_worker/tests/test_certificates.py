"""Certificates that change, expire, are revoked, or are of the wrong authority."""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import ssl
import time
from pathlib import Path

import numpy as np
import pytest
from authority import DAY, HOUR, TestAuthority, serial_of
from cryptography import x509
from http_raw import RawWorker
from log_reading import LogReader
from mplang_http import LocalCluster, WorkerConfig
from mplang_http.tls.contexts import client_context
from mplang_http.tls.files import TlsFiles
from mplang_testing.waiting import DEADLINE, pause, wait_until
from mplang_worker.base.allowed_plugins import installed_plugins
from mplang_worker.base.config import Timeouts
from mplang_worker.link.handshake import Handshake
from mplang_worker.tls.certificates import Certificates
from mplang_worker.tls.credentials import session_statement, verify_credential
from mplang_worker.tls.trust import Trust, read_certificates

import mplang_core as mp
from mplang_core.errors import AdmissionError, ConfigError, RunError

NAMES = ("alice", "bob")
SECOND = datetime.timedelta(seconds=1)


@pytest.fixture
def authority(tmp_path) -> TestAuthority:
    return TestAuthority(tmp_path / "certs")


def cluster(files: dict[str, TlsFiles], log: Path, **options) -> LocalCluster:
    log.mkdir(exist_ok=True)
    names = [name for name in NAMES if name in files]
    fields = {"coordinators": ("host",), "log": str(log), "log_level": "info", **options}
    return LocalCluster(names, tls=files, **fields)


def serial_shown(workers: LocalCluster, rank: int, files: TlsFiles) -> int:
    """Return the serial number of the certificate that a worker shows."""
    with RawWorker(workers, rank, client_context(files, "http/1.1")).connect() as sock:
        return x509.load_der_x509_certificate(sock.getpeercert(binary_form=True)).serial_number


def double(host, x):
    return mp.fetch(host, mp.evaluate(host, lambda: mp.device("P0")(lambda x: 2 * x)(x)))


def is_let_in(workers: LocalCluster, files: TlsFiles) -> bool:
    try:
        worker = RawWorker(workers, 0, client_context(files, "http/1.1"))
        found = worker.send(b"GET /facts HTTP/1.1\r\nHost: alice\r\n\r\n")
    except (ssl.SSLError, ConnectionError):
        return False
    return found is not None and found.status == 200


def test_new_certificates_are_taken_and_sessions_go_on(authority, tmp_path):
    files = {name: authority.issue(name) for name in (*NAMES, "host")}
    with (
        cluster(files, tmp_path / "log") as workers,
        mp.connect("http", workers.spec, tls=files["host"]) as host,
    ):
        with mp.with_ctx(host):
            x = mp.put("P0", np.int64(21))
        before = serial_of(files["alice"])
        assert serial_shown(workers, 0, files["host"]) == before
        authority.issue("alice")
        assert serial_of(files["alice"]) != before
        wait_until(lambda: serial_shown(workers, 0, files["host"]) == serial_of(files["alice"]))
        assert double(host, x) == 42
        # a new session uses the new one, for its links, too
        with mp.connect("http", workers.spec, tls=files["host"]) as other:
            assert mp.fetch(other, mp.evaluate(other, lambda: mp.constant(7)))[0] == 7

        # files that do not fit together: those before are kept, and the log tells
        log = LogReader(tmp_path / "log" / "alice.log")
        Path(files["alice"].cert).write_bytes(Path(files["bob"].cert).read_bytes())
        log.wait_for("the certificates changed, and those before are kept: ")
        assert is_let_in(workers, files["host"])
        assert double(host, x) == 42


@pytest.mark.long("waits for a certificate to expire, after 30 s")
def test_connections_and_sessions_end_with_their_certificate(authority, tmp_path):
    lasts = {"alice": DAY, "bob": 30 * SECOND, "host": DAY, "other": 30 * SECOND}
    files = {name: authority.issue(name, time) for name, time in lasts.items()}
    begun = time.monotonic()
    with cluster(files, tmp_path / "log", coordinators=("host", "other")) as workers:
        with mp.connect("http", workers.spec, tls=files["host"]) as host:
            worker = RawWorker(workers, 0, client_context(files["other"], "http/1.1"))
            with worker.connect() as sock:
                sock.sendall(b"GET /ready HTTP/1.1\r\nHost: alice\r\n\r\n")
                assert sock.recv(4096).startswith(b"HTTP/1.1 200 ")
                sock.settimeout(DEADLINE)
                while sock.recv(4096):
                    pass  # it is closed by the worker
                assert time.monotonic() - begun > 29
            wait_until(
                lambda: (
                    "the session of host is closed: the certificate of bob has expired"
                    in (tmp_path / "log" / "alice.log").read_text()
                )
            )
            with pytest.raises(RunError, match="expired"):
                mp.evaluate(host, lambda: mp.constant(1))
        assert not is_let_in(workers, files["other"])
        assert is_let_in(workers, files["host"])


def test_what_is_revoked_ends_and_is_refused(authority, tmp_path):
    files = {name: authority.issue(name, crl=True) for name in (*NAMES, "host", "other")}
    with cluster(files, tmp_path / "log", coordinators=("host", "other")) as workers:
        log = LogReader(tmp_path / "log" / "alice.log")
        worker = RawWorker(workers, 0, client_context(files["other"], "http/1.1"))
        with worker.connect() as sock, mp.connect("http", workers.spec, tls=files["host"]) as host:
            assert worker.ask("GET", "/facts").status == 200
            authority.revoke(files["other"])
            sock.settimeout(DEADLINE)
            assert sock.recv(1) == b""
            assert worker.ask("GET", "/facts").error == (403, "certificate")
            assert "revoked" in worker.ask("GET", "/facts").text
            assert mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7)))[0] == 7
            authority.revoke(files["bob"])
            log.wait_for("the session of host is closed: .* the credential of bob .* it is revoked")
            with pytest.raises(RunError, match="revoked"):
                mp.evaluate(host, lambda: mp.constant(7))
        # the coordinator has the list, too
        with pytest.raises(RunError, match="revoked"):
            mp.connect("http", workers.spec, tls=files["host"])


def test_a_coordinator_that_is_revoked_has_no_session(authority, tmp_path):
    files = {name: authority.issue(name, crl=True) for name in ("alice", "host")}
    with cluster(files, tmp_path / "log") as workers:
        log = LogReader(tmp_path / "log" / "alice.log")
        with mp.connect("http", workers.spec, tls=files["host"]) as host:
            assert mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7)))[0] == 7
            authority.revoke(files["host"])
            log.wait_for("the session of host is closed: a certificate is refused: it is revoked")


@pytest.mark.long("waits for a list of 9 s to expire")
def test_a_list_that_expires_ends_what_is_open(authority, tmp_path):
    files = {name: authority.issue(name, crl=True) for name in ("alice", "host")}
    with cluster(files, tmp_path / "log") as workers:
        log = LogReader(tmp_path / "log" / "alice.log")
        without = files["host"].model_copy(update={"crl": None})
        worker = RawWorker(workers, 0, client_context(without, "http/1.1"))
        session = worker.open()
        with worker.connect() as sock:
            begun = time.monotonic()
            authority.revoke(lasts=9 * SECOND)  # before what asks for nothing is closed
            sock.settimeout(DEADLINE)
            assert sock.recv(1) == b""
        assert time.monotonic() - begun > 8
        log.wait_for("the session of host is closed: .*list of CN=an authority has expired")
        assert worker.ask("GET", f"/v1/sessions/{session}").error == (403, "certificate")
        authority.revoke()
        wait_until(lambda: is_let_in(workers, without))


@pytest.mark.parametrize(
    "extension",
    [
        x509.DeltaCRLIndicator(1),
        x509.IssuingDistributionPoint(None, None, False, True, None, False, False),
        x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00"),
    ],
)
def test_lists_that_are_not_complete_are_not_used(authority, extension):
    files = authority.issue("alice", crl=True)
    authority.revoke(also=extension)
    with pytest.raises(ConfigError, match="a list that is not complete"):
        Trust(files, {})


def test_lists_that_are_half_written(authority):
    files = authority.issue("alice", crl=True)
    data = Path(files.crl).read_bytes()
    Path(files.crl).write_bytes(data + data[:100])
    with pytest.raises(ConfigError, match="a list has no end"):
        Trust(files, {})


def test_the_newest_list_counts(authority):
    files = authority.issue("alice", crl=True)
    authority.revoke(files, lasts=-HOUR)  # an old one, beside a new one
    old = Path(files.crl).read_bytes()
    authority._revoked.clear()
    pause(1.1, "the next list is newer: lists know seconds")
    authority.revoke()
    Path(files.crl).write_bytes(Path(files.crl).read_bytes() + old)
    assert Trust(files, {}).verify(read_certificates(files.cert)).name == "alice"


def test_what_could_not_be_used_is_read_again(authority, tmp_path):
    """A key that others may read: a list that came with it counts all the same."""
    files = {name: authority.issue(name, crl=True) for name in ("alice", "host", "other")}
    with cluster(files, tmp_path / "log", coordinators=("host", "other")) as workers:
        log = LogReader(tmp_path / "log" / "alice.log")
        authority.issue("alice")
        Path(files["alice"].key).chmod(0o644)
        authority.revoke(files["other"])
        log.wait_for("the certificates changed, and those before are kept: .*chmod 600")
        wait_until(lambda: not is_let_in(workers, files["other"]))
        assert is_let_in(workers, files["host"])
        Path(files["alice"].key).chmod(0o600)
        wait_until(lambda: serial_shown(workers, 0, files["host"]) == serial_of(files["alice"]))


def test_strangers_keep_no_coordinator_out(authority, tmp_path):
    """They are let in up to the TLS handshake, refused, and say nothing more."""
    files = {name: authority.issue(name, crl=True) for name in ("alice", "host", "other")}
    authority.revoke(files["other"])
    limits = {"connections": 16, "unknown": 8}
    with cluster(files, tmp_path / "log", limits=limits) as workers:
        nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        nobody.load_verify_locations(files["host"].ca)
        revoked = client_context(files["other"].model_copy(update={"crl": None}), "http/1.1")
        host = RawWorker(workers, 0, client_context(files["host"], "http/1.1"))
        socks = []
        for context in (nobody, revoked):
            stranger = RawWorker(workers, 0, context)
            for _ in range(40):
                with contextlib.suppress(OSError):
                    socks.append(stranger.connect())
            assert host.ask("GET", "/facts").status == 200
            assert RawWorker(workers, 0, nobody).ask("GET", "/ready").status == 200
        for sock in socks:
            sock.close()


def test_certificates_of_unusual_form(authority, tmp_path):
    """A certificate of version 8 beside one's own, or in a credential, is refused in a line."""
    files = {name: authority.issue(name) for name in ("alice", "host")}
    own = Path(files["host"].cert).read_bytes()
    der = ssl.PEM_cert_to_DER_cert(own.decode())
    at = der.index(b"\xa0\x03\x02\x01\x02") + 4
    odd = ssl.DER_cert_to_PEM_cert(der[:at] + b"\x07" + der[at + 1 :])
    (tmp_path / "chain.pem").write_bytes(own + odd.encode())
    with cluster(files, tmp_path / "log") as workers:
        host = RawWorker(workers, 0, client_context(files["host"], "http/1.1"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(files["host"].ca)
        context.load_cert_chain(str(tmp_path / "chain.pem"), files["host"].key)
        found = RawWorker(workers, 0, context).ask("GET", "/facts")
        assert found.error == (403, "certificate")
        mine = host.begin("odd")
        credential = {"link": mine["link"], "certificates": [odd, mine["certificates"][1]]}
        assert host.join("odd", [credential]).error == (403, "AdmissionError")
        assert "Traceback" not in (tmp_path / "log" / "alice.log").read_text()
        host.works()
    (tmp_path / "odd.pem").write_text(odd)
    with pytest.raises(ConfigError, match="cannot use the certificates"):
        read_certificates(str(tmp_path / "odd.pem"))


def test_a_name_is_a_dns_name_too(authority):
    """Constraints of an intermediate authority are about DNS names."""
    files = authority.issue("alice", dns="x.bank.example")
    with pytest.raises(AdmissionError, match="'alice' is not a DNS name of the certificate"):
        Trust(files, {}).verify(read_certificates(files.cert))


def test_an_authority_that_stands_twice(authority, tmp_path):
    files = authority.issue("alice")
    with pytest.raises(ConfigError, match="stands in .* too, so it could name anybody"):
        Trust(files, {"bob": files.ca})


def test_lists_that_are_missing_or_old(authority, tmp_path):
    files = authority.issue("alice", crl=True)
    certificate = read_certificates(files.cert)[0]
    assert Trust(files, {}).verify([certificate]).name == "alice"
    authority.revoke(lasts=-HOUR)
    with pytest.raises(AdmissionError, match="the revocation list of CN=an authority has expired"):
        Trust(files, {}).verify([certificate])
    another = TestAuthority(tmp_path / "another", "another")
    lists = files.model_copy(update={"crl": another.issue("alice", crl=True).crl})
    with pytest.raises(AdmissionError, match="there is no revocation list of CN=an authority"):
        Trust(lists, {}).verify([certificate])
    for text in ("nothing", None):
        path = tmp_path / "none.pem"
        path.write_text(text) if text else path.unlink()
        with pytest.raises(ConfigError, match=r"none\.pem"):
            Trust(files.model_copy(update={"crl": str(path)}), {})


def test_an_authority_names_whom_it_is_given(authority, tmp_path):
    """The bank's authority names the bank, and nobody else; nobody else names the bank."""
    banks = TestAuthority(tmp_path / "bank", "the bank's authority")
    files = {name: authority.issue(name) for name in ("alice", "host")}
    bank = banks.issue("bob")
    (tmp_path / "both.pem").write_bytes(
        Path(bank.ca).read_bytes() + Path(files["host"].ca).read_bytes()
    )
    both = {"ca": str(tmp_path / "both.pem")}  # what coordinators believe
    files["host"] = files["host"].model_copy(update=both)
    files["bob"] = bank.model_copy(update={"ca": files["alice"].ca})
    with cluster(files, tmp_path / "log", authorities={"bob": bank.ca}) as workers:
        with mp.connect("http", workers.spec, tls=files["host"]) as host:
            assert mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7)))[0] == 7
        forged = banks.issue("host").model_copy(update=both)
        worker = RawWorker(workers, 0, client_context(forged, "http/1.1"))
        assert worker.ask("GET", "/facts").error == (403, "certificate")
        forged = authority.issue("bob").model_copy(update=both)
        worker = RawWorker(workers, 0, client_context(forged, "http/1.1"))
        assert worker.ask("GET", "/health").error == (403, "certificate")


def test_credentials_of_the_wrong_authority(authority, tmp_path):
    banks = TestAuthority(tmp_path / "bank", "the bank's authority")
    statement = session_statement("host", "s", list(NAMES), "engine")
    end = Handshake("bob", "0" * 32, Timeouts(), tls=True)

    def credential(files: TlsFiles):
        return Certificates("bob", files, {}).authority.issue("0" * 32, end.public_key, statement)

    bank = banks.issue("bob")
    trust = Trust(authority.issue("alice"), {"bob": bank.ca})
    assert verify_credential(trust, "bob", credential(bank), statement).name == "bob"
    with pytest.raises(
        AdmissionError, match="the credential of bob for this session is refused"
    ) as found:
        verify_credential(trust, "bob", credential(authority.issue("bob")), statement)
    assert found.value.code == "A008"


def test_one_who_is_nobody_has_no_authority():
    tls = {"tls": TlsFiles.of("certs/alice"), "coordinators": ("host",), "peers": {}}
    with pytest.raises(ConfigError, match="authorities: carol is neither a peer"):
        WorkerConfig(name="alice", authorities={"carol": "carol.pem"}, **tls)
    with pytest.raises(ConfigError, match="without tls no"):
        WorkerConfig(name="alice", authorities={"carol": "carol.pem"})


@pytest.mark.parametrize(("begins", "lasts"), [(2 * HOUR, DAY), (-DAY, -HOUR)])
def test_a_worker_does_not_start_with_a_certificate_that_is_not_valid(authority, begins, lasts):
    files = authority.issue("alice", lasts, begins=begins)
    with pytest.raises(ConfigError, match="is valid from .* and it is"):
        Certificates("alice", files, {})


@pytest.mark.parametrize(
    ("lasts", "level"), [(40 * DAY, ""), (20 * DAY, "WARNING"), (5 * DAY, "ERROR")]
)
def test_before_it_expires_all_are_told(authority, tmp_path, lasts, level, capsys):
    from mplang_cli.cli import app
    from mplang_http.cli.status import cluster_status
    from typer.testing import CliRunner

    files = {name: authority.issue(name, lasts) for name in ("alice", "host")}
    left = f"in {(lasts - SECOND).days} days"
    with cluster(files, tmp_path / "log") as workers:
        log = tmp_path / "log" / "alice.log"
        (row,) = cluster_status(workers.spec, files["host"])
        assert row["certificate"] == left + (", renew it" if level else "")
        told = re.search(
            f"{level} alice .*the certificate of this worker expires {left}", log.read_text()
        )
        assert bool(told) == bool(level)
    (tmp_path / "alice.yaml").write_text(
        f"name: alice\ntls: certs/alice\ncoordinators: [host]\npeers: {{}}\n"
        f"plugins: {installed_plugins()}\n"
    )
    told = CliRunner().invoke(app, ["doctor", "--json", "-c", str(tmp_path / "alice.yaml")])
    rows = {row["check"]: row for row in json.loads(told.stdout)}
    mine = rows["certificate of alice"]
    assert mine["status"] == ("failed" if level == "ERROR" else "ok")
    assert f"expires {left}" in mine["detail"]


def test_a_configuration_that_is_wrong_is_told_by_the_doctor(tmp_path):
    from mplang_cli.doctor import examine

    (tmp_path / "alice.yaml").write_text("name: alice\nprot: 1\n")
    rows = [row for row in examine(str(tmp_path / "alice.yaml")) if row["status"] == "failed"]
    assert any("'prot'" in row["detail"] for row in rows)
    (tmp_path / "alice.yaml").write_text("name: alice\nplugins: {mplang-jax: 0.0.9}\n")
    rows = [row for row in examine(str(tmp_path / "alice.yaml")) if row["status"] == "failed"]
    assert any("is installed, not 0.0.9" in row["detail"] for row in rows)
