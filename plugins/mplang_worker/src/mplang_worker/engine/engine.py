"""Engine: the process of one session, which holds its values and links, and runs its kernels.

It has no port, no key of its party, and no other coordinator's data. The front sends it requests
and the sockets of links. It is forked from a process that has imported what engines need
(:mod:`mplang_worker.engine.warm`), and ends with its session.
"""

from __future__ import annotations

import gc
import logging
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from mplang_analysis import PUBLIC
from mplang_http.ext import (
    MAX_HEAD,
    Buffer,
    frame_head,
    pack_as,
    read_plain,
    step_refusal,
    write_spans,
)

from mplang_core import Form
from mplang_core.ext import type_of
from mplang_worker.base.config import EngineConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.engine.data import EngineData, Questions
from mplang_worker.engine.job import Job
from mplang_worker.engine.programs import Programs
from mplang_worker.engine.session import Session
from mplang_worker.link.comm import HttpCommunicator
from mplang_worker.link.end_server import LinkEndServer
from mplang_worker.link.handshake import Handshake
from mplang_worker.link.links import Links
from mplang_worker.mpc.calls import MpcCalls
from mplang_worker.mpc.failures import MpcFailures
from mplang_worker.mpc.services import MpcServices
from mplang_worker.process.call_server import CallServer, StreamReply, log_to
from mplang_worker.process.end import end_process
from mplang_worker.process.session_argument import EngineArgument
from mplang_worker.process.session_process import run_process
from mplang_worker.wire import ipc
from mplang_worker.wire.opening import NO_LOGS, Logs
from mplang_worker.wire.requests import read_job, read_names
from mplang_worker.wire.stored_value import StoredValue, label_of_put
from mplang_worker.wire.worker_info import settings

GC_THRESHOLD = 20_000  # new objects before the garbage collector looks for cycles
log = logging.getLogger("mplang.http.engine")


class Engine:
    """RPC server for the front: programs, values and links of one session.

    The methods that the front calls take the body of the request, and its parameters as keywords;
    they raise RequestError and MPLangError.

    Args:
        config: the part of the worker's configuration that engines know.
        given: what it is started with.
        sock: socket to the front.
    """

    def __init__(self, config: EngineConfig, given: EngineArgument, sock: socket.socket) -> None:
        name = given.parties[given.rank]
        self._config = config
        self._sock = sock
        self._calls = CallServer(sock)
        self._links = Links(
            name, max_message=config.limits.value, max_waiting=config.limits.waiting
        )
        self._link_end = LinkEndServer(
            Handshake(name, given.link, config.timeouts, tls=given.tls),
            self._links, given.parties, config.timeouts,
        )  # fmt: skip
        self._programs = Programs(config, given.coordinator, given.rank, given.parties)
        self._questions = Questions(self._calls.send)
        failures = MpcFailures(given.rank, given.parties, given.timeout, config.timeouts.job)
        self._mpc = MpcServices(
            lambda service: MpcCalls(
                name,
                failures,
                config.limits.value + MAX_HEAD,
                config.timeouts.job,
                config.timeouts.cancel / 2,  # after which the front ends the engine
                lambda: self._calls.send({"event": "mpc_hangs", "service": service}),
            )
        )
        comm = HttpCommunicator(given.rank, given.parties, self._links, given.timeout)
        comm.longest = config.timeouts.job
        self._session = Session(
            given.session,
            comm,
            owner=given.coordinator,
            insecure=config.insecure,
            limits=config.limits,
            on_end=self._report_end,
            on_damage=_end_damaged,
            data=EngineData(self._questions, given.sections),
            gated=given.gated,
            observable=config.is_observable,
            mpc=self._mpc,
        )
        self._links.on_head = self._report_head
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="mplang-request")
        # pools of their own, as these wait for the peers, and for whoever reads
        linking = ThreadPoolExecutor(8, thread_name_prefix="mplang-open")
        streaming = ThreadPoolExecutor(8, thread_name_prefix="mplang-stream")
        self._quick: dict[str, Callable[..., Any]] = {
            "submit": self.submit,
            "status": self.status,
            "jobs": self.jobs,
            "cancel": self.cancel,
            "release": self.release,
            "close": self.close,
        }
        self._slow: dict[str, Callable[..., Any]] = {
            "program": self.program,
            "put": self.put,
            "upload": self.upload,
        }
        self._waiting: dict[str, tuple[ThreadPoolExecutor, Callable[..., Any]]] = {
            "introduce": (linking, self._link_end.introduce),
            "dial": (linking, self._link_end.dial),
            "join": (linking, self.join),
            "get": (streaming, self.get),
            "spans": (streaming, self.spans),
        }

    def serve(self) -> None:
        """Serve requests until the front ends the session."""
        self._calls.send({"event": "ready", "key": self._link_end.public_key})
        while True:
            message, file = ipc.receive(self._sock)
            method = message["call"]
            if method == "log" and file is not None:
                log_to(file)
            elif method == "answer_file":
                self._questions.take_file(message["number"], file)
            elif method == "answer":
                self._questions.take(message["number"], message["answer"])
            elif method == "link":
                self._link_end.accept(file)
            elif method == "mpc" and file is not None:
                self._mpc.attach(message["args"]["service"], socket.socket(fileno=file))
            elif method in self._quick:
                self._calls.answer(self._quick[method], message, file)
            elif method in self._waiting:
                pool, waits = self._waiting[method]
                pool.submit(self._calls.answer, waits, message, file, is_socket=True)
            else:
                self._pool.submit(self._calls.answer, self._slow[method], message, file)

    def _report_end(self, job: Job) -> None:
        settled = {"settled": job.settled, "op_failed": job.op_failed}
        self._calls.send({"event": "ended", "run": job.run, "status": job.status(), **settled})

    def _report_head(self, peer: str, name: str, head: bytes) -> None:
        run = self._session.run_of(name)
        self._calls.send({"event": "head", "peer": peer, "run": run, "head": head})

    def join(self, body: Buffer, *, generation: int, versions: Mapping[str, str]) -> dict[str, Any]:
        """Wait for the links to all peers, and start a generation of the session.

        Args:
            body: unused.
            generation: its number.
            versions: versions at the coordinator.

        Returns:
            The generation, and the lease in seconds.

        Raises:
            CommError: a link does not come in time.
        """
        session = self._session
        self._link_end.wait(body)
        session.start_generation(generation, settings(versions))
        return {"generation": session.generation, "lease": self._config.timeouts.lease}

    # -- methods that the front calls

    def program(self, body: Buffer, *, name: str) -> dict[str, Any]:
        """Add a program to the cache.

        Args:
            body: bytes of the program.
            name: SHA-256 of the bytes, in hex.

        Returns:
            The digest of the program.

        Raises:
            RequestError: the bytes do not match the name.
            MPLangError: the program is malformed, too large or not admitted.
        """
        return {"digest": self._programs.put(name, body)}

    def close(self, body: Buffer, *, reason: str) -> None:
        """End all jobs, before the process ends.

        Args:
            body: unused.
            reason: why the session ends.
        """
        self._session.close(reason)

    def submit(self, body: Buffer, *, run: str, logs: list[Any] | None = None) -> dict[str, Any]:
        """Queue a job.

        Args:
            body: a JobRequest in MessagePack.
            run: name of the run.
            logs: what this party remembers of its peers' logs.

        Returns:
            The status of the job.

        Raises:
            RequestError: the request is invalid, or of another generation.
            AdmissionError: the program is one op, and this worker is in production.
        """
        session, request = self._session, read_job(body)
        if request.run != run:
            raise RequestError(400, "forged", "the request is for another run")
        if session.generation < 0:
            raise RequestError(409, "generation", "the session has no links yet; join it first")
        if request.generation != session.generation:
            raise RequestError(
                409, "generation", f"the session is in generation {session.generation} here"
            )
        if not self._config.is_observable:
            request = msgspec.structs.replace(request, record=False)
        program = self._programs.get(request.program)
        if request.step and self._config.mode == "production":
            raise step_refusal(program, [self._config.name])
        told = NO_LOGS if logs is None else msgspec.convert(logs, Logs)
        job = session.submit(request, program, told)
        session.values.release(request.release)
        return job.status()

    def status(self, body: Buffer, *, run: str) -> dict[str, Any]:
        """Return the status of a job.

        Args:
            body: unused.
            run: name of the run.

        Raises:
            RequestError: there is no such job.
        """
        return self._session.job(run).status()

    def jobs(self, body: Buffer) -> dict[str, Any]:
        """Return the status of the last 100 jobs, and the number of values.

        Args:
            body: unused.
        """
        jobs = self._session.jobs()[-100:]
        return {"jobs": [job.status() for job in jobs], "values": len(self._session.values)}

    def cancel(self, body: Buffer, *, run: str, reason: str) -> dict[str, Any]:
        """Cancel a job.

        Args:
            body: unused.
            run: name of the run.
            reason: text for the job's error.

        Returns:
            The status of the job.

        Raises:
            RequestError: the run is not of this session.
        """
        return self._session.cancel(run, reason).status()

    def release(self, body: Buffer) -> dict[str, Any]:
        """Release values.

        Args:
            body: list of names in JSON, perhaps empty.

        Returns:
            The number of values that were released.

        Raises:
            RequestError: the body is malformed.
        """
        return {"released": self._session.values.release(read_names(body))}

    def put(self, body: Buffer, *, name: str) -> dict[str, Any]:
        """Store a plain value.

        Args:
            body: the value, framed.
            name: name of the value.

        Returns:
            The type of the value.

        Raises:
            RequestError: the name is taken or that of a public input, or the session is full.
            WireError: the body is malformed, or the value is not plain.
        """
        value = read_plain(body)
        kind, label = type_of(value), label_of_put(self._session.comm.rank)
        self._session.values.put(name, StoredValue(kind, value, label))
        return {"type": str(kind)}

    def upload(self, body: Buffer, *, digest: str) -> dict[str, Any]:
        """Store a public input.

        Args:
            body: the value, framed.
            digest: SHA-256 of the body, in hex, as the front has checked.

        Returns:
            The type of the value.

        Raises:
            RequestError: the session is full.
            WireError: the body is malformed, or the value is not plain.
        """
        value = read_plain(body)
        kind = type_of(value)
        self._session.values.upload(digest, StoredValue(kind, value, PUBLIC))
        return {"type": str(kind)}

    def get(self, body: socket.socket, *, name: str) -> StreamReply:
        """Return the data of a plain value.

        Args:
            body: where to write it.
            name: name of the value.

        Returns:
            The framed value.

        Raises:
            RequestError: there is no such value, or it is not plain.
        """
        stored = self._session.values.get(name)
        was_put = not name.startswith(f"{self._session.name}-")
        if not stored.is_result and not (was_put and self._config.mode == "development"):
            raise RequestError(
                403, "protected", "it was put, or kept by mp.keep, and is not a result of a program"
            )
        if stored.kind.form is not Form.PLAIN:
            raise RequestError(
                403, "protected", f"a {stored.kind.form.value} stays here; reveal it in the program"
            )
        head, buffers = pack_as(stored.kind, stored.value)
        return StreamReply(body, [frame_head(head), *buffers])

    def spans(self, body: socket.socket, *, run: str) -> StreamReply:
        """Return the spans of a recorded job.

        Args:
            body: where to write them.
            run: name of the run.

        Returns:
            The spans in MessagePack.

        Raises:
            RequestError: the job was not recorded, or another one was recorded since.
        """
        recorder = self._session.job(run).recorder
        if recorder is None:
            raise RequestError(
                404, "not-recorded", "this job was not recorded, or another one since"
            )
        return StreamReply(body, [write_spans(recorder)])


def _end_damaged() -> None:
    log.error("the engine ends: native code failed, and may have harmed its memory")
    end_process(1)


def run(argument: EngineArgument, file: int) -> None:
    """Run an engine.

    Args:
        argument: what it is started with.
        file: descriptor of the socket to the front.
    """
    gc.set_threshold(GC_THRESHOLD)  # programs are large, and have no cycles
    run_process(
        "mplang-engine", argument, file, lambda config, sock: Engine(config, argument, sock).serve()
    )
