"""Public inputs that are too large for a request: uploaded by their SHA-256, and nothing else."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from http_raw import NUMBERS, RawWorker, open_at_all, sha
from mplang_http import LocalCluster
from mplang_http.coordinator.remote_worker import RemoteWorker
from mplang_http.tls.contexts import client_context
from mplang_http.wire.requests import Uploaded
from mplang_http.wire.values import frame_head, join_frame, pack
from mplang_policy import Ledger
from mplang_testing import dialect
from mplang_worker.tls.keygen import make_certificates

import mplang_core as mp
from mplang_core.errors import MPLangError
from mplang_core.ir.wire import to_bytes

NAMES = ["bank", "shop"]
SIZE = 4096  # elements, too many for a request
PAY = np.arange(float(SIZE))
MASK = np.eye(1, SIZE, 1)[0]
BODY = join_frame(*pack(MASK))
DIGEST = sha(BODY)
PUBLIC = f"public.{DIGEST}"
RULES = """permit (principal, action, resource);
@id("no puts") forbid (principal, action == Action::"put", resource);
"""
SHOP = """permit (principal, action, resource);
@id("not what was put") forbid (principal, action == Action::"fetch", resource)
when { context.columns.contains(Column::"other:put") };
"""
ARRAY = {"array": f"f64[{SIZE}]"}


def masked(x):
    return mp.invoke(dialect.add, mp.dataset("bank", "pay"), x)


def shown(x):
    return mp.put("P1", x)


def traced(fn, *args) -> bytes:
    with mp.catalogue({"bank": {"pay": ARRAY}}):
        made = mp.compile(fn, *args, cluster_spec=mp.ClusterSpec([{"name": n} for n in NAMES]))
        return to_bytes(made.trace(None, *args).program)


AT_BANK = mp.MPType(mp.TensorType("f64", (SIZE,)), mp.Mask.of(0))


class Workers:
    """A bank that takes no puts, and a shop, in production and over TLS."""

    def __init__(self, folder) -> None:
        self.folder = folder
        np.save(folder / "pay.npy", PAY)
        gates = {}
        for name, rules in zip(NAMES, (RULES, SHOP), strict=True):
            (folder / f"{name}.cedar").write_text(rules)
            gates[name] = {
                "policy": str(folder / f"{name}.cedar"),
                "log": str(folder / f"{name}.db"),
            }
        self.files = make_certificates(folder / "keys", [*NAMES, "host"])
        data = {"bank": {"pay": {"source": f"npy:{folder}/pay.npy", "readers": ["host"], **ARRAY}}}
        self.cluster = LocalCluster(
            NAMES, tls=self.files, coordinators=("host",), data=data, gates=gates,
            mode="production", imports=("mplang_testing.dialect",), sink=folder,
        )  # fmt: skip

    def connect(self):
        return mp.connect("http", self.cluster.spec, tls=self.files["host"])

    def log(self, name="bank"):
        with closing(Ledger(self.folder / f"{name}.db", read_only=True)) as ledger:
            return list(ledger.entries())


class Opened:
    """A session of both workers, as a coordinator of another program has it."""

    def __init__(self, raw, name) -> None:
        self.raw, self.name = raw, name
        found = open_at_all(raw, name)
        assert [each.status for each in found] == [200] * len(raw), found

    def ask(self, method, path, body=None, rank=0):
        return self.raw[rank].ask(method, f"/v1/sessions/{self.name}/{path}", body)

    def upload(self, rank=0, digest=DIGEST, body=BODY):
        return self.ask("PUT", f"inputs/{digest}", body, rank)

    def submit(self, data, given, ranks=(0, 1)):
        """Run a program at both, or at one that refuses it; return how each answers."""
        run = f"{self.name}-{next(NUMBERS)}"

        def at(rank):
            assert self.raw[rank].put_program(data, self.name).status == 200
            fields = {"inputs": [given], "parties": [0, 1]}
            return self.raw[rank].submit(self.name, data, run=run, **fields)

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(at, ranks))

    def close(self):
        for rank in (0, 1):
            self.raw[rank].ask("DELETE", f"/v1/sessions/{self.name}")


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    made = Workers(tmp_path_factory.mktemp("public"))
    with made.cluster:
        yield made


@pytest.fixture
def raw(workers):
    context = client_context(workers.files["host"], "http/1.1")
    return [RawWorker(workers.cluster, rank, context) for rank in (0, 1)]


@pytest.fixture
def session(raw):
    made = Opened(raw, f"s{next(NUMBERS)}")
    yield made
    made.close()


def test_a_large_public_input_needs_no_put(workers):
    before = len(workers.log())
    with workers.connect() as host:
        for _ in range(2):
            found = mp.fetch(host, mp.evaluate(host, masked, mp.public(MASK)))
            np.testing.assert_array_equal(found, PAY + MASK)
    kinds = {each.kind for each in workers.log()[before:]}
    assert kinds - {"end"} == {"run", "fetch"}


def test_a_put_is_asked_about_whatever_its_name(workers, monkeypatch):
    """The rule is void if the name decides."""
    put = RemoteWorker.put

    def evil(self, name, value):
        head, buffers = pack(value)
        body = frame_head(head) + b"".join(map(bytes, buffers))
        return put(self, f"public.{sha(body)}", value)

    for used in (put, evil):
        monkeypatch.setattr(RemoteWorker, "put", used)
        before = len(workers.log())
        with workers.connect() as host, mp.with_ctx(host), pytest.raises(MPLangError) as found:
            mp.evaluate(host, masked, mp.put("P0", MASK))
        assert "no puts" in str(found.value) or "begins with public." in str(found.value)
        assert [each.kind for each in workers.log()[before:]] == ["refusal"]


@pytest.mark.parametrize("name", [PUBLIC, "public.x", "public."])
def test_no_value_has_the_name_of_a_public_input(workers, session, name):
    assert session.upload().status == 200
    before = len(workers.log())
    found = session.ask("PUT", f"values/{name}", BODY)
    assert found.error == (422, "reserved")
    assert "begins with public." in found.text
    assert session.ask("GET", f"values/{name}").error == (422, "reserved")
    (entry,) = workers.log()[before:]
    assert (entry.kind, entry.body["value"]) == ("refusal", name)


def test_an_upload_is_no_value_that_one_party_has(workers, session):
    """Else what a coordinator gives to one party alone would be taken for public."""
    data = traced(masked, AT_BANK)
    assert session.upload().status == 200
    before = len(workers.log())
    found = session.submit(data, ["stored", [PUBLIC, None]])
    assert [each.error for each in found] == [(422, "reserved")] * 2
    assert {each.kind for each in workers.log()[before:]} == {"refusal"}
    (found,) = session.submit(data, ["stored", [DIGEST, None]], ranks=[0])
    assert found.error == (404, "unknown-value")


def test_a_name_decides_nothing_without_a_gate():
    with LocalCluster(1, mode="production", imports=("mplang_testing.dialect",)) as cluster:
        worker = RawWorker(cluster)
        session = worker.open()
        path = f"/v1/sessions/{session}"
        assert worker.ask("PUT", f"{path}/inputs/{DIGEST}", BODY).status == 200
        assert worker.ask("PUT", f"{path}/values/{PUBLIC}", BODY).error == (422, "reserved")
        made = mp.compile(lambda x: mp.invoke(dialect.add, x, x), MASK,
                          cluster_spec=mp.ClusterSpec.simple(1))  # fmt: skip
        data = to_bytes(made.trace(None, MASK).program)
        worker.put_program(data, session)
        found = worker.submit(session, data, inputs=[["stored", [PUBLIC]]])
        assert found.error == (422, "reserved")
        found = worker.submit(session, data, inputs=[Uploaded(DIGEST)])
        assert found.json["state"] == "done"


def test_an_upload_is_named_by_its_bytes(workers, session):
    before = len(workers.log())
    for body in (BODY[:-1] + b"\x01", BODY + b"\0", b""):
        assert session.upload(body=body).error == (400, "forged")
    assert session.upload(digest="x").error == (422, "invalid")
    small = join_frame(*pack(np.int64(1)))
    assert session.upload(digest=sha(small), body=small).status == 200
    assert session.upload(digest=sha(small)).error == (400, "forged")
    found = [(each.kind, each.body["input"]) for each in workers.log()[before:]]
    assert found == [("refusal", DIGEST)] * 3 + [("refusal", sha(small))]
    found = session.submit(traced(masked, MASK), Uploaded(DIGEST))
    assert found[0].error == (404, "unknown-value")


def test_an_upload_is_of_its_session(raw, session):
    assert session.upload().status == 200
    other = Opened(raw, f"s{next(NUMBERS)}")
    assert other.submit(traced(masked, MASK), Uploaded(DIGEST))[0].error == (404, "unknown-value")
    other.close()


def test_an_upload_stays_until_each_who_uploaded_it_has_released_it(session):
    data, names = traced(masked, MASK), json.dumps([PUBLIC]).encode()
    for rank in (0, 1):
        for _ in range(2):
            assert session.upload(rank).status == 200
        assert session.ask("POST", "release", names, rank).json == {"released": 0, "linked": True}
    found = session.submit(data, Uploaded(DIGEST))
    assert [each.json["state"] for each in found] == ["done", "done"]
    assert session.ask("POST", "release", names).json == {"released": 1, "linked": True}
    assert session.ask("POST", "release", names).json == {"released": 0, "linked": True}
    (found,) = session.submit(data, Uploaded(DIGEST), ranks=[0])
    assert found.error == (404, "unknown-value")


def test_no_session_whose_results_would_look_like_public_inputs(raw):
    body = json.dumps({"rank": 0, "parties": [raw[0].party()]}).encode()
    assert raw[0].ask("PUT", "/v1/sessions/public.s", body).error == (422, "reserved")


@pytest.mark.parametrize("use", ["store", "load"])
def test_no_stored_value_looks_like_a_public_input(session, use):
    def program(x):
        if use == "store":
            mp.store(x, "public_x")
        else:
            mp.load("P0", "public_x", type=AT_BANK.base)

    data = traced(program, MASK).replace(b"public_x", b"public.x")
    found = session.ask("PUT", f"programs/{sha(data)}", data)
    assert found.status in (400, 422), found
    assert "public.x" in found.text


def test_an_input_is_labelled_alike_by_engine_and_checker(workers, raw):
    """The checker tells the owner's rules, and the engine what is in storage."""
    with workers.connect() as host:
        given = mp.public(MASK)
        np.testing.assert_array_equal(mp.fetch(host, mp.evaluate(host, shown, given)), MASK)
        with mp.with_ctx(host):
            put = mp.put("P1", MASK)
        with pytest.raises(MPLangError, match="not what was put"):
            mp.evaluate(host, lambda x: x, put)
        mp.evaluate(host, lambda x: mp.store(x, "put"), put)
        mp.evaluate(host, lambda x: mp.store(mp.put("P1", x), "given"), given)
    stored = raw[1].ask("GET", "/facts").json["stored"]
    sources = {name: stored[name]["labels"][0][0] for name in ("put", "given")}
    assert sources == {"put": [[1, [1], "put", []]], "given": []}
