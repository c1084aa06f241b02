"""Engine of a worker: the process that holds values and links, and runs kernels.

It has no port. The front sends it requests and the sockets of links. It is forked from a process
that the front keeps for this (:mod:`mplang_http.forks`), and exits when that one or the front does.
"""

from __future__ import annotations

import faulthandler
import gc
import hashlib
import importlib
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mplang_analysis import PUBLIC, own
from mplang_simulator import type_of

import mplang_core  # noqa: F401  (so that plugins are found by name)
from mplang_core import Form
from mplang_core.ext import CommError
from mplang_http import ipc
from mplang_http.comm import HttpCommunicator
from mplang_http.config import WorkerConfig
from mplang_http.errors import RequestError
from mplang_http.handshake import Handshake
from mplang_http.job import Job
from mplang_http.links import Links
from mplang_http.logs import configure_logging, log_context
from mplang_http.programs import Programs
from mplang_http.requests import JobRequest, SessionRequest, read_names
from mplang_http.session import Session
from mplang_http.spans import write_spans
from mplang_http.steps import step_refusal
from mplang_http.stored_value import PUBLIC_NAME, StoredValue
from mplang_http.tls import fingerprint
from mplang_http.values import Buffer, frame_head, pack_as, read_plain
from mplang_http.worker_info import settings, worker_info

SWITCH_INTERVAL = 0.0005  # seconds that a thread holds the GIL while others wait for it
MAX_HANDSHAKES = 16  # concurrent handshakes
GC_THRESHOLD = 20_000  # new objects before the garbage collector looks for cycles
log = logging.getLogger("mplang.http.engine")


class Engine:
    """RPC server for the front: sessions, programs, values and links.

    The methods that the front calls take the name of the coordinator, the body of the request, and
    the request's parameters as keywords; they raise RequestError and MPLangError.

    Args:
        config: configuration of the worker.
        sock: socket to the front.
    """

    def __init__(self, config: WorkerConfig, sock: socket.socket) -> None:
        self._config = config
        self._sock = sock
        self._send_lock = threading.Lock()
        self._handshake = Handshake(config)
        self._handshakes = threading.BoundedSemaphore(MAX_HANDSHAKES)
        self._links = Links(
            config.name,
            self._handshake.dial,
            max_message=config.limits.value,
            max_links=config.limits.links,
            max_waiting=config.limits.waiting,
            certificate="" if config.tls is None else fingerprint(config.tls.cert),
        )
        self._programs = Programs(config)
        self._sessions: dict[tuple[str, str], Session] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="mplang-request")
        # its own pool, as open waits for the peers
        self._open_pool = ThreadPoolExecutor(8, thread_name_prefix="mplang-open")
        self._quick: dict[str, Callable[..., Any]] = {
            "submit": self.submit,
            "status": self.status,
            "jobs": self.jobs,
            "cancel": self.cancel,
            "release": self.release,
        }
        self._slow: dict[str, Callable[..., Any]] = {
            "facts": self.facts,
            "program": self.program,
            "open": self.open,
            "close": self.close,
            "put": self.put,
            "get": self.get,
            "spans": self.spans,
        }

    def serve(self) -> None:
        """Serve requests until the front exits."""
        threading.Thread(target=self._watch_leases, daemon=True).start()
        self._reply({"event": "ready"})
        while True:
            message, file = ipc.receive(self._sock)
            method = message["call"]
            if method == "ping":
                self._reply({"id": message["id"], "ok": None})
            elif method == "link":
                self._accept_link(file)
            elif method in self._quick:
                self._handle(self._quick[method], message, file)
            else:
                pool = self._open_pool if method == "open" else self._pool
                pool.submit(self._handle, self._slow[method], message, file)

    def _handle(
        self, method: Callable[..., Any], message: dict[str, Any], file: int | None
    ) -> None:
        body: Buffer = message.get("body") or b""
        try:
            if file is not None:
                body = ipc.read_file(file)
            done = method(message["who"], body, **message["args"])
        except Exception as error:
            failure = RequestError.of(error)
            fields = [failure.status, failure.code, failure.text]
            self._reply({"id": message["id"], "error": fields})
            return
        if isinstance(done, _FileReply):
            self._reply({"id": message["id"], "ok": None}, done.descriptor)
            os.close(done.descriptor)
        else:
            self._reply({"id": message["id"], "ok": done})

    def _reply(self, message: dict[str, Any], file: int | None = None) -> None:
        with self._send_lock:
            ipc.send(self._sock, message, file)

    # -- links

    def _accept_link(self, file: int | None) -> None:
        if file is None:
            return
        sock = socket.socket(fileno=file)
        if not self._handshakes.acquire(blocking=False):
            sock.close()
            return
        threading.Thread(target=self._run_handshake, args=(sock,), daemon=True).start()

    def _run_handshake(self, sock: socket.socket) -> None:
        try:
            self._links.add(*self._handshake.accept(sock))
        except OSError as error:
            log.warning("a connection did not become a link: %s", error)
        finally:
            self._handshakes.release()

    # -- methods that the front calls

    def facts(self, coordinator: str, body: Buffer) -> dict[str, Any]:
        """Return versions, plugins and limits.

        Args:
            coordinator: name of the coordinator.
            body: unused.
        """
        return worker_info(self._config)

    def program(self, coordinator: str, body: Buffer, *, name: str) -> dict[str, Any]:
        """Add a program to the cache.

        Args:
            coordinator: name of the coordinator.
            body: bytes of the program.
            name: SHA-256 of the bytes, in hex.

        Returns:
            The digest of the program.

        Raises:
            RequestError: the bytes do not match the name.
            MPLangError: the program is malformed, too large or not admitted.
        """
        return {"digest": self._programs.put(name, body)}

    def open(self, coordinator: str, body: Buffer, *, session: str) -> dict[str, Any]:
        """Open a session, or start its next generation, with links to all parties.

        Args:
            coordinator: name of the coordinator.
            body: a SessionRequest in JSON.
            session: name of the session.

        Returns:
            The generation, and the lease in seconds.

        Raises:
            RequestError: the request is invalid, or conflicts with the open session.
            CommError: a link cannot be established.
        """
        request = SessionRequest.read(body, self._config)
        names = [party.name for party in request.parties]
        with self._lock:
            found = self._sessions.get((coordinator, session))
            if found is None:
                found = self._new_session(coordinator, session, request, names)
        if found.comm.names != tuple(names) or found.comm.rank != request.rank:
            raise RequestError(409, "taken", "this session has other parties")
        found.last_seen = time.monotonic()
        try:
            for party in request.parties:
                self._links.connect(party.name, party.address, self._config.timeouts.connect)
        except BaseException:
            if found.generation < 0:  # the session has never been open
                self.close(coordinator, b"", session=session)
            raise
        found.start_generation(request.generation, settings(request.versions))
        return {"generation": found.generation, "lease": self._config.timeouts.lease}

    def _new_session(
        self, coordinator: str, name: str, request: SessionRequest, names: list[str]
    ) -> Session:
        if len(self._sessions) >= self._config.limits.sessions:
            raise RequestError(429, "busy", f"{len(self._sessions)} sessions are open here")
        timeout = min(self._config.timeouts.message, request.timeout or float("inf"))
        made = Session(
            name,
            HttpCommunicator(request.rank, names, self._links, timeout),
            owner=coordinator,
            insecure=self._config.insecure,
            limits=self._config.limits,
            on_end=lambda job: self._report_end(coordinator, name, job),
        )
        self._sessions[coordinator, name] = made
        with log_context(name):
            log.info(
                "a session of %s is open, as party %d of %d", coordinator, request.rank, len(names)
            )
        return made

    def _report_end(self, coordinator: str, session: str, job: Job) -> None:
        key = [coordinator, session, job.run]
        settled = {"settled": job.settled, "op_failed": job.op_failed}
        self._reply({"event": "ended", "key": key, "status": job.status(), **settled})

    def _find_session(self, coordinator: str, name: str) -> Session:
        found = self._sessions.get((coordinator, name))
        if found is None:
            raise RequestError(
                404,
                "unknown-session",
                f"no session {name[:100]!r} of yours is open here: it "
                "ended, or this worker's engine was started again; what it held is lost",
            )
        found.last_seen = time.monotonic()
        return found

    def close(self, coordinator: str, body: Buffer, *, session: str) -> None:
        """Close a session; do nothing if there is none.

        Args:
            coordinator: name of the coordinator.
            body: unused.
            session: name of the session.
        """
        found = self._sessions.pop((coordinator, session), None)
        if found is not None:
            found.close("the coordinator ended the session")
            with log_context(session):
                log.info("the session of %s is closed", coordinator)

    def submit(self, coordinator: str, body: Buffer, *, session: str, run: str) -> dict[str, Any]:
        """Queue a job.

        Args:
            coordinator: name of the coordinator.
            body: a JobRequest in MessagePack.
            session: name of the session.
            run: name of the run.

        Returns:
            The status of the job.

        Raises:
            RequestError: the request is invalid, or of another generation.
            AdmissionError: the program is one op, and this worker is in production.
        """
        found = self._find_session(coordinator, session)
        request = JobRequest.read(body)
        if request.run != run:
            raise RequestError(400, "forged", "the request is for another run")
        if request.generation != found.generation:
            raise RequestError(
                409, "generation", f"the session is in generation {found.generation} here"
            )
        program = self._programs.get(request.program)
        if request.step and self._config.mode == "production":
            raise step_refusal(program, [self._config.name])
        job = found.submit(request, program)
        found.release(request.release)
        return job.status()

    def status(self, coordinator: str, body: Buffer, *, session: str, run: str) -> dict[str, Any]:
        """Return the status of a job.

        Args:
            coordinator: name of the coordinator.
            body: unused.
            session: name of the session.
            run: name of the run.

        Raises:
            RequestError: there is no such job.
        """
        return self._find_session(coordinator, session).job(run).status()

    def jobs(self, coordinator: str, body: Buffer, *, session: str) -> dict[str, Any]:
        """Return the status of a session's last 100 jobs, and the number of its values.

        Args:
            coordinator: name of the coordinator.
            body: unused.
            session: name of the session.

        Raises:
            RequestError: there is no such session.
        """
        found = self._find_session(coordinator, session)
        return {"jobs": [job.status() for job in found.jobs()[-100:]], "values": len(found)}

    def cancel(
        self, coordinator: str, body: Buffer, *, session: str, run: str, reason: str
    ) -> dict[str, Any]:
        """Cancel a job.

        Args:
            coordinator: name of the coordinator.
            body: unused.
            session: name of the session.
            run: name of the run.
            reason: text for the job's error.

        Returns:
            The status of the job.

        Raises:
            RequestError: there is no such session, or the run is not of it.
        """
        return self._find_session(coordinator, session).cancel(run, reason).status()

    def release(self, coordinator: str, body: Buffer, *, session: str) -> dict[str, Any]:
        """Release values, and renew the lease of the session.

        Args:
            coordinator: name of the coordinator.
            body: list of names in JSON, perhaps empty.
            session: name of the session.

        Returns:
            The number of values that were released.

        Raises:
            RequestError: there is no such session, or the body is malformed.
        """
        return {"released": self._find_session(coordinator, session).release(read_names(body))}

    def put(self, coordinator: str, body: Buffer, *, session: str, name: str) -> dict[str, Any]:
        """Store a plain value.

        Args:
            coordinator: name of the coordinator.
            body: the value, framed.
            session: name of the session.
            name: name of the value.

        Returns:
            The type of the value.

        Raises:
            RequestError: the name is taken, or the session is full.
            WireError: the body is malformed, or the value is not plain.
        """
        found = self._find_session(coordinator, session)
        value = read_plain(body)
        kind, public = type_of(value), name.startswith(PUBLIC_NAME)
        if public and name != PUBLIC_NAME + hashlib.sha256(body).hexdigest():
            raise RequestError(400, "forged", "the name of a public value is its SHA-256")
        label = PUBLIC if public else own(found.comm.rank, "put")
        found.put(name, StoredValue(kind, value, label))
        return {"type": str(kind)}

    def get(self, coordinator: str, body: Buffer, *, session: str, name: str) -> Any:
        """Return the data of a plain value.

        Args:
            coordinator: name of the coordinator.
            body: unused.
            session: name of the session.
            name: name of the value.

        Returns:
            A memory file with the framed value.

        Raises:
            RequestError: there is no such value, or it is not plain.
        """
        stored = self._find_session(coordinator, session).value(name)
        if stored.kept:
            raise RequestError(
                403, "protected", "mp.keep keeps it for the next program, where it is no result"
            )
        if stored.kind.form is not Form.PLAIN:
            raise RequestError(
                403, "protected", f"a {stored.kind.form.value} stays here; reveal it in the program"
            )
        head, buffers = pack_as(stored.kind, stored.value)
        return _FileReply(ipc.write_file([frame_head(head), *buffers]))

    def spans(self, coordinator: str, body: Buffer, *, session: str, run: str) -> Any:
        """Return the spans of a recorded job.

        Args:
            coordinator: name of the coordinator.
            body: unused.
            session: name of the session.
            run: name of the run.

        Returns:
            A memory file with the spans in MessagePack.

        Raises:
            RequestError: the job was not recorded, or another one was recorded since.
        """
        recorder = self._find_session(coordinator, session).job(run).recorder
        if recorder is None:
            raise RequestError(
                404, "not-recorded", "this job was not recorded, or another one since"
            )
        return _FileReply(ipc.write_file([write_spans(recorder)]))

    # -- leases

    def _watch_leases(self) -> None:
        lease = self._config.timeouts.lease
        while True:
            time.sleep(min(1.0, lease / 4))
            for key, session in list(self._sessions.items()):
                if time.monotonic() - session.last_seen > lease:
                    with log_context(session.name):
                        log.warning("nothing was heard of the coordinator for %g s", lease)
                    self._sessions.pop(key, None)
                    session.close(f"nothing was heard of the coordinator for {lease:g} s")


class _FileReply:
    """Reply that is a memory file."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor


def run(argument: dict[str, Any], file: int) -> None:
    """Run the engine.

    Args:
        argument: the configuration, as ``config``.
        file: descriptor of the socket to the front.
    """
    sock = socket.socket(fileno=file)
    sys.setswitchinterval(SWITCH_INTERVAL)
    faulthandler.enable()  # so that the log has the stack of a kernel that crashed
    try:
        config = WorkerConfig(**argument["config"])
        configure_logging(config)
        for module in config.imports:
            importlib.import_module(module)
        gc.freeze()  # what is imported stays; programs are large, and have no cycles
        gc.set_threshold(GC_THRESHOLD)
        Engine(config, sock).serve()
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt, CommError):
        pass
    except BaseException:
        logging.exception("the engine ends")
        os._exit(1)
    os._exit(0)  # without waiting for kernels that still run
