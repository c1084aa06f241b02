"""Sources of strangers for the fuzzer: seeds, and a confined process for each changed one.

The process is forked, and not started, so that there are many in a minute; it does what one of
``mplang_data`` does that is started.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import select
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from fuzz.mutation import mutate
from mplang_data import DataSet, SourceError, check as checks, source_reader
from mplang_data.apart import MAX_TOLD, PROGRESS, child
from pyarrow import csv

import mplang_core as mp

__all__ = ["ENDED", "SourceError", "changed", "check", "read", "seeds"]

ENDED = "ended with"
PATIENCE = 10  # seconds that an input has; ten minutes from a worker
SIZE = 64 << 20
COLUMNS = {"id": "int64", "pay": "double", "name": "string", "day": "date32[day]"}
TABLE = pa.table(
    {
        "id": [1, None, -(2**63)],
        "pay": [0.5, float("nan"), None],
        "name": ["a", "", '\u00fc, "b"'],
        "day": pa.array([0, 20000, None], pa.date32()),
    }
)
_KIND = mp.TableType(tuple(COLUMNS.items()))
PREFIX, HEADER, BLOCK = 8, 4096, 16384  # bytes, of DuckDB's checksums, headers and blocks


def seeds(kind: str) -> list[bytes]:
    """Return small sources of a kind."""
    found = []
    for rows in (TABLE, pa.concat_tables([TABLE] * 50)):
        for made in _MADE[kind](rows):
            found.append(made)
    return found


def _parquet(rows: Any) -> list[bytes]:
    options: list[dict[str, Any]] = [
        {"compression": "snappy", "row_group_size": 2},
        {"compression": "zstd", "use_dictionary": False, "data_page_version": "2.0"},
        {"compression": "gzip", "use_byte_stream_split": ["pay"], "use_dictionary": False},
    ]
    return [_written(lambda sink, o=o: pq.write_table(rows, sink, **o)) for o in options]


def _arrow(rows: Any) -> list[bytes]:
    def write(sink: Any, compression: str | None) -> None:
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_file(sink, rows.schema, options=options) as file:
            file.write_table(rows)

    return [_written(lambda sink, c=c: write(sink, c)) for c in (None, "lz4", "zstd")]


def _csv(rows: Any) -> list[bytes]:
    return [_written(lambda sink: csv.write_csv(rows, sink))]


def _npy(rows: Any) -> list[bytes]:
    found = []
    for order in ("C", "F"):
        sink = io.BytesIO()
        np.save(sink, np.ones((3, rows.num_rows), "f8", order))
        found.append(sink.getvalue())
    return found


def _duckdb(rows: Any) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        with duckdb.connect() as connection:
            connection.register("frame", rows)
            connection.execute(f"ATTACH '{folder}/a.duckdb' AS a (BLOCK_SIZE {BLOCK})")
            connection.execute("USE a; CREATE TABLE people AS FROM frame")
            connection.execute("CREATE VIEW adults AS FROM people WHERE pay > 0")
            connection.execute("CHECKPOINT; USE memory; DETACH a")
        return [Path(folder, "a.duckdb").read_bytes()]


def _written(write: Callable[[Any], None]) -> bytes:
    sink = pa.BufferOutputStream()
    write(sink)
    made: bytes = sink.getvalue().to_pybytes()
    return made


_MADE: Mapping[str, Callable[[Any], list[bytes]]] = {
    "parquet": _parquet, "arrow": _arrow, "csv": _csv, "npy": _npy, "duckdb": _duckdb,
}  # fmt: skip
source_reader.prepare(_MADE)  # as the server of these processes does, before it forks one


def changed(kind: str, rng: random.Random, known: list[bytes]) -> bytes:
    """Return another source; one of DuckDB mostly with the checksums that it should have."""
    data = mutate(rng.choice(known), rng, known)
    if kind == "duckdb" and rng.random() < 0.9:
        data = bytes(_summed(bytearray(data)))
    return data


def _summed(data: bytearray) -> bytearray:
    begin = 0
    while begin < len(data):
        end = begin + (HEADER if begin < 3 * HEADER else BLOCK)
        words = np.frombuffer(bytes(data[begin + PREFIX : end]), np.uint8)
        words = words[: len(words) // 8 * 8].view(np.uint64)
        total = np.bitwise_xor.reduce(
            words * np.uint64(0xBF58476D1CE4E5B9), initial=np.uint64(5381)
        )
        data[begin : begin + PREFIX] = total.tobytes()
        begin = end
    return data


def read(kind: str, data: bytes, rows: int = 3) -> str:
    """Have a confined process read a source; return what it told, or how it ended."""
    with tempfile.NamedTemporaryFile(suffix=f".{kind}") as file:
        file.write(data)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        if kind == "duckdb":
            table = {
                "kind": kind, "where": f"{file.name}#adults", "files": [], "match": [],
                "description": {"columns": COLUMNS}, "arguments": {}, "type": str(_KIND),
            }  # fmt: skip
            asked = {"tables": {"": table}, "rows": True, "seconds": PATIENCE}
            with _memory() as sink:
                return _forked(source_reader, asked | {"result": {"size": SIZE}}, [sink])
        asked = {"kind": kind, "description": _description(kind, rows), "whole": True}
        return _forked(checks, asked, [file.fileno()])


def check(kind: str, data: bytes, rows: int) -> int | None:
    """Have the product check a source, as its owner's worker does.

    Raises:
        SourceError: it is wrong.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"source.{kind}")
        path.write_bytes(data)
        where = f"duckdb:{path}#adults" if kind == "duckdb" else f"{kind}:{path}"
        return checks.check_data_set(DataSet(source=where, size=SIZE, **_description(kind, rows)))


def _description(kind: str, rows: int) -> dict[str, Any]:
    return {"array": f"f64[3, {rows}]"} if kind == "npy" else {"columns": COLUMNS}


@contextlib.contextmanager
def _memory() -> Any:
    file = os.memfd_create("fuzz")
    try:
        yield file
    finally:
        os.close(file)


def _forked(module: Any, asked: dict[str, Any], files: Sequence[int]) -> str:
    request = {**asked, "module": module.__name__, "environment": dict(os.environ), "size": SIZE}
    with _memory() as given, _memory() as answer, _memory() as errors, _memory() as line:
        os.pwrite(given, json.dumps(request).encode(), 0)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                child.run(parent, [given, answer, errors, line, *files])
            finally:
                os._exit(0)
        code = _ended(pid)
        if code is None:
            return f"it is not read within {PATIENCE} s"
        try:
            found = json.loads(os.pread(answer, MAX_TOLD, PROGRESS))
        except ValueError:
            return f"{ENDED} {code}"
        return str(found["error"] or "read")


def _ended(pid: int) -> int | None:
    file = os.pidfd_open(pid)
    try:
        if select.select([file], [], [], PATIENCE)[0]:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return None
    finally:
        os.close(file)
