"""Fuzz targets: each feeds bytes to a decoder or gate, and lets through its documented errors only.

Whatever is accepted goes on: it is verified, printed, encoded again and compared.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import jax
import msgspec
import numpy as np
import pyarrow as pa
from fuzz.http_front import Front
from mplang_cli.artifact import inspect, load
from mplang_cli.artifact.container import close as seal
from mplang_http.tls.contexts import server_context
from mplang_http.tls.files import TlsFiles
from mplang_http.wire.values import Packed, join_frame, pack, pack_as, read_plain, split_frame
from mplang_ibis import query
from mplang_ibis.sql import read_sql
from mplang_jax import kernel
from mplang_jax.admission import XLA
from mplang_policy.signed_heads import HeadError, SignedHead
from mplang_spu import conversion, engine
from mplang_spu.lowering import SPU, Target, lower
from mplang_spu.reconstruction import reconstruct
from mplang_spu.shares import SpuShare
from mplang_stablehlo import read, signature_of
from mplang_stablehlo.inline import inline
from mplang_stablehlo.module import parse as parse_stablehlo, text_of
from mplang_worker.base.config import EngineConfig
from mplang_worker.engine.programs import Programs
from mplang_worker.link.connection import Connection
from mplang_worker.link.handshake import link_in_head, parse_head
from mplang_worker.link.link import Link
from mplang_worker.tls.client_hello import link_in_hello
from mplang_worker.tls.credentials import (
    Authority,
    Credential,
    session_statement,
    verify_credential,
)
from mplang_worker.tls.keygen import make_certificates
from mplang_worker.tls.trust import Trust, parse_chain, read_certificates
from mplang_worker.wire.opening import Opening, read_labels

from mplang_core import Program, TableType, parse, verify
from mplang_core.errors import (
    AdmissionError,
    ConfigError,
    MPLangError,
    ParseError,
    PluginLoadError,
    VerifyError,
    WireError,
)
from mplang_core.ext import from_bytes, to_bytes, type_of
from mplang_core.ir.compressed_text import pack as pack_code
from mplang_core.runtime import codec

HERE = Path(__file__).parent
TARGETS: dict[str, Callable[[bytes], None]] = {}
T = TypeVar("T", bound=Callable[[bytes], None])


def target(function: T) -> T:
    TARGETS[function.__name__] = function
    return function


# -- programs


@target
def wire(data: bytes) -> None:
    """Decode a program, and admit it as a worker does."""
    with contextlib.suppress(MPLangError):
        _programs().put(hashlib.sha256(data).hexdigest(), data)
    try:
        program = from_bytes(data)
    except WireError:
        return
    _check_program(program)


@target
def text(data: bytes) -> None:
    """Parse a program in text."""
    try:
        program = parse(data.decode(errors="replace"))
    except ParseError:
        return
    assert parse(str(program)).digest == program.digest
    _check_program(program)


@target
def artifacts(data: bytes) -> None:
    """Load an artifact as it is, and with the checksum that its payload should have."""
    for given in (data, seal(data[52:])):
        try:
            artifact = load(given)
        except (WireError, VerifyError, PluginLoadError):
            continue
        again = load(artifact.to_bytes())
        assert (again.digest, again.manifest) == (artifact.digest, artifact.manifest)
        str(artifact.signature)
        str(inspect(given))
        with contextlib.suppress(MPLangError):
            artifact.traced(artifact.cluster.spec())


def _check_program(program: Program) -> None:
    assert from_bytes(to_bytes(program)).digest == program.digest
    try:
        verify(program)
    except VerifyError:
        return
    assert parse(str(program)).digest == program.digest


@functools.cache
def _programs() -> Programs:
    return Programs(EngineConfig(name="alice"), "local", 0, ["alice"])


# -- values


@target
def values(data: bytes) -> None:
    """Decode a framed value, of the types of the core and of all plugins."""
    with contextlib.suppress(WireError):
        read_plain(data)
    _read_value(data)


@target
def shares(data: bytes) -> None:
    """Decode a share; what is accepted is reconstructed, and libspu takes it, to the same end."""
    value = _read_value(data)
    if not isinstance(value, SpuShare) or value.type.plain.size > 1 << 16:
        return
    kind = value.type
    io = engine.io(len(kind.parties), kind.protocol, kind.field, kind.fxp)
    found = reconstruct([value] * len(kind.parties))
    given = io.reconstruct([conversion.to_libspu(value)] * len(kind.parties))
    np.testing.assert_array_equal(found, np.asarray(given).astype(found.dtype))


def _read_value(data: bytes) -> Any:
    try:
        packed = split_frame(data)
        value = packed.value()
    except WireError:
        return None
    kind = type_of(value) if packed.head.kind[:1] != "!" else None
    framed = join_frame(*(pack(value) if kind is None else pack_as(kind, value)))
    again = split_frame(framed)
    found = again.value(kind)
    assert join_frame(*(pack(found) if kind is None else pack_as(kind, found))) == framed
    if kind is not None:
        codec.decode(kind, *codec.encode(kind, value))
    return value


# -- links


@target
def frames(data: bytes) -> None:
    """Read what a peer sends on a link until it ends."""
    listener = _Listener()
    link = Link(_Received(data), "bob", listener, max_message=1 << 22, max_waiting=1 << 23)
    while listener.ended is None:
        link._read()
    assert listener.ended in ("the connection ended", "it sent an unexpected message"), (
        listener.ended
    )


class _Received(Connection):
    """Connection that has received some bytes."""

    certificate = ""

    def __init__(self, data: bytes) -> None:
        self._left = memoryview(data)

    def read_into(self, view: memoryview, deadline: float | None = None) -> int:
        count = min(len(view), len(self._left))
        view[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def close(self) -> None:
        pass


class _Listener:
    """Decodes what a worker's engine would."""

    ended: str | None = None
    agreed = True

    def message(self, link: Link, key: str, packed: Packed) -> None:
        with contextlib.suppress(WireError):
            packed.value()

    def opened(self, link: Link, run: str, opening: Opening | None) -> None:
        if opening is not None:
            assert Opening.read(opening.write()) == opening
            with contextlib.suppress(WireError):
                read_labels({1: opening}, 1)

    def headed(self, link: Link, run: str, name: str, head: bytes) -> None:
        with contextlib.suppress(HeadError):
            SignedHead.read(head, "0" * 64)

    def closed(self, link: Link, run: str) -> None:
        assert run not in link.runs

    def acknowledged(self, link: Link, run: str) -> None: ...

    def aborted(self, link: Link, run: str, reason: str) -> None: ...

    def lost(self, link: Link, reason: str) -> None:
        self.ended = reason


# -- code of engines


KINDS = {
    "x": pa.schema([("a", pa.int64()), ("s", pa.string())]),
    "orders": pa.schema([("id", pa.int32()), ("price", pa.float64()), ("day", pa.date32())]),
}


@target
def sql(data: bytes) -> None:
    """Admit SQL, and bind it to tables."""
    with contextlib.suppress(ValueError):
        read_sql(data)
    try:
        code = read_sql(pack_code(data.decode(errors="replace")))
    except ValueError:
        return
    con = _database()
    with contextlib.suppress(AdmissionError):
        query.admit_on(con, code, KINDS)
        query.bind(con, code)
    assert con.execute("SELECT 1").fetchone() == (1,), "the database is damaged"


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    """Return a connection as each query has; a new one for each would take all the time."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    con = stack.enter_context(query._connect())
    for name, kind in KINDS.items():
        con.register(name, kind.empty_table())
    return con


@target
def tables(data: bytes) -> None:
    """Decode a table as an engine does that got it from a peer, and ask for it in SQL."""
    value = _read_value(data)
    if not isinstance(value, pa.Table) or not value.num_rows:
        return
    kind, number = type_of(value), TableType((("n", "int64"),))
    for code, gives in (
        ('SELECT * FROM "x" ORDER BY ALL', kind),
        ('SELECT count(*) AS "n" FROM (SELECT DISTINCT * FROM "x")', number),
        ('SELECT count(*) AS "n" FROM (FROM "x" INTERSECT FROM "x")', number),
    ):
        found = query.run_sql(code, {"x": value}, gives)
        assert gives is number or found.num_rows == value.num_rows
        assert gives is kind or 0 < found["n"][0].as_py() <= value.num_rows


TARGET = Target("ABY3", "FM64", 18)


@target
def stablehlo(data: bytes) -> None:
    """Admit StableHLO to each engine, inline what is admitted, and lower it for SPU."""
    with contextlib.suppress(ValueError):
        signature_of(data)
    code = pack_code(data.decode(errors="replace"))
    try:
        signature_of(code)
        text = read(code)
    except ValueError:
        return
    for admission in (XLA, SPU):
        try:
            module = admission.admit(text)
        except ValueError:
            continue
        printed = text_of(module)
        assert text_of(parse_stablehlo(printed)) == printed
        inline(module)
        assert module.operation.verify()
    try:
        lowered = lower(text, TARGET)
    except ValueError:
        return
    parse_stablehlo(lowered.text)  # as libspu does


@target
def compiled(data: bytes) -> None:
    """Compile StableHLO that is admitted, as engines do: by XLA, and by libspu."""
    code = pack_code(data.decode(errors="replace"))
    with contextlib.suppress(ValueError, AdmissionError, jax.errors.JaxRuntimeError):
        kernel._compile(code, True)
    try:
        takes, _ = signature_of(code)
        engine.build(lower(read(code), TARGET), [True] * len(takes))
    except ValueError:
        return


# -- HTTP and TLS


@target
def http(data: bytes) -> None:
    """Send bytes to the front of a live worker, which answers or closes the connection."""
    _front().send(data)


@functools.cache
def _front() -> Front:
    made = Front()
    atexit.register(made.close)
    return made


CA = HERE / "authority.pem"
"""Certificate of the authority of the corpus; its key is not kept."""

STATEMENT = session_statement("host", "fuzz", ["alice", "bob"], "engine")


@target
def certificates(data: bytes) -> None:
    """Verify a credential, and read certificates, keys and the first bytes of a connection."""
    link_in_hello(data)
    found = link_in_head(data)
    assert found is None or isinstance(found, str)
    parse_head(data)
    trust, authority, file, mine = _authority()
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        credential = msgspec.json.decode(data, type=Credential)
        with contextlib.suppress(AdmissionError):
            end = verify_credential(trust, "alice", credential, STATEMENT)
            assert (end.name, end.link) == ("alice", credential.link)
    with contextlib.suppress(AdmissionError):
        authority.issue("0" * 32, data.decode(errors="replace"), STATEMENT)
    with contextlib.suppress(AdmissionError):
        trust.verify(parse_chain([data]))
    file.write_bytes(data)
    for change in ("cert", "ca", "crl"):
        files = mine.model_copy(update={change: str(file)})
        for read_files in (server_context, lambda files: Trust(files, {})):
            with contextlib.suppress(ConfigError):
                read_files(files)
    with contextlib.suppress(ConfigError):
        Authority(mine.model_copy(update={"key": str(file)}), [])


@functools.cache
def _authority() -> tuple[Trust, Authority, Path, TlsFiles]:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    mine = make_certificates(Path(folder.name) / "certs", ["bob"])["bob"]
    trust = Trust(TlsFiles(cert=mine.cert, key=mine.key, ca=str(CA)), {})
    return trust, Authority(mine, read_certificates(mine.cert)), Path(folder.name) / "input", mine
