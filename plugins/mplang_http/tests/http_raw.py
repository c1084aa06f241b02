"""A client without manners: whatever bytes, and what a worker says to them."""

from __future__ import annotations

import hashlib
import http.client
import itertools
import json
import os
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from mplang_http.address import split_address
from mplang_http.requests import Given
from mplang_http.values import join_frame, pack

import mplang_core as mp
from mplang_core.ir.wire import to_bytes
from mplang_core.testing import dialect

LONG = 60.0  # seconds; the machine may be busy
MB = 1 << 20
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Answer:
    status: int
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def said(self) -> tuple[int, str]:
        """The status and the code of a refusal."""
        return self.status, self.json["error"]["code"]

    @property
    def text(self) -> str:
        return self.json["error"]["text"]


class RawWorker:
    """A worker of a local cluster, asked with bytes.

    Args:
        cluster: the cluster.
        rank: which of its workers.
        context: for TLS.
    """

    def __init__(self, cluster, rank: int = 0, context: ssl.SSLContext | None = None) -> None:
        self.cluster, self.rank, self.context = cluster, rank, context
        self.name = cluster.spec.nodes[rank].name
        self.endpoint = split_address(cluster.spec.nodes[rank].address)

    def connect(self) -> socket.socket:
        sock = socket.create_connection(self.endpoint, LONG)
        if self.context is not None:
            sock = self.context.wrap_socket(sock, server_hostname=self.name)
        return sock

    def send(self, data: bytes, *, end: bool = False) -> Answer | None:
        """Send bytes on a connection of their own; ``None`` where it is closed without a word."""
        with self.connect() as sock:
            try:
                sock.sendall(data)
                if end:
                    sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            return answer_of(sock)

    def ask(self, method: str, path: str, body: bytes | None = None, **fields: str) -> Answer:
        """Make a request; nothing is quoted or checked."""
        fields = {"host": "127.0.0.1", **fields}
        if body is not None:
            fields.setdefault("content_length", str(len(body)))
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1")
        found = self.send(head + (body or b""))
        assert found is not None, f"{method} {path[:80]} was not answered"
        return found

    # -- what a coordinator does

    def open(self, *, name: str | None = None, **fields: Any) -> str:
        """Open a session of this worker alone; return its name."""
        name = name or f"s{next(NUMBERS)}"
        body = {"rank": 0, "parties": [self.party()], "generation": 0, **fields}
        found = self.ask("PUT", f"/v1/sessions/{name}", json.dumps(body).encode())
        assert found.status == 200, found
        return name

    def party(self, rank: int | None = None) -> dict[str, str]:
        node = self.cluster.spec.nodes[self.rank if rank is None else rank]
        return {"name": node.name, "address": node.address}

    def put_program(self, data: bytes) -> Answer:
        return self.ask("PUT", f"/v1/programs/{sha(data)}", data)

    def submit(self, session: str, data: bytes, *inputs: Any, wait=30, **fields: Any) -> Answer:
        """Run a program, whose bytes are here already."""
        run = fields.pop("run", f"{session}-{next(NUMBERS)}")
        given = [Given(value=join_frame(*pack(x))) for x in inputs]
        request = {"run": run, "program": sha(data), "generation": 0, "inputs": given, **fields}
        path = f"/v1/sessions/{session}/jobs?run={run}&wait={wait}"
        return self.ask("POST", path, msgspec.msgpack.encode(request))

    def run(self, data: bytes, *inputs: Any) -> Answer:
        """Run a program in a session of its own."""
        session = self.open()
        assert self.put_program(data).status == 200
        found = self.submit(session, data, *inputs)
        self.ask("DELETE", f"/v1/sessions/{session}")
        return found

    # -- how it is

    def works(self) -> None:
        """See it run a program."""
        found = self.run(DOUBLE, np.int64(4))
        assert found.status == 200, found
        assert found.json["state"] == "done", found

    def pids(self) -> list[int]:
        """Its front, and its engine."""
        front = self.cluster.workers[self.rank].pid
        with open(f"/proc/{front}/task/{front}/children") as children:
            return [front, *map(int, children.read().split())]

    def memory(self, *, peak: bool = False) -> int:
        """How many bytes of memory its processes have, or have had since they were last asked."""
        found = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/status") as status:
                lines = dict(line.split(":", 1) for line in status)
            found += int(lines["VmHWM" if peak else "VmRSS"].split()[0]) << 10
            if not peak:
                Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak is counted from here
        return found

    def files(self) -> int:
        """How many files and connections its front has open."""
        return len(os.listdir(f"/proc/{self.pids()[0]}/fd"))

    def files_at_rest(self) -> int:
        """How many those are, once the connections of earlier requests are closed there, too."""
        counts = [self.files()]
        while len(counts) < 4 or len(set(counts[-4:])) > 1:
            time.sleep(0.1)
            counts.append(self.files())
        return counts[-1]


def answer_of(sock: socket.socket) -> Answer | None:
    """Read a response."""
    response = http.client.HTTPResponse(sock)
    try:
        response.begin()
        return Answer(response.status, response.read())
    except (http.client.HTTPException, OSError):
        return None


def until(true: Callable[[], object]) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def program(fn, *args: Any, parties: int = 1) -> bytes:
    """A program as bytes."""
    compiled = mp.compile(fn, *args, cluster_spec=mp.ClusterSpec.simple(parties))
    return to_bytes(compiled.trace(None, *args).program)


def changed(data: bytes, change) -> bytes:
    """A program with something changed in its envelope."""
    envelope = msgspec.msgpack.decode(data)
    change(envelope)
    return msgspec.msgpack.encode(envelope)


DOUBLE = program(lambda x: mp.invoke(dialect.add, x, x), np.int64(0))
