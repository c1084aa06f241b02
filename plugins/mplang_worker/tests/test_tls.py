"""Authentication and authorization tests: identity comes from certificates only."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pytest
from http_raw import DOUBLE, NUMBERS, RawWorker, Response, open_at_all, program
from mplang_http import LocalCluster
from mplang_http.tls.contexts import client_context
from mplang_http.tls.files import TlsFiles
from mplang_http.wire.protocols import LINK_PROTOCOL
from mplang_http.wire.requests import Stored
from mplang_http.wire.values import join_frame, pack
from mplang_worker.base.config import Timeouts, WorkerConfig
from mplang_worker.link.handshake import Handshake
from mplang_worker.tls.client_hello import link_in_hello
from mplang_worker.tls.credentials import Authority, Credential, LinkEnd, session_statement
from mplang_worker.tls.keygen import make_certificates
from mplang_worker.tls.trust import read_certificates

import mplang_core as mp
from mplang_core.errors import AdmissionError, CommError, ConfigError

NAMES = ("alice", "bob", "carol", "host", "other", "Mallory")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def files(folder):
    """Return certificates of an authority that the workers trust.

    They also trust a second authority, whose certificates are expired.
    """
    made = make_certificates(folder / "good", NAMES)
    expired = make_certificates(folder / "expired", ["host", "aaron"], days=-1)
    both = folder / "both.pem"
    both.write_text(Path(made["host"].ca).read_text() + Path(expired["host"].ca).read_text())
    return {name: one.model_copy(update={"ca": str(both)}) for name, one in made.items()}


@pytest.fixture(scope="module")
def cluster(files):
    """Return the workers alice and bob, with two coordinators."""
    with LocalCluster(
        ["alice", "bob"],
        tls=files,
        imports=("mplang_testing.dialect",),
        coordinators=("host", "other"),
        peers={"Mallory": "https://127.0.0.1:1"},
        timeouts={"connect": 5.0, "message": 20.0, "lease": 20.0, "head": 2.0},
    ) as made:
        yield made


@pytest.fixture
def alice(cluster, files):
    return RawWorker(cluster, 0, client_context(files["host"], "http/1.1"))


@pytest.fixture(autouse=True)
def unharmed(alice):
    yield
    alice.works()


def raw_worker(cluster, files: TlsFiles, rank: int = 0, *protocols: str) -> RawWorker:
    return RawWorker(cluster, rank, client_context(files, *(protocols or ("http/1.1",))))


def is_disconnected(worker: RawWorker) -> bool:
    """Return whether the server closes the connection without a response."""
    try:
        return worker.send(b"GET /health HTTP/1.1\r\nHost: alice\r\n\r\n") is None
    except (ssl.SSLError, ConnectionError):
        return True


def test_a_coordinator_is_let_in(alice):
    assert alice.ask("GET", "/health").json["name"] == "alice"
    assert alice.ask("GET", "/facts").status == 200


def test_a_client_without_a_certificate(cluster, files):
    """It is a probe of whatever runs the worker: it may ask for its health, once a connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(files["host"].ca)
    worker = RawWorker(cluster, 0, context)
    assert worker.ask("GET", "/health").json["failures"] is None
    assert worker.ask("GET", "/ready").json == {"state": "ready"}
    for path in ("/facts", "/v1/sessions/s/jobs", "/openapi.json", "/link"):
        assert worker.ask("GET", path).error == (403, "no-certificate")
    with worker.connect() as sock:
        for _ in range(2):
            sock.sendall(b"GET /ready HTTP/1.1\r\nHost: alice\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 200 ")
        with contextlib.suppress(ConnectionError):
            while sock.recv(4096):
                pass
    others = [worker.connect() for _ in range(12)]
    assert RawWorker(cluster, 0, client_context(files["host"], "http/1.1")).ask("GET", "/facts")
    for sock in others:
        sock.close()


def test_a_client_without_tls(cluster):
    worker = RawWorker(cluster)
    for data in (b"GET /health HTTP/1.1\r\nHost: alice\r\n\r\n", b"\x16\x03\x01\xff\xff", b"\x16"):
        assert worker.send(data, end=True) is None


def test_a_certificate_of_another_authority(cluster, files, folder):
    stranger = make_certificates(folder / "stranger", ["host"])["host"]
    believing = stranger.model_copy(update={"ca": files["host"].ca})
    assert is_disconnected(raw_worker(cluster, believing))
    assert is_disconnected(raw_worker(cluster, believing, 0, LINK_PROTOCOL))


def test_a_certificate_that_is_expired(cluster, files, folder):
    for name in ("host", "aaron"):
        old = TlsFiles.of(str(folder / "expired" / name)).model_copy(
            update={"ca": files["host"].ca}
        )
        assert is_disconnected(raw_worker(cluster, old))
        assert is_disconnected(raw_worker(cluster, old, 0, LINK_PROTOCOL))


def test_an_older_tls(cluster, files):
    context = client_context(files["host"], "http/1.1")
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert is_disconnected(RawWorker(cluster, 0, context))


def test_one_who_is_no_coordinator(cluster, files):
    """Other certificates may read the health of a worker; no body of their requests is read."""
    for name in ("bob", "carol", "Mallory"):
        worker = raw_worker(cluster, files[name])
        assert worker.ask("GET", "/health").status == 200
        for method, path in (
            ("GET", "/facts"),
            ("GET", "/v1/sessions/s/jobs"),
            ("DELETE", "/v1/sessions/s"),
        ):
            assert worker.ask(method, path).error == (403, "no-coordinator")
        for method, path in (
            ("PUT", "/v1/sessions/s"),
            ("PUT", f"/v1/sessions/none/programs/{'0' * 64}"),
            ("PUT", "/v1/sessions/s/values/v"),
            ("POST", "/v1/sessions/s/release"),
            ("POST", "/v1/sessions/s/jobs?run=s-1"),
        ):
            found = worker.ask(method, path, content_length="100000")
            assert found.error == (403, "no-coordinator")


def test_a_header_names_nobody(cluster, files):
    worker = raw_worker(cluster, files["Mallory"])
    claims = {"x_mplang_from": "host", "x_forwarded_user": "host", "authorization": "host"}
    assert worker.ask("GET", "/facts", **claims).error == (403, "no-coordinator")


# -- links


MALLORY = {"name": "Mallory", "address": "https://127.0.0.1:1"}  # sorts before alice
PARTIES = ["Mallory", "alice"]


def offered(files: TlsFiles, session: str, **fields) -> tuple[Handshake, Credential]:
    """Return Mallory's end of the links of a session, and its credential; both may be forged."""
    given = {
        "coordinator": "host",
        "session": session,
        "parties": PARTIES,
        "role": "engine",
        "service": "spu",  # of MPC processes
    } | fields
    end = Handshake("Mallory", "0" * 32, Timeouts(connect=5.0), tls=True)
    party = Authority(files, read_certificates(files.cert))
    made = party.issue("0" * 32, end.public_key, session_statement(**given | fields))
    return end, made


def join(alice: RawWorker, session: str, *credentials, native=()) -> Response:
    engines, mpc = (msgspec.to_builtins(list(each)) for each in (credentials, native))
    return alice.join(session, engines, native={"spu": mpc} if mpc else {})


def dial(worker: RawWorker, end: Handshake, mine: Credential, alices: Credential):
    """Link to a worker as Mallory, who believes what the credentials say."""
    certificates = [each.certificates[0] for each in (mine, alices)]
    links = [each.link for each in (mine, alices)]
    end.introduce([LinkEnd(*each) for each in zip(PARTIES, links, certificates, strict=True)])
    return end.dial(socket.create_connection(worker.endpoint), "alice")


@pytest.fixture
def session(alice):
    """Return the name of a session of Mallory and alice, and alice's credential."""
    name = f"links{next(NUMBERS)}"
    yield name, Credential(**alice.begin(name, rank=1, parties=[MALLORY, alice.party()]))
    alice.ask("DELETE", f"/v1/sessions/{name}")


def test_a_link_with_the_key_of_the_session(alice, files, session):
    name, alices = session
    end, mine = offered(files["Mallory"], name)
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(join, alice, name, mine, alices)
        link = dial(alice, end, mine, alices)
        assert joining.result().status == 200
    link.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"session": "another"},
        {"coordinator": "other"},
        {"parties": ["alice", "Mallory"]},
        {"parties": ["Mallory", "alice", "bob"]},
        {"role": "mpc"},
    ],
    ids=["session", "coordinator", "order", "parties", "role"],
)
def test_a_credential_for_something_else(alice, files, session, fields):
    name, alices = session
    _, mine = offered(files["Mallory"], **({"session": name} | fields))
    found = join(alice, name, mine, alices)
    assert found.error == (403, "AdmissionError")
    assert "it is for another session, other parties, or another process" in found.text


@pytest.fixture
def native_session(alice):
    """Return the name of a session with MPC processes, and alice's credentials by role."""
    name = f"links{next(NUMBERS)}"
    parties = [MALLORY, alice.party()]
    made = alice.begin_with(name, rank=1, parties=parties, native=["spu"])
    yield (
        name,
        {"engine": Credential(**made["credential"]), "mpc": Credential(**made["native"]["spu"])},
    )
    alice.ask("DELETE", f"/v1/sessions/{name}")


STAND_INS = {  # roles of the ends that are given as engine's and MPC process's, by party
    "an MPC process as engine": (("mpc", "engine"), ("mpc", "mpc"), "Mallory"),
    "an engine as MPC process": (("engine", "engine"), ("engine", "mpc"), "Mallory"),
    "each as the other": (("mpc", "engine"), ("engine", "mpc"), "Mallory"),
    "its own MPC process as engine": (("engine", "mpc"), ("mpc", "mpc"), "alice"),
    "its own engine as MPC process": (("engine", "engine"), ("mpc", "engine"), "alice"),
}


@pytest.mark.needs("spu")
@pytest.mark.parametrize(("engines", "native", "whose"), STAND_INS.values(), ids=list(STAND_INS))
def test_no_process_stands_in_for_one_of_the_other_role(
    alice, files, native_session, engines, native, whose
):
    """An engine, which runs a coordinator's code, gets no messages of an MPC process."""
    name, own = native_session
    given = {role: offered(files["Mallory"], name, role=role)[1] for role in ("engine", "mpc")}
    found = join(
        alice, name, given[engines[0]], own[engines[1]], native=(given[native[0]], own[native[1]])
    )
    assert found.error == (403, "AdmissionError")
    assert f"the credential of {whose} for this session is refused: it is for another" in found.text
    assert "or another process" in found.text


@pytest.mark.needs("spu")
def test_no_process_stands_in_for_that_of_another_native_service(alice, files, native_session):
    """Who has taken over one library has no links to those of another one."""
    name, own = native_session
    engine = offered(files["Mallory"], name)[1]
    other = offered(files["Mallory"], name, role="mpc", service="toy")[1]
    found = join(alice, name, engine, own["engine"], native=(other, own["mpc"]))
    assert found.error == (403, "AdmissionError")
    assert "the credential of Mallory for this session is refused: it is for another" in found.text


@pytest.mark.needs("spu")
@pytest.mark.parametrize("native", [{"toy": 2}, {"spu": 1}, {"spu": 3}, {"spu": 2, "toy": 2}])
def test_credentials_of_other_native_services_or_parties_are_refused(
    alice, files, native_session, native
):
    name, own = native_session
    engine, mine = (offered(files["Mallory"], name, role=role)[1] for role in ("engine", "mpc"))
    engines = msgspec.to_builtins([engine, own["engine"]])
    given = msgspec.to_builtins([mine, own["mpc"], mine])
    found = alice.join(name, engines, native={each: given[:n] for each, n in native.items()})
    assert found.error == (422, "parties")


@pytest.mark.needs("spu")
def test_links_of_each_role_have_keys_of_their_own(alice, files, native_session):
    name, own = native_session
    ends = {role: offered(files["Mallory"], name, role=role) for role in ("engine", "mpc")}
    (engine, mine), (mpc, mpcs) = ends["engine"], ends["mpc"]
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(join, alice, name, mine, own["engine"], native=(mpcs, own["mpc"]))
        for end, its, others in ((engine, mine, own["mpc"]), (mpc, mpcs, own["engine"])):
            with pytest.raises((OSError, CommError)):
                dial(alice, end, its, others).read_into(memoryview(bytearray(1)))
        links = [dial(alice, engine, mine, own["engine"]), dial(alice, mpc, mpcs, own["mpc"])]
        assert joining.result().status == 200
    for link in links:
        link.close()


def test_credentials_of_somebody_else(alice, files, folder, session):
    name, alices = session
    stranger = make_certificates(folder / "strangers", ["Mallory"])["Mallory"]
    expired = TlsFiles.of(str(folder / "expired" / "aaron"))
    with pytest.raises(ConfigError, match="the certificate of this worker is valid from"):
        offered(expired, name)
    forged = files["Mallory"].model_copy(update={"key": files["carol"].key})
    for given in (files["carol"], stranger, forged, files["alice"]):
        _, mine = offered(given, name)
        found = join(alice, name, mine, alices)
        assert found.error == (403, "AdmissionError"), given
        assert "the credential of Mallory for this session is refused" in found.text
        again = alice.begin(name, rank=1, parties=[MALLORY, alice.party()])  # it has ended
        alices = Credential(**again)


@pytest.mark.parametrize("change", [[], ["nothing"], ["-----BEGIN CERTIFICATE-----"] * 5])
def test_credentials_that_are_none(alice, files, session, change):
    name, alices = session
    _, mine = offered(files["Mallory"], name)
    damaged = msgspec.structs.replace(mine, certificates=change)
    assert join(alice, name, damaged, alices).error == (403, "AdmissionError")


def test_links_with_keys_that_are_not_the_sessions(alice, files, session):
    """Neither the party's own certificate, nor a key that it has for another session."""
    name, alices = session
    _, mine = offered(files["Mallory"], name)
    other, others = offered(files["Mallory"], "another")
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(join, alice, name, mine, alices)
        with pytest.raises((OSError, CommError)):
            dial(alice, other, others, alices).read_into(memoryview(bytearray(1)))
        context = client_context(files["Mallory"], LINK_PROTOCOL)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        sock = socket.create_connection(alice.endpoint)
        with context.wrap_socket(sock, server_hostname=alices.link) as tls:  # noqa: SIM117
            with pytest.raises(OSError, match="alert|EOF|reset|pipe"):  # noqa: PT012
                tls.sendall(b"GET /link HTTP/1.1")
                tls.recv(1)
        assert joining.result().error == (503, "CommError")


def test_a_link_to_a_session_that_is_not_there(cluster, files):
    """It is a request like others: of a party, and no coordinator."""
    worker = raw_worker(cluster, files["Mallory"], 0, LINK_PROTOCOL)
    assert worker.ask("GET", "/link").error == (426, "upgrade")
    assert worker.ask("GET", "/facts").error == (403, "no-coordinator")


def test_an_engine_is_told_no_key(alice, cluster):
    """What it is started with names no file of the configuration."""
    files = TlsFiles.of("certs/a")
    config = WorkerConfig(name="a", tls=files, coordinators=("host",), peers={}, plugins={})
    assert json.loads(config.for_engines).keys() & {"tls", "coordinators", "peers"} == set()


def test_peers_that_are_not_among_those_of_the_configuration(files):
    peers = {"bob": "https://127.0.0.1:9"}
    with LocalCluster(
        ["alice"], tls=files, peers=peers, imports=("mplang_testing.dialect",)
    ) as one:
        host = raw_worker(one, files["host"])
        mallory = {"name": "Mallory", "address": "https://127.0.0.1:9"}
        body = json.dumps({"rank": 0, "parties": [host.party(), mallory]}).encode()
        assert host.ask("PUT", "/v1/sessions/s", body).error == (403, "no-peer")
        host.works()


# -- two coordinators


def test_a_coordinator_has_its_own_sessions(cluster, files, alice):
    other = raw_worker(cluster, files["other"])
    session = alice.open(name="mine")
    assert alice.put_program(DOUBLE, session).status == 200
    found = alice.submit(session, DOUBLE, np.int64(4), run="mine-1")
    assert found.json["state"] == "done"
    for method, path in (
        ("GET", "/v1/sessions/mine/jobs"),
        ("GET", "/v1/sessions/mine/jobs/mine-1"),
        ("DELETE", "/v1/sessions/mine/jobs/mine-1"),
        ("GET", "/v1/sessions/mine/values/mine-1.0"),
    ):
        assert other.ask(method, path).error == (404, "unknown-session")
    assert (
        other.ask("DELETE", "/v1/sessions/mine").status == 200
    )  # there is no session of this coordinator
    other.open(name="mine")
    assert other.ask("GET", "/v1/sessions/mine/values/mine-1.0").error == (404, "unknown-value")
    assert alice.ask("GET", "/v1/sessions/mine/values/mine-1.0").status == 200
    other.ask("DELETE", "/v1/sessions/mine")
    alice.ask("DELETE", "/v1/sessions/mine")


def test_messages_of_two_coordinators_do_not_cross(cluster, files):
    """One coordinator guesses the other's session and run names, and is first at bob."""
    move = program(lambda x: mp.pshfl_s(x, mp.Mask.of(1), [0]), np.int64(0), parties=2)
    sides = {
        name: [raw_worker(cluster, files[name], rank) for rank in (0, 1)]
        for name in ("host", "other")
    }
    for workers in sides.values():
        assert [each.status for each in open_at_all(workers, "same")] == [200, 200]
        for worker in workers:
            worker.put_program(move, "same")

    def start(name: str, rank: int, value: int) -> None:
        if rank == 0:
            data = join_frame(*pack(np.int64(value)))
            assert sides[name][0].ask("PUT", "/v1/sessions/same/values/x", data).status == 200
        fields = {"inputs": [Stored(["x", None])], "parties": [0, 1]}
        found = sides[name][rank].submit("same", move, run="same-1", wait=0, **fields)
        assert found.status in (200, 202), found

    start("other", 1, 0)
    start("host", 0, 7)
    start("host", 1, 0)
    job = "/v1/sessions/same/jobs/same-1?wait=30"
    value = "/v1/sessions/same/values/same-1.0"
    assert sides["host"][1].ask("GET", job).json["state"] == "done"
    assert sides["host"][1].ask("GET", value).data[-8:] == struct.pack("q", 7)
    assert sides["other"][1].ask("GET", value).error == (404, "unknown-value")
    start("other", 0, 8)
    assert sides["other"][1].ask("GET", job).json["state"] == "done"
    assert sides["other"][1].ask("GET", value).data[-8:] == struct.pack("q", 8)
    for workers in sides.values():
        for worker in workers:
            worker.ask("DELETE", "/v1/sessions/same")


def test_the_host_itself(cluster, files):
    with mp.connect("http", cluster.spec, tls=files["other"]) as host:
        assert mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7))) == [7, 7]
    with pytest.raises((AdmissionError, mp.errors.PartyError), match="carol is not among"):
        mp.connect("http", cluster.spec, tls=files["carol"])


# -- first bytes and files


def hello(*protocols: str) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(into, out, server_hostname="alice")
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return out.read()


def test_a_hello_says_what_it_wants():
    assert link_in_hello(hello(LINK_PROTOCOL)) == "alice"
    assert link_in_hello(hello("http/1.1", LINK_PROTOCOL)) == "alice"
    assert link_in_hello(hello("http/1.1")) == ""
    assert link_in_hello(hello()) == ""
    whole = hello(LINK_PROTOCOL)
    for size in range(len(whole)):
        assert link_in_hello(whole[:size]) is None


def test_a_hello_that_is_damaged_wants_nothing_else():
    whole = hello(LINK_PROTOCOL)
    for at in range(len(whole)):
        for bits in (0x01, 0x80, 0xFF):
            data = bytearray(whole)
            data[at] ^= bits
            found = link_in_hello(bytes(data))
            assert found is None or found.isascii()


def test_keys_are_their_owners_alone(files):
    for name in NAMES:
        assert Path(files[name].key).stat().st_mode & 0o777 == 0o600


def test_keys_are_not_overwritten(tmp_path):
    made = make_certificates(tmp_path, ["alice", "bob"])
    key = Path(made["alice"].key).read_bytes()
    with pytest.raises(ConfigError, match="exists already, and a key is not overwritten"):
        make_certificates(tmp_path, ["alice", "bob"])
    assert Path(made["alice"].key).read_bytes() == key
    replaced = make_certificates(tmp_path, ["alice", "bob"], replace=True)
    assert Path(replaced["alice"].key).read_bytes() != key


def test_a_link_where_a_key_is_to_be_is_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("")
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs" / "alice.key").symlink_to(elsewhere)
    for replace in (False, True):
        with contextlib.suppress(ConfigError):
            make_certificates(tmp_path / "certs", ["alice"], replace=replace)
        assert elsewhere.read_text() == ""
    assert (tmp_path / "certs" / "alice.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_may_read_is_refused(tmp_path, mode):
    made = make_certificates(tmp_path, ["alice"])["alice"]
    Path(made.key).chmod(mode)
    with pytest.raises(ConfigError, match=f"others .mode {mode:o}.; chmod 600"):
        client_context(made)


def test_files_that_are_no_certificates(tmp_path):
    (tmp_path / "a.pem").write_text("nothing")
    (tmp_path / "a.pem").chmod(0o600)
    files = TlsFiles(**dict.fromkeys(("cert", "key", "ca"), str(tmp_path / "a.pem")))
    with pytest.raises(ConfigError, match="cannot use the certificates"):
        client_context(files)
    with pytest.raises(ConfigError, match="coordinators"):
        WorkerConfig(name="a", tls=files)
    with pytest.raises(ConfigError, match="peers names the workers that may take part"):
        WorkerConfig(name="a", tls=files, coordinators=("host",))
    with pytest.raises(ConfigError, match="loopback only"):
        WorkerConfig(name="a", host="0.0.0.0")
