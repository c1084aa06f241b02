"""Process supervisor: starts, calls and restarts the engine, on the front's event loop."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import socket
import subprocess
import time
from collections import deque
from dataclasses import asdict
from typing import Any

from mplang_core.ext import Failure
from mplang_http import ipc
from mplang_http.config import WorkerConfig
from mplang_http.errors import RequestError
from mplang_http.failure_budget import FailureBudget, Key
from mplang_http.forks import Child, ForkServer

ENGINE = "mplang_http.engine"
PING_INTERVAL = 0.5  # seconds between two pings
STOP_TIMEOUT = 5.0  # seconds until the end of an engine that was killed is told
RESTART_DELAY = 1.0  # seconds before a restart if the engine failed while starting
log = logging.getLogger("mplang.http.front")


class Supervisor:
    """Supervisor of one engine process.

    Args:
        config: configuration of the worker.
        engines: forks engines; replaced by a new interpreter if it ends, and closed at the end.

    Attributes:
        state: ``starting``, ``ready`` or ``ended``.
        restarts: number of restarts after unexpected exits.
        budget: failed runs of each coordinator.
    """

    def __init__(self, config: WorkerConfig, engines: ForkServer) -> None:
        self._engines = engines
        self.state = "starting"
        self.restarts = 0
        self.budget = FailureBudget(config.name, config.limits.failures)
        self._unavailable = f"the engine of worker {config.name} is not ready yet; try again"
        self._config = config
        self._process: Child | None = None
        self._sock: socket.socket | None = None
        self._ids = itertools.count()
        self._replies: dict[int, asyncio.Future[tuple[Any, int | None]]] = {}
        self._submitted: dict[int, Key] = {}  # runs that the engine has not accepted yet
        self._waiting: dict[Key, set[asyncio.Future[dict[str, Any]]]] = {}
        self._unsent: deque[tuple[dict[str, Any], int | None]] = deque()
        self._last_heard = time.monotonic()
        self._ready = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def silence(self) -> float:
        """Seconds since the engine should have responded to a ping."""
        return max(0.0, time.monotonic() - self._last_heard - PING_INTERVAL)

    @property
    def pid(self) -> int | None:
        """Process ID of the engine."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the engine; needs a running event loop."""
        self._spawn()
        task = asyncio.get_running_loop().create_task(self._ping_engine())
        self._tasks.add(task)

    async def ready(self, timeout: float) -> None:
        """Wait until the engine is ready.

        Raises:
            TimeoutError: the engine is not ready within ``timeout`` seconds.
        """
        await asyncio.wait_for(self._ready.wait(), timeout)

    def stop(self) -> None:
        """Stop the engine for good."""
        self.state = "ended"
        for task in self._tasks:
            task.cancel()
        self._stop_engine("the worker ends")
        self._engines.close()

    # -- calls

    async def call(
        self, method: str, coordinator: str, body: ipc.Body = None, **args: Any
    ) -> tuple[Any, int | None]:
        """Call a method of the engine.

        Args:
            method: name of the method.
            coordinator: name of the coordinator.
            body: body of the request; a file descriptor is closed.
            **args: further arguments of the method.

        Returns:
            The result, and a file descriptor if the engine returns a file.

        Raises:
            RequestError: the method failed, or the engine is not running.
        """
        file = body if isinstance(body, int) else None
        try:
            if self.state != "ready":
                raise RequestError(503, "starting", self._unavailable)
            number = next(self._ids)
            if method == "submit":
                self._reserve(number, (coordinator, args["session"], args["run"]))
            reply = asyncio.get_running_loop().create_future()
            self._replies[number] = reply
            message = {"id": number, "call": method, "who": coordinator, "args": args}
            if isinstance(body, bytes):
                message["body"] = body
            self._send(message, file)
            file = None
            answer: tuple[Any, int | None] = await reply
            return answer
        finally:
            if file is not None:
                os.close(file)

    def _reserve(self, number: int, run: Key) -> None:
        if self.budget.begin(run):
            self._submitted[number] = run

    def hand_over_link(self, sock: socket.socket) -> None:
        """Pass the socket of a link to the engine."""
        if self.state == "ready":
            self._send({"call": "link"}, os.dup(sock.fileno()))

    def final_status(self, key: Key) -> asyncio.Future[dict[str, Any]]:
        """Return a future of the status that a job will end with."""
        future = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(key, set())
        waiting.add(future)

        def forget(_: object) -> None:
            waiting.discard(future)
            if not waiting and self._waiting.get(key) is waiting:
                del self._waiting[key]

        future.add_done_callback(forget)
        return future

    # -- packets

    def _send(self, message: dict[str, Any], file: int | None) -> None:
        """Queue a message for the engine; its file is closed once it is sent."""
        self._unsent.append((message, file))
        self._flush()

    def _flush(self) -> None:
        sock, loop = self._sock, asyncio.get_running_loop()
        if sock is None:
            return
        while self._unsent:
            message, file = self._unsent[0]
            try:
                ipc.send(sock, message, file)
            except BlockingIOError:
                loop.add_writer(sock, self._flush)
                return
            except OSError:
                return  # _receive detects the exit
            self._unsent.popleft()
            if file is not None:
                os.close(file)
        loop.remove_writer(sock)

    def _receive(self) -> None:
        assert self._sock is not None
        try:
            while True:
                self._handle(*ipc.receive(self._sock))
        except BlockingIOError:
            return
        except (EOFError, OSError):
            self._engine_lost()

    def _handle(self, message: dict[str, Any], file: int | None) -> None:
        self._last_heard = time.monotonic()
        event = message.get("event")
        if event == "ready":
            self.state = "ready"
            self._ready.set()
        elif event == "ended":
            if message["settled"]:
                self.budget.end(tuple(message["key"]), failed=message["op_failed"])
            for waiting in list(self._waiting.get(tuple(message["key"]), ())):
                if not waiting.done():
                    waiting.set_result(message["status"])
        else:
            self._handle_reply(message, file)

    def _handle_reply(self, message: dict[str, Any], file: int | None) -> None:
        submitted = self._submitted.pop(message["id"], None)
        if submitted is not None and "error" in message:
            self.budget.end(submitted, failed=False)
        reply = self._replies.pop(message["id"], None)
        if reply is None or reply.done():
            if file is not None:
                os.close(file)
        elif "error" in message:
            reply.set_exception(RequestError(*message["error"]))
        else:
            reply.set_result((message["ok"], file))

    # -- life cycle of the engine

    def _spawn(self) -> None:
        self.state = "starting"
        mine, theirs = ipc.channel()
        mine.setblocking(False)
        argument = {"config": self._config.model_dump(mode="json")}
        try:
            if not self._engines.alive:
                self._engines.close()
                self._engines = ForkServer(ENGINE)
            self._process = self._engines.fork(argument, theirs.fileno())
        except OSError:  # tried again, as an engine that ended while starting
            self._process = None
        theirs.close()
        self._sock, self._last_heard = mine, time.monotonic()
        asyncio.get_running_loop().add_reader(mine, self._receive)

    def _engine_lost(self) -> None:
        """Fail all pending calls after the engine has exited, and restart it."""
        if self.state == "ended":
            return
        at_once = self.state == "starting"
        code = self._stop_engine("")
        why = f"by {signal.Signals(-code).name}" if code < 0 else f"with {code}"
        if self._process is None:
            why = "before it began, as there is no room for a process"
        log.error("the engine ended %s; another is started", why)
        self._unavailable = (
            f"the engine of worker {self._config.name} ended {why}; what it held is lost"
        )
        self._fail_pending(self._unavailable)
        self._submitted.clear()
        self.budget.engine_ended()
        self.restarts += 1
        self.state = "starting"
        self._ready.clear()
        loop = asyncio.get_running_loop()
        loop.call_later(RESTART_DELAY if at_once else 0, self._respawn)

    def _respawn(self) -> None:
        if self.state != "ended":
            self._spawn()

    def _stop_engine(self, reason: str) -> int:
        """Close the socket to the engine, wait for its exit, and return its exit code."""
        if self._sock is not None:
            loop = asyncio.get_event_loop()
            if loop.is_running():
                loop.remove_reader(self._sock)
                loop.remove_writer(self._sock)
            self._sock.close()
            self._sock = None
        for _, file in self._unsent:
            if file is not None:
                os.close(file)
        self._unsent.clear()
        if reason:
            self._fail_pending(reason)
        if self._process is None:
            return -signal.SIGKILL
        if self._process.poll() is None:
            try:
                self._process.wait(0.5)
            except subprocess.TimeoutExpired:
                self._process.kill()
        try:
            return self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:  # the fork server does not answer
            self._engines.close()
            return -signal.SIGKILL

    def _fail_pending(self, text: str) -> None:
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(RequestError(503, "engine-ended", text))
        self._replies.clear()
        error = asdict(Failure("RunError", text))
        for key, waiting in list(self._waiting.items()):
            for future in list(waiting):
                if not future.done():
                    future.set_result(
                        {"run": key[2], "state": "failed", "held": [], "error": error}
                    )

    async def _ping_engine(self) -> None:
        """Ping the engine, and kill it if it does not respond."""
        while True:
            await asyncio.sleep(PING_INTERVAL)
            if self._sock is None:
                continue
            if self.state == "ready":
                number = next(self._ids)
                self._send({"id": number, "call": "ping"}, None)
            if self.silence > self._config.timeouts.engine:
                log.error("the engine was silent for %.0f s, and is ended", self.silence)
                if self._process is not None:
                    self._process.kill()
