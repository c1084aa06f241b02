"""Write the seeds of the corpus, of real programs and values: ``python tests/fuzz/run.py seeds``.

A seed that is there is not written again, so that the corpus does not change with random numbers.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ibis
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pyarrow as pa
from artifact.programs import CASES
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fuzz.http_front import SESSION
from fuzz.run import CORPUS, ROOT
from fuzz.targets import CA, STATEMENT
from http_raw import DOUBLE, opening_of
from mplang_analysis.labels import own
from mplang_crypto import CiphertextType
from mplang_crypto.types import Ciphertext, PublicKey
from mplang_http.wire.protocols import LINK_PROTOCOL, UPGRADE
from mplang_http.wire.requests import Public, Stored
from mplang_http.wire.values import join_frame, pack
from mplang_spu import ShareType, SpuConfig, conversion, engine
from mplang_spu.shares import SpuShare
from mplang_stablehlo.module import canonical
from mplang_tables import table
from mplang_testing import dialect
from mplang_worker.link.frames import Kind, frame
from mplang_worker.tls import credentials
from mplang_worker.tls.keygen import make_certificates
from mplang_worker.tls.trust import read_certificates

import mplang_core as mp
from mplang_core.ext import from_bytes, to_bytes

YEARS = 100 * 365  # days: the corpus stays valid
SALES = {"region": ["n", "s", "n"], "amount": [1.5, 2.5, None], "id": [1, 2, 3]}


# -- programs


def programs() -> Iterator[tuple[str, mp.Program]]:
    for name, case in CASES.items():
        yield name, case.compiled().program
    yield "double", from_bytes(DOUBLE)
    two = mp.TraceContext(mp.ClusterSpec.simple(2))
    for fn in (query, branches, constants):
        yield fn.__name__, mp.trace(two, fn).program


def query() -> Any:
    sales = mp.device("P0")(table(SALES))()
    found = mp.device("P0")(
        lambda t: t.filter(t.amount > 1).group_by("region").agg(n=ibis._.count())
    )
    return mp.put("P1", found(sales))


def branches() -> Any:
    x = mp.put("P0", np.int64(3), range=(0, 9))
    there = mp.pshfl_s(x, [0, 1], [0, 0])
    less = mp.invoke(dialect.less, there, there)
    return mp.uniform_cond(less, lambda: mp.invoke(dialect.add, there, there), lambda: there)


def constants() -> Any:
    kinds = ["?", "i1", "u2", "f2", "f8", "c16"]
    arrays = [np.array([[0, 1, 1]], kind) for kind in kinds]
    big = mp.constant(np.arange(40, dtype=np.int16), parties=0)
    return [*(mp.constant(array) for array in arrays), big, mp.constant(np.float32([np.nan]))]


# -- values


def tensors() -> Iterator[tuple[str, Any]]:
    for kind in ("?", "u1", "i8", "f4", "c8"):
        yield f"tensor_{np.dtype(kind).name}", np.array([[0, 1], [1, 0]], kind)
    yield "scalar", np.float64(2.5)
    yield "empty", np.zeros((0, 3), np.int32)
    yield "bytes", b"some bytes"
    yield "none", None
    yield "true", True
    yield "public_key", PublicKey(bytes(range(32)))
    sealed = CiphertextType(CiphertextType(mp.TensorType("f32", (3,))))
    yield "ciphertext", Ciphertext(sealed, bytes(12), bytes(40))
    columns = {
        "text": pa.array(["a", None, "ccc"]),
        "flag": pa.array([True, None, False]),
        "amount": pa.array([1, 2, None], pa.decimal128(10, 2)),
        "day": pa.array([1, 2, 3], pa.date32()),
        "raw": pa.array([b"x", b"", b"yy"]),
        "at": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
    }
    yield "table", pa.table(columns)
    yield "empty_table", pa.table({"a": pa.array([], pa.int64())})


def several_tables() -> Iterator[tuple[str, Any]]:
    numbers = [pa.array([1, None, 3], kind) for kind in (pa.int8(), pa.uint64(), pa.float32())]
    yield "numbers", pa.table(numbers, ["a", "b", "c"])
    many = pa.array([f"{'long ' * (i % 7)}{i % 50}" for i in range(900)])
    yield "many", pa.table({"s": many, "i": pa.array(range(900))})


def shares() -> Iterator[tuple[str, SpuShare]]:
    for protocol, parties in (("ABY3", 3), ("SEMI2K", 2), ("CHEETAH", 2)):
        for field, fxp in (("FM32", 8), ("FM64", 18), ("FM128", 40)):
            for x in (np.float32([[1, 2, 3]]), np.array([True, False]), np.int8(7)):
                config = SpuConfig(
                    protocol=protocol,
                    field=field,
                    fxp_fraction_bits=fxp,
                    parties=tuple(range(parties)),
                )
                kind = ShareType.of(mp.TensorType.of(x), config)
                io = engine.io(parties, protocol, field, fxp)
                made = io.make_shares(np.asarray(x), engine.visibility(x.dtype != bool))[0]
                share = conversion.from_libspu(made, kind)
                yield f"{protocol}_{field}_{x.dtype}".lower(), share


# -- links


def frames() -> Iterator[tuple[str, bytes]]:
    opening = opening_of("host/s/r", DOUBLE, [Stored(["x"])], ["alice", "bob"])
    opening = opening.told("0" * 64, [own(1, "put")])
    run = opening.key.encode()
    head, buffers = pack(np.arange(3.0))
    message = frame(Kind.MESSAGE, run + b"/3", head, 24) + bytes(buffers[0])
    large, _ = pack(np.zeros((1 << 20) + 8, np.uint8))
    size, half = (1 << 20) + 8, 4096
    chunk = frame(Kind.CHUNK, size=half, stream=7) + bytes(half)
    opened = frame(Kind.OPEN, run, opening.write())
    closed = frame(Kind.CLOSE, run) + frame(Kind.CLOSED, run)
    yield "open", opened
    yield "run", opened + message + closed
    yield "two_runs", opened + frame(Kind.OPEN, b"other") + message * 2 + closed + opened
    yield "large", opened + frame(Kind.MESSAGE, run + b"/4", large, size, 7) + chunk * 2
    yield "abort", opened + frame(Kind.ABORT, run, "it failed: é".encode())


# -- code


JAX = {
    "sort": lambda x: jnp.sort(x, axis=0),
    "loop": lambda x: jax.lax.fori_loop(0, 5, lambda i, y: y * i, x),
    "cond": lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "switch": lambda x: jax.lax.switch(x.astype(int)[0, 0], [jnp.sin, jnp.cos, jnp.tan], 1.0),
    "calls": lambda x: jax.nn.softmax(jnp.where(x > 0, x, jnp.log1p(-x))),
    "scan": lambda x: jax.lax.scan(lambda c, y: (c + y, c), x[0], x),
    "gather": lambda x: x[:, x.astype(int)[0] % 3],
    "scatter": lambda x: x.at[:, 1].add(1.0),
    "pad": lambda x: jax.lax.pad(x, 0.0, ((-1, 2, 1), (0, -2, 0))),
    "window": lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 2), (2, 2), "SAME"),
    "convolve": lambda x: jnp.convolve(x[0], x[1][:2], mode="same"),
    "top_k": lambda x: jax.lax.top_k(x, 2),
    "erf": jax.lax.erf,
    "fft": lambda x: jnp.fft.rfft(x).real,
    "solve": lambda x: jnp.linalg.qr(x)[0],
    "cholesky": lambda x: jnp.linalg.cholesky(x[:3, :3]),
    "random": lambda x: x + jax.random.normal(jax.random.PRNGKey(0), x.shape),
    "bits": lambda x: jax.lax.bitcast_convert_type(x, np.int32) >> 2,
    "reduce": lambda x: (x.sum(0), x.argmax(), (x > 0).any()),
    "matmul": lambda x: jnp.einsum("ij,kj->ik", x, x),
}


def stablehlo() -> Iterator[tuple[str, bytes]]:
    x = jax.ShapeDtypeStruct((4, 4), np.float32)
    for name, fn in JAX.items():
        yield name, canonical(jax.jit(fn).lower(x).as_text()).encode()


SQL = """
SELECT "a", "s" FROM "x" WHERE "a" > 3 AND "s" LIKE '%y' ORDER BY 1 DESC NULLS LAST LIMIT 5
WITH t AS (SELECT a + 1 AS a FROM x), u AS (FROM t) SELECT a FROM u UNION ALL (SELECT 7)
SELECT count(*) AS n, sum(p.price) FILTER (WHERE p.id = 1) FROM orders p LEFT JOIN x q ON p.id = q.a
SELECT row_number() OVER (PARTITION BY s ORDER BY a ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM x
SELECT CASE WHEN a IS NULL THEN 0 ELSE CAST(a AS DECIMAL(10, 2)) END AS v, a IN (1, 2) FROM x
SELECT date_trunc('month', day) AS m, strftime(day, '%Y'), epoch(day) FROM orders GROUP BY ALL
SELECT DISTINCT upper(s) || E'\\'' , $$a$$, [1, 2][1], unnest([1, 2, 3]) FROM (VALUES (1)) AS v(s)
SELECT * FROM read_csv('secret.csv')
SELECT a FROM x WHERE a IN (SELECT id FROM orders WHERE orders.price BETWEEN 1 AND x.a)
SELECT list_transform([1], v -> v + 1), current_date, {'a': 1}, a::VARCHAR COLLATE NOCASE FROM x
SELECT a FROM x TABLESAMPLE 10%; SELECT 2
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r
PIVOT x ON s USING sum(a)
"""


def sql() -> Iterator[tuple[str, bytes]]:
    for i, line in enumerate(SQL.strip().splitlines()):
        yield f"hand_{i:02}", line.encode()
    t = ibis.table({"region": "string", "amount": "float64", "at": "timestamp"}, name="x")
    made = {
        "grouped": t.group_by("region")
        .agg(n=ibis._.count(), mean=ibis._.amount.mean())
        .order_by("n"),
        "window": t.mutate(rank=ibis.row_number().over(group_by="region", order_by="at")),
        "times": t.select(day=t.at.date(), hour=t.at.hour()).distinct(),
        "joined": t.join(t.view(), "region").select("region", "amount"),
        "texts": t.select(a=t.region.upper().substr(0, 2), b=t.region.like("a%")),
    }
    for name, expression in made.items():
        yield name, str(ibis.to_sql(expression, dialect="duckdb")).encode()


# -- HTTP and TLS


def request(method: str, path: str, body: bytes | None = None) -> bytes:
    length = "" if body is None else f"Content-Length: {len(body)}\r\n"
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}\r\n".encode() + (body or b"")


def http() -> Iterator[tuple[str, bytes]]:
    here, run = f"/v1/sessions/{SESSION}", f"{SESSION}-1"
    name = hashlib.sha256(DOUBLE).hexdigest()
    job = {"run": run, "program": name, "generation": 0, "parties": [0]}
    inputs = [Public(join_frame(*pack(np.int64(4))))]
    party = {"name": "party0", "address": "http://127.0.0.1:1"}
    yield "health", request("GET", "/health")
    yield "ready", request("GET", "/ready")
    yield "facts", request("GET", "/facts")
    yield "openapi", request("HEAD", "/openapi.json")
    yield "session", request("PUT", here, json.dumps({"rank": 0, "parties": [party]}).encode())
    links = {"credentials": [{"link": "0" * 32}], "generation": 0}
    yield "links", request("POST", f"{here}/links", json.dumps(links).encode())
    yield "alive", request("GET", here)
    yield "close", request("DELETE", here)
    yield "program", request("PUT", f"{here}/programs/{name}", DOUBLE)
    yield "release", request("POST", f"{here}/release", b'["a", "b"]')
    body = msgspec.msgpack.encode(job | {"inputs": inputs})
    yield "job", request("POST", f"{here}/jobs?run={run}", body)
    body = msgspec.msgpack.encode(job | {"inputs": [Stored(["x"])], "record": True})
    yield "stored", request("POST", f"{here}/jobs?run={run}&wait=1", body)
    yield "jobs", request("GET", f"{here}/jobs")
    yield "status", request("GET", f"{here}/jobs/{run}?wait=0.5")
    yield "events", request("GET", f"{here}/jobs/{run}/events?every=0.1")
    yield "spans", request("GET", f"{here}/jobs/{run}/spans")
    yield "cancel", request("DELETE", f"{here}/jobs/{run}?reason=none")
    value = join_frame(*pack(np.arange(3)))
    yield "put", request("PUT", f"{here}/values/x", value)
    yield "upload", request("PUT", f"{here}/inputs/{hashlib.sha256(value).hexdigest()}", value)
    yield "get", request("GET", f"{here}/values/x")
    yield "pipelined", request("GET", "/health") * 3
    chunked = b"POST /v1/sessions/fuzz/release HTTP/1.1\r\nHost: localhost\r\n"
    yield "chunked", chunked + b'Transfer-Encoding: chunked\r\n\r\n4\r\n["a"\r\n1\r\n]\r\n0\r\n\r\n'
    fields = "Connection: Upgrade\r\nX-Mplang-Link: " + "0" * 32
    yield "link", f"GET /link HTTP/1.1\r\nUpgrade: {UPGRADE}\r\n{fields}\r\n\r\n".encode()


def certificates() -> Iterator[tuple[str, bytes]]:
    """Yield credentials that are valid for long, and are of an authority without a key."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_certificates(Path(folder, "certs"), ["alice", "bob"], days=YEARS)
        CA.write_bytes(Path(made["alice"].ca).read_bytes())
        alice = made["alice"]
        credentials.LIFETIME = datetime.timedelta(days=YEARS)
        public = ec.generate_private_key(ec.SECP256R1()).public_key()
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        key = public.public_bytes(serialization.Encoding.PEM, form)
        link = "5c1f" * 8
        credential = credentials.Authority(alice, read_certificates(alice.cert)).issue(
            link, key.decode(), STATEMENT
        )
        yield "credential", msgspec.json.encode(credential)
        yield "insecure", msgspec.json.encode(credentials.Credential(link))
        yield "party", Path(alice.cert).read_bytes()
        yield "key", key
    yield "hello", hello(link)
    yield "request", f"GET /link HTTP/1.1\r\nX-Mplang-Link: {link}\r\n\r\n".encode()


def hello(name: str) -> bytes:
    """Return the first bytes of a TLS connection."""
    context = ssl.create_default_context()
    context.set_alpn_protocols([LINK_PROTOCOL])
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(received, sent, server_hostname=name).do_handshake()
    return sent.read()


# -- files


def seeds() -> Mapping[str, Mapping[str, bytes]]:
    """Return the seeds of each target by their names."""
    traced = dict(programs())
    framed = {name: join_frame(*pack(value)) for name, value in tensors()}
    tables = {name: join_frame(*pack(value)) for name, value in several_tables()}
    shared = {name: join_frame(*pack(value)) for name, value in shares()}
    invalid = sorted((ROOT / "tests/ir/golden/invalid").glob("*.mpl"))[::9]
    return {
        "wire": {name: to_bytes(program) for name, program in traced.items()},
        "text": {name: str(program).encode() for name, program in traced.items()}
        | {f"invalid_{path.stem}": path.read_bytes() for path in invalid},
        "values": framed | {"share": shared["aby3_fm64_float32"]},
        "frames": dict(frames()),
        "artifacts": {
            name: mp.artifact.pack(case.compiled(), locations=False) for name, case in CASES.items()
        },
        "sql": dict(sql()),
        "shares": shared,
        "stablehlo": dict(stablehlo()),
        "compiled": dict(stablehlo()),
        "tables": tables | {"table": framed["table"]},
        "http": dict(http()),
        "certificates": dict(certificates()) if not CA.exists() else {},
    }


def write() -> None:
    """Write the seeds that are not there."""
    for target, named in seeds().items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in named.items():
            if not (folder / name).exists():
                (folder / name).write_bytes(data)
                print(f"{target}/{name}: {len(data)} bytes")
