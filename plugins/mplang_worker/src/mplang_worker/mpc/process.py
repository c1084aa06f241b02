"""MPC process: runs one native service of one session, which reads what peers send.

It gets what the service declares (:class:`mplang_core.ext.NativeSpec`): links of its own to the
processes of this service at the other parties, and a key of its own for them; operands, of its
party's data none in plain unless it says so. It has no file of the owner and no key of the party:
whoever takes it over has the operands of the run that goes on, and no more. The engine opens, ends
and aborts its runs, one at a time; it is forked like an engine, and confined like one.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from typing import Any, TypeAlias

from mplang_confinement import CHILDREN, NETWORK
from mplang_http.ext import MAX_HEAD, write_spans
from mplang_trace import SpanRecorder

from mplang_core import MPLangError
from mplang_core.ext import (
    NATIVE,
    Answer,
    Failure,
    NativeParty,
    NativeService,
    NativeSpec,
    RunError,
    plugin_manager,
)
from mplang_worker.base.config import EngineConfig
from mplang_worker.link.end_server import LinkEndServer
from mplang_worker.link.handshake import Handshake
from mplang_worker.link.links import Links
from mplang_worker.mpc import channel as mpc_channel
from mplang_worker.mpc.channel import Message
from mplang_worker.mpc.communicator import MpcCommunicator
from mplang_worker.process.call_server import CallServer, log_to
from mplang_worker.process.own_folder import keep_own
from mplang_worker.process.session_argument import EngineArgument
from mplang_worker.process.session_process import run_process
from mplang_worker.wire import ipc

Parts: TypeAlias = list[memoryview]
log = logging.getLogger("mplang.http.mpc")


class MpcProcess:
    """Server for the front, which hands it its links, and for the engine, which calls it.

    Args:
        config: the part of the worker's configuration that engines know.
        given: what it is started with.
        sock: socket to the front.
    """

    def __init__(self, config: EngineConfig, given: EngineArgument, sock: socket.socket) -> None:
        name = given.parties[given.rank]
        self._given, self._config, self._sock = given, config, sock
        self._calls = CallServer(sock)
        links = Links(
            name, max_message=config.limits.value, max_waiting=config.limits.waiting, agreed=False
        )
        handshake = Handshake(name, given.link, config.timeouts, tls=given.tls)
        self._link_end = LinkEndServer(handshake, links, given.parties, config.timeouts)
        comm = MpcCommunicator(given.rank, given.parties, links, given.timeout)
        self._calls_of_engine = EngineCalls(config, comm, given.service, given.folder)
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="mplang-open")

    def serve(self) -> None:
        """Serve the front until it ends the session."""
        spec = native_spec(self._given.service)
        declared = {"links": spec.links, "plain": spec.plain}
        ready = {"event": "ready", "key": self._link_end.public_key, **declared}
        self._calls.send(ready)
        waiting: dict[str, Callable[..., Any]] = {
            "introduce": self._link_end.introduce,
            "dial": self._link_end.dial,
            "wait": self._link_end.wait,
        }
        while True:
            message, file = ipc.receive(self._sock)
            method = message["call"]
            if method == "log" and file is not None:
                log_to(file)
            elif method == "ready":
                self._calls.send(ready)
            elif method == "link":
                self._link_end.accept(file)
            elif method == "engine" and file is not None:
                self._calls_of_engine.begin(socket.socket(fileno=file))
            else:
                self._pool.submit(
                    self._calls.answer, waiting[method], message, file, is_socket=True
                )


class EngineCalls:
    """Answers what the engine of the session calls.

    Args:
        config: the part of the worker's configuration that engines know.
        comm: communicator to the MPC processes of the other parties.
        service: name of the native service.
        folder: its folder, if it asks for one.
    """

    def __init__(
        self, config: EngineConfig, comm: MpcCommunicator, service: str, folder: str
    ) -> None:
        self._limit = config.limits.value + MAX_HEAD
        self._comm = comm
        self._party = NativeParty(comm, config.insecure, comm.timeout, folder)
        self._name = service
        self._service: NativeService | None = None  # it is made by its first call
        self._recorder: SpanRecorder | None = None
        self._run = ""
        self._receiving = threading.Lock()

    def begin(self, sock: socket.socket) -> None:
        """Begin to serve the engine.

        Args:
            sock: socket to it.
        """
        for _ in range(2):  # while one computes, the other takes in what aborts that
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        """Take calls in, and answer them, in turns with the other thread."""
        try:
            while True:
                with self._receiving:
                    message, buffers = mpc_channel.receive(sock, self._limit)
                    if message["call"] != "call":  # what takes no time, in order
                        self._take(sock, message)
                        continue
                self._answer(sock, self._call, message, buffers)
                del message, buffers  # what a call was given is free before the next one
        except (EOFError, OSError):
            os._exit(0)  # the engine has ended, or wants another process
        except BaseException:
            log.exception("the MPC process ends")
            os._exit(1)

    def _take(self, sock: socket.socket, message: Message) -> None:
        method = message["call"]
        if method == "begin":
            self._answer(sock, self._begin, message, [])
        elif method == "abort":
            self._comm.fail(str(message["run"]), Failure(*message["failure"]))
        elif message["answer"]:
            self._answer(sock, self._end, message, [])
        else:
            self._end_run(failed=bool(message["failed"]))

    def _answer(
        self,
        sock: socket.socket,
        method: Callable[[Message, Parts], Answer],
        message: Message,
        buffers: Parts,
    ) -> None:
        answer: Message
        parts: Sequence[Any] = ()
        try:
            plain, parts = method(message, buffers)
            answer = {"ok": plain}
        except BaseException as error:
            self._party.resources = {}
            known = isinstance(error, MPLangError)
            kind = type(error).__name__ if known else RunError.__name__
            text = str(error) if known else f"{type(error).__name__}: {error}"
            answer = {"error": [kind, text[: ipc.INLINE]]}
        traffic = {str(rank): astuple(link) for rank, link in self._comm.traffic().items()}
        mpc_channel.send(sock, {**answer, "traffic": traffic}, parts)

    def _begin(self, message: Message, buffers: Parts) -> Answer:
        if self._run:  # it was aborted, and the engine does not wait for its end
            self._end_run(failed=True)
        self._run = str(message["run"])
        self._comm.begin(self._run, set(message["parties"]), float(message["seconds"]))
        self._recorder = None
        if message["record"]:
            self._recorder = SpanRecorder(self._comm.rank, self._run)
            self._comm.record(self._run, self._recorder)
        return {}, ()

    def _call(self, message: Message, buffers: Parts) -> Answer:
        if self._service is None:
            self._service = native_spec(self._name).serve(self._party)
        return self._service.call(self._run, str(message["method"]), message["args"], buffers)

    def _end(self, message: Message, buffers: Parts) -> Answer:
        spans = [] if self._recorder is None else [write_spans(self._recorder)]
        self._end_run(failed=bool(message["failed"]))
        return {}, spans

    def _end_run(self, *, failed: bool) -> None:
        if self._service is not None:
            self._service.end_run()
        self._comm.close(self._run)
        self._recorder, self._run = None, ""
        if failed:
            self._party.resources = {}


def native_spec(service: str) -> NativeSpec:
    """Return what a native service declares.

    Args:
        service: its name.

    Raises:
        RunError: there is none.
        PluginLoadError: its package did not load.
    """
    named = plugin_manager.entry(NATIVE, service)
    if named is None:
        raise RunError(f"there is no native service {service!r} here", code="P002")
    return NativeSpec.of(named)


def _keep_freed_memory() -> None:
    """Set libc to keep up to 32 MiB that an op frees, for the next one, instead of fresh pages.

    Its thresholds follow the largest block that was freed: see M_MMAP_THRESHOLD in mallopt(3).
    """
    bytearray(16 << 20)


def run(argument: EngineArgument, file: int) -> None:
    """Run an MPC process.

    Args:
        argument: what it is started with.
        file: descriptor of the socket to the front.
    """
    _keep_freed_memory()
    spec = native_spec(argument.service)

    def serve(config: EngineConfig, sock: socket.socket) -> None:
        MpcProcess(config, argument, sock).serve()

    def confine(config: EngineConfig) -> Collection[str]:
        keep_own(spec, argument.folder, config.limits.memory, insecure=config.insecure)
        network = NETWORK if config.insecure and spec.ports else ()
        return (*network, *(CHILDREN if spec.programs else ()))

    run_process("mplang-mpc", argument, file, serve, confine)
