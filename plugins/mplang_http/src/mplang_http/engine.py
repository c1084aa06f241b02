"""The engine of a worker: the process that holds values and links, and runs kernels.

It has no port. The front, its parent, sends it requests and the connections that are to become
links; when the front has gone, it ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mplang_core  # noqa: F401  (so that plugins are found by name)
from mplang_core.errors import CommError
from mplang_core.runtime import type_of
from mplang_core.types import Form
from mplang_http import ipc
from mplang_http.comm import HttpCommunicator
from mplang_http.config import WorkerConfig
from mplang_http.facts import facts
from mplang_http.handshake import Handshake
from mplang_http.job import Job
from mplang_http.links import Links
from mplang_http.logs import about, set_up
from mplang_http.programs import Programs
from mplang_http.refusal import Refusal
from mplang_http.requests import JobRequest, SessionRequest, read_names
from mplang_http.session import Session, Stored
from mplang_http.spans import write_spans
from mplang_http.values import Buffer, frame_head, pack_as, read_plain

__all__ = ["Engine"]

SWITCH = 0.0005  # seconds that a thread keeps the interpreter while others want it
HANDSHAKES = 16  # connections that become links at once
log = logging.getLogger("mplang.http.engine")


class Engine:
    """Does what the front asks for.

    Args:
        config: the worker.
        sock: the connection to the front.
    """

    def __init__(self, config: WorkerConfig, sock: socket.socket) -> None:
        self._config = config
        self._sock = sock
        self._sending = threading.Lock()
        self._handshake = Handshake(config)
        self._handshakes = threading.BoundedSemaphore(HANDSHAKES)
        self._links = Links(
            config.name,
            self._handshake.dial,
            largest=config.limits.value,
            most=config.limits.links,
            waiting=config.limits.waiting,
        )
        self._programs = Programs(config)
        self._sessions: dict[tuple[str, str], Session] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="mplang-request")
        self._opening = ThreadPoolExecutor(8, thread_name_prefix="mplang-open")  # who waits long
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
        """Answer the front until it has gone."""
        threading.Thread(target=self._watch_leases, daemon=True).start()
        self._reply({"event": "ready"})
        while True:
            message, file = ipc.receive(self._sock)
            method = message["call"]
            if method == "ping":
                self._reply({"id": message["id"], "ok": None})
            elif method == "link":
                self._take_link(file)
            elif method in self._quick:
                self._answer(self._quick[method], message, file)
            else:
                pool = self._opening if method == "open" else self._pool
                pool.submit(self._answer, self._slow[method], message, file)

    def _answer(
        self, method: Callable[..., Any], message: dict[str, Any], file: int | None
    ) -> None:
        body: Buffer = message.get("body") or b""
        try:
            if file is not None:
                body = ipc.read_file(file)
            done = method(message["who"], body, **message["args"])
        except Exception as error:
            refusal = Refusal.of(error)
            told = [refusal.status, refusal.code, refusal.text]
            self._reply({"id": message["id"], "error": told})
            return
        if isinstance(done, _File):
            self._reply({"id": message["id"], "ok": None}, done.number)
            os.close(done.number)
        else:
            self._reply({"id": message["id"], "ok": done})

    def _reply(self, message: dict[str, Any], file: int | None = None) -> None:
        with self._sending:
            ipc.send(self._sock, message, file)

    # -- links

    def _take_link(self, file: int | None) -> None:
        if file is None:
            return
        sock = socket.socket(fileno=file)
        if not self._handshakes.acquire(blocking=False):
            sock.close()
            return
        threading.Thread(target=self._welcome, args=(sock,), daemon=True).start()

    def _welcome(self, sock: socket.socket) -> None:
        try:
            self._links.add(*self._handshake.welcome(sock))
        except OSError as error:
            log.warning("a connection did not become a link: %s", error)
        finally:
            self._handshakes.release()

    # -- what is asked for

    def facts(self, who: str, body: Buffer) -> dict[str, Any]:
        """Tell what is installed here, and what is allowed."""
        return facts(self._config)

    def program(self, who: str, body: Buffer, *, name: str) -> dict[str, Any]:
        """Take in a program."""
        return {"digest": self._programs.put(name, body)}

    def open(self, who: str, body: Buffer, *, session: str) -> dict[str, Any]:
        """Open a session, or begin a new generation of it; have links to all parties."""
        request = SessionRequest.read(body, self._config)
        names = [party.name for party in request.parties]
        with self._lock:
            found = self._sessions.get((who, session))
            if found is None:
                found = self._new_session(who, session, request, names)
        if found.comm.names != tuple(names) or found.comm.rank != request.rank:
            raise Refusal(409, "taken", "this session has other parties")
        found.seen = time.monotonic()
        try:
            for party in request.parties:
                self._links.connect(party.name, party.address, self._config.timeouts.connect)
        except BaseException:
            if found.generation < 0:  # it never was open
                self.close(who, b"", session=session)
            raise
        found.renew(request.generation)
        return {"generation": found.generation, "lease": self._config.timeouts.lease}

    def _new_session(
        self, who: str, name: str, request: SessionRequest, names: list[str]
    ) -> Session:
        if len(self._sessions) >= self._config.limits.sessions:
            raise Refusal(429, "busy", f"{len(self._sessions)} sessions are open here")
        timeout = min(self._config.timeouts.message, request.timeout or float("inf"))
        made = Session(
            name,
            HttpCommunicator(request.rank, names, self._links, timeout),
            owner=who,
            insecure=self._config.insecure,
            limits=self._config.limits,
            ended=lambda job: self._ended(who, name, job),
        )
        self._sessions[who, name] = made
        with about(name):
            log.info("a session of %s is open, as party %d of %d", who, request.rank, len(names))
        return made

    def _ended(self, who: str, session: str, job: Job) -> None:
        key = [who, session, job.run]
        self._reply({"event": "ended", "key": key, "status": job.status()})

    def _session(self, who: str, name: str) -> Session:
        found = self._sessions.get((who, name))
        if found is None:
            raise Refusal(
                404,
                "unknown-session",
                f"no session {name[:100]!r} of yours is open here: it "
                "ended, or this worker's engine was started again; what it held is lost",
            )
        found.seen = time.monotonic()
        return found

    def close(self, who: str, body: Buffer, *, session: str) -> None:
        """End a session."""
        found = self._sessions.pop((who, session), None)
        if found is not None:
            found.close("the coordinator ended the session")
            with about(session):
                log.info("the session of %s is closed", who)

    def submit(self, who: str, body: Buffer, *, session: str, run: str) -> dict[str, Any]:
        """Queue a run of a program."""
        found = self._session(who, session)
        request = JobRequest.read(body)
        if request.run != run:
            raise Refusal(400, "forged", "the request is for another run")
        if request.generation != found.generation:
            raise Refusal(
                409, "generation", f"the session is in generation {found.generation} here"
            )
        program = self._programs.get(request.program)
        inputs = [given.read(found) for given in request.inputs]
        found.release(request.release)
        return found.submit(request.run, program, inputs, record=request.record).status()

    def status(self, who: str, body: Buffer, *, session: str, run: str) -> dict[str, Any]:
        """Tell of a job."""
        return self._session(who, session).job(run).status()

    def jobs(self, who: str, body: Buffer, *, session: str) -> dict[str, Any]:
        """Tell of all jobs of a session."""
        found = self._session(who, session)
        return {"jobs": [job.status() for job in found.jobs()[-100:]], "values": len(found)}

    def cancel(
        self, who: str, body: Buffer, *, session: str, run: str, reason: str
    ) -> dict[str, Any]:
        """End a job."""
        return self._session(who, session).cancel(run, reason).status()

    def release(self, who: str, body: Buffer, *, session: str) -> dict[str, Any]:
        """Let go of values; none just keeps the session alive."""
        return {"released": self._session(who, session).release(read_names(body))}

    def put(self, who: str, body: Buffer, *, session: str, name: str) -> dict[str, Any]:
        """Keep a value of the coordinator's."""
        found = self._session(who, session)
        value = read_plain(body)
        kind = type_of(value)
        found.put(name, Stored(kind, value))
        return {"type": str(kind)}

    def get(self, who: str, body: Buffer, *, session: str, name: str) -> Any:
        """Give the data of a value that is plain."""
        stored = self._session(who, session).value(name)
        if stored.kind.form is not Form.PLAIN:
            raise Refusal(
                403, "protected", f"a {stored.kind.form.value} stays here; reveal it in the program"
            )
        head, buffers = pack_as(stored.kind, stored.value)
        return _File(ipc.write_file([frame_head(head), *buffers]))

    def spans(self, who: str, body: Buffer, *, session: str, run: str) -> Any:
        """Give the spans of a job that was recorded."""
        recorder = self._session(who, session).job(run).recorder
        if recorder is None:
            raise Refusal(404, "not-recorded", "this job was not recorded, or another one since")
        return _File(ipc.write_file([write_spans(recorder)]))

    # -- leases

    def _watch_leases(self) -> None:
        lease = self._config.timeouts.lease
        while True:
            time.sleep(min(1.0, lease / 4))
            for key, session in list(self._sessions.items()):
                if time.monotonic() - session.seen > lease:
                    with about(session.name):
                        log.warning("nothing was heard of the coordinator for %g s", lease)
                    self._sessions.pop(key, None)
                    session.close(f"nothing was heard of the coordinator for {lease:g} s")


class _File:
    """An answer that is a file in memory."""

    def __init__(self, number: int) -> None:
        self.number = number


def main() -> None:
    """Run the engine on the connection that the front has made."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the front tells when it is over
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    sys.setswitchinterval(SWITCH)
    faulthandler.enable()  # so that the log tells what a kernel that crashed was doing
    try:
        message, _ = ipc.receive(sock)
        config = WorkerConfig(**message["config"])
        set_up(config)
        for module in config.imports:
            importlib.import_module(module)
        Engine(config, sock).serve()
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt, CommError):
        pass
    except BaseException:
        logging.exception("the engine ends")
        os._exit(1)
    os._exit(0)  # kernels that do not end are not waited for


if __name__ == "__main__":
    main()
