"""Raw HTTP client for tests: sends arbitrary bytes to a worker."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.client
import itertools
import json
import os
import socket
import ssl
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from mplang_http.base.address import split_address
from mplang_http.wire.requests import Public, Stored
from mplang_http.wire.values import join_frame, pack
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, wait_until
from mplang_worker.base.digests import sha256
from mplang_worker.wire.opening import Opening
from mplang_worker.wire.worker_info import settings
from processes import engines_of

import mplang_core as mp
from mplang_core.ir.wire import from_bytes, to_bytes

MB = 1 << 20
NUMBERS = itertools.count()
SETTLED = 40  # looks at a number after each other that find no change


@dataclass(frozen=True)
class Response:
    """HTTP response."""

    status: int
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def error(self) -> tuple[int, str]:
        """The status and error code of an error response."""
        return self.status, self.json["error"]["code"]

    @property
    def text(self) -> str:
        return self.json["error"]["text"]


class RawWorker:
    """Raw client of one worker of a local cluster.

    Args:
        cluster: the cluster.
        rank: rank of the worker.
        context: TLS context.
    """

    def __init__(self, cluster, rank: int = 0, context: ssl.SSLContext | None = None) -> None:
        self.cluster, self.rank, self.context = cluster, rank, context
        self.name = cluster.spec.nodes[rank].name
        self.endpoint = split_address(cluster.spec.nodes[rank].address)

    def connect(self) -> socket.socket:
        sock = socket.create_connection(self.endpoint, DEADLINE)
        if self.context is not None:
            sock = self.context.wrap_socket(sock, server_hostname=self.name)
        return sock

    def send(self, data: bytes, *, end: bool = False) -> Response | None:
        """Send bytes on a new connection.

        Args:
            data: the bytes.
            end: whether to shut down the sending direction.

        Returns:
            The response, or ``None`` if the connection is closed without one.
        """
        with self.connect() as sock:
            try:
                sock.sendall(data)
                if end:
                    sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            return read_response(sock)

    def ask(self, method: str, path: str, body: bytes | None = None, **fields: str) -> Response:
        """Send a request, without quoting or validation.

        Args:
            method: HTTP method.
            path: path and query.
            body: the body.
            **fields: header fields; underscores stand for hyphens.
        """
        fields = {"host": "127.0.0.1", **fields}
        if body is not None:
            fields.setdefault("content_length", str(len(body)))
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1")
        found = self.send(head + (body or b""))
        assert found is not None, f"{method} {path[:80]} was not answered"
        return found

    # -- requests of a coordinator

    def open(self, *, name: str | None = None, **fields: Any) -> str:
        """Open a session with this worker as the only party.

        Args:
            name: name of the session; a new one by default.
            **fields: further fields of the request.

        Returns:
            The name of the session.
        """
        name = name or f"s{next(NUMBERS)}"
        credential = self.begin(name, **fields)
        found = self.join(name, [credential])
        assert found.status == 200, found
        return name

    @contextlib.contextmanager
    def opened(self) -> Iterator[str]:
        """Open a session, as :meth:`open`, and close it at the end."""
        name = self.open()
        try:
            yield name
        finally:
            self.ask("DELETE", f"/v1/sessions/{name}")

    def open_with_mpc(self) -> str:
        """Open a session that has an MPC process, with this worker as the only party."""
        name = f"s{next(NUMBERS)}"
        begun = self.begin_with(name, native=["spu"])
        found = self.join(name, [begun["credential"]], native=begun["native"])
        assert found.status == 200, found
        return name

    def begin(self, name: str, **fields: Any) -> dict[str, Any]:
        """Open a session, which is not linked yet, and return the credential of its engine.

        Args:
            name: name of the session.
            **fields: further fields of the request; by default this worker is the only party.
        """
        return self.begin_with(name, **fields)["credential"]

    def begin_with(self, name: str, **fields: Any) -> dict[str, Any]:
        """Open a session, which is not linked yet, and return the credentials of its processes.

        Args:
            name: name of the session.
            **fields: further fields of the request; by default this worker is the only party.
        """
        body = {"rank": 0, "parties": [self.party()], **fields}
        asking = functools.partial(
            self.ask, "PUT", f"/v1/sessions/{name}", json.dumps(body).encode()
        )
        found = asking()
        while found.status == 503 and found.error[1] == "queued":
            found = asking()  # after the second that it waited for its turn
        assert found.status == 200, found
        return found.json

    def join(
        self, name: str, credentials: Sequence[Any], generation: int = 0, native: Any = None
    ) -> Response:
        """Link a session to those of all parties.

        Args:
            name: name of the session.
            credentials: credentials of all parties.
            generation: number of the generation.
            native: credentials of the MPC processes of all parties, by native service: of one
                party the credential, of several a list of them.
        """
        apart = {
            service: list(each) if isinstance(each, list | tuple) else [each]
            for service, each in (native or {}).items()
        }
        given = {"credentials": list(credentials), "native": apart}
        body = json.dumps({**given, "generation": generation}).encode()
        return self.ask("POST", f"/v1/sessions/{name}/links", body)

    def party(self, rank: int | None = None) -> dict[str, str]:
        node = self.cluster.spec.nodes[self.rank if rank is None else rank]
        return {"name": node.name, "address": node.address}

    def put_program(self, data: bytes, session: str | None = None) -> Response:
        """Upload a program to a session; by default to one that is closed afterwards."""
        name = session or self.open()
        found = self.ask("PUT", f"/v1/sessions/{name}/programs/{sha(data)}", data)
        if session is None:
            self.ask("DELETE", f"/v1/sessions/{name}")
        return found

    def submit(self, session: str, data: bytes, *inputs: Any, wait=30, **fields: Any) -> Response:
        """Run a program that was uploaded before.

        Args:
            session: name of the session.
            data: bytes of the program.
            *inputs: inline inputs.
            wait: maximum time to wait, in seconds.
            **fields: further fields of the request.
        """
        run = fields.pop("run", f"{session}-{next(NUMBERS)}")
        given = [None if x is None else Public(join_frame(*pack(x))) for x in inputs]
        none = Stored([])
        request = {
            "run": run,
            "program": sha(data),
            "generation": 0,
            "inputs": [none if x is None else x for x in given],
            "parties": [0],
            **fields,
        }
        path = f"/v1/sessions/{session}/jobs?run={run}&wait={wait}"
        return self.ask("POST", path, msgspec.msgpack.encode(request))

    def run(self, data: bytes, *inputs: Any) -> Response:
        """Run a program in a new session.

        Args:
            data: bytes of the program.
            *inputs: inline inputs.
        """
        with self.opened() as session:
            assert self.put_program(data, session).status == 200
            return self.submit(session, data, *inputs)

    # -- state of the processes

    def works(self) -> None:
        """Assert that the worker runs a program."""
        found = self.run(DOUBLE, np.int64(4))
        assert found.status == 200, found
        assert found.json["state"] == "done", found

    @property
    def front(self) -> int:
        """Process ID of the front."""
        return self.cluster.workers[self.rank].pid

    def crashes(self) -> int:
        """Return the number of engines that ended unexpectedly."""
        return self.ask("GET", "/health").json["crashes"]

    def memory(self, *, peak: bool = False) -> int:
        """Return the bytes of the front, or its peak since the last call, and of all engines."""
        with open(f"/proc/{self.front}/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        found = int(lines["VmHWM" if peak else "VmRSS"].split()[0]) << 10
        if not peak:
            Path(f"/proc/{self.front}/clear_refs").write_text("5")  # the peak is counted from here
        return found + sum(map(private_memory, engines_of(self.front)))

    def files(self) -> int:
        """Return the number of open file descriptors of the front."""
        return len(os.listdir(f"/proc/{self.front}/fd"))

    def settled_files(self) -> int:
        """Return the number of open file descriptors once it no longer changes."""
        counts: list[int] = []

        def settled() -> bool:
            counts.append(self.files())
            return len(counts) >= SETTLED and len(set(counts[-SETTLED:])) == 1

        wait_until(settled, "the number of open files is the same for a while")
        return counts[-1]


def private_memory(pid: int) -> int:
    """Return the bytes of memory that a process shares with no other; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_"))


def open_at_all(workers: Sequence[RawWorker], name: str, **fields: Any) -> list[Response]:
    """Open a session at workers, and return how each is linked to the others.

    Args:
        workers: the workers, in order of their ranks.
        name: name of the session.
        **fields: further fields of the requests: of each worker a list of them.
    """
    each = [{key: values[rank] for key, values in fields.items()} for rank in range(len(workers))]
    parties = [worker.party() for worker in workers]
    begun = [
        worker.begin_with(name, **{"rank": rank, "parties": parties, **given})
        for rank, (worker, given) in enumerate(zip(workers, each, strict=True))
    ]
    native = {
        service: [each["native"][service] for each in begun] for service in begun[0]["native"]
    }

    def join(worker: RawWorker, given: dict[str, Any]) -> Response:
        known = begun[: len(given.get("parties", parties))]
        return worker.join(name, [each["credential"] for each in known], native=native)

    with ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(join, workers, each))


def opening_of(
    run: str,
    data: bytes,
    inputs: Sequence[Any],
    names: Sequence[str],
    *,
    certificates: Sequence[str] = (),
    generation: int = 0,
) -> Opening:
    """Return what a worker tells its peers of a run that all parties of a session run.

    Args:
        run: coordinator, session and run.
        data: bytes of the program.
        inputs: inputs of the request.
        names: names of the parties.
        certificates: SHA-256 of the certificate of each; without TLS none.
        generation: of the session.
    """
    parties = list(zip(names, certificates or [""] * len(names), strict=True))
    return Opening(
        run=run,
        program=sha256([from_bytes(data).digest, sha(data)]),
        parties=sha256([False, list(range(len(names))), parties]),
        inputs=sha256(inputs),
        settings=sha256([generation, settings({})]),
    )


def read_response(sock: socket.socket) -> Response | None:
    """Read a response; return ``None`` if the connection is closed."""
    response = http.client.HTTPResponse(sock)
    try:
        response.begin()
        return Response(response.status, response.read())
    except (http.client.HTTPException, OSError):
        return None


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def program(fn, *args: Any, parties: int = 1) -> bytes:
    """Return a traced program as bytes.

    Args:
        fn: the function to trace.
        *args: its arguments.
        parties: number of parties.
    """
    compiled = mp.compile(fn, *args, cluster_spec=mp.ClusterSpec.simple(parties))
    return to_bytes(compiled.trace(None, *args).program)


def changed(data: bytes, change) -> bytes:
    """Return a program with a changed envelope.

    Args:
        data: bytes of the program.
        change: function that changes the envelope in place.
    """
    envelope = msgspec.msgpack.decode(data)
    change(envelope)
    return msgspec.msgpack.encode(envelope)


DOUBLE = program(lambda x: mp.invoke(dialect.add, x, x), np.int64(0))
