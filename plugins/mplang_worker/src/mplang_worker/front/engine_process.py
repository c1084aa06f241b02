"""Engine of one session, as the front sees it: calls, events and its end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from mplang_worker.base.errors import RequestError
from mplang_worker.front.download import Download
from mplang_worker.front.process_log import ProcessLog
from mplang_worker.process.cgroups import EngineCgroup
from mplang_worker.process.forks import Child, how_ended
from mplang_worker.wire import ipc

MAX_PENDING = 64  # calls that an engine has yet to answer, and packets that it has yet to take
MAX_UNSENT = 400  # messages that it has yet to take and not to answer
PACKETS = 16  # packets that are read in a turn of the event loop
ENGINE_ENDED = "engine-ended"  # code of the error of calls that an engine does not answer
END_TIMEOUT = 5.0  # seconds until the end of a process that was killed is told
log = logging.getLogger("mplang.http.front")


class Usage(NamedTuple):
    """Resource usage of a process.

    Attributes:
        memory: bytes that are not of a file, those that it shares with the warm process included.
        threads: number of threads.
        state: as in proc(5): ``T`` if it was stopped by a signal.
    """

    memory: int
    threads: int
    state: str


class EngineProcess:
    """Process of one engine, and the socket to it.

    Args:
        process: the process.
        sock: socket to it.
        name: what it is called in errors.
        log: takes what it writes to its log.
        max_file: bytes of a file that it may return.
        on_event: called with each event that it reports.
        on_end: called when it has closed its socket, unless :meth:`end` was called before.
        cgroup: its cgroup, which is removed at its end; ``None`` if it has none.
        code: code of the error of calls that it does not answer.
        clear: removes what it has left, once it has ended.

    Attributes:
        lost: whether it has closed its socket, so that it has ended by itself.
    """

    def __init__(
        self,
        process: Child,
        sock: socket.socket,
        name: str,
        log: ProcessLog,
        max_file: int,
        on_event: Callable[[dict[str, Any], int | None], None],
        on_end: Callable[[], object],
        cgroup: EngineCgroup | None = None,
        code: str = ENGINE_ENDED,
        clear: Callable[[], None] = lambda: None,
    ) -> None:
        self._process = process
        self._sock = sock
        self._name = name
        self._max_file = max_file
        self._log = log
        self._on_event = on_event
        self._on_end = on_end
        self._cgroup, self._code, self._clear = cgroup, code, clear
        self._ids = itertools.count()
        self._replies: dict[int, asyncio.Future[tuple[Any, int | None]]] = {}
        self._unsent: deque[tuple[dict[str, Any], int | None]] = deque()
        self.lost = False
        self._ending = False
        self._ended: str | None = None  # how it ended, once that is known
        sock.setblocking(False)
        asyncio.get_running_loop().add_reader(sock, self._receive)
        self._send({"call": "log"}, log.writer)  # before any other, and closed by this

    @property
    def pid(self) -> int:
        """Process ID."""
        return self._process.pid

    @property
    def pending(self) -> int:
        """Number of calls that the engine has yet to answer."""
        return len(self._replies)

    async def call(self, method: str, body: ipc.Body = None, /, **args: Any) -> Any:
        """Call a method of the engine.

        Args:
            method: name of the method.
            body: body of the request; the caller closes a file descriptor.
            **args: further arguments of the method.

        Returns:
            The result.

        Raises:
            RequestError: the method failed, or the engine has ended.
        """
        result, file = await self._call(method, body, args)
        if file is not None:
            os.close(file)
        return result

    async def fetch(self, method: str, /, **args: Any) -> memoryview:
        """Call a method of the engine that returns a file.

        Args:
            method: name of the method.
            **args: arguments of the method.

        Returns:
            The contents of the file.

        Raises:
            RequestError: the method failed, or the engine has ended.
        """
        _, file = await self._call(method, None, args)
        try:
            if file is None:
                raise ValueError("no file")
            return ipc.read_file(file, self._max_file)
        except ValueError as error:
            raise RequestError(500, "internal", f"{self._name} gave {error}") from None

    async def download(self, method: str, /, **args: Any) -> Download:
        """Call a method of the engine that writes its result to a socket.

        Args:
            method: name of the method.
            **args: arguments of the method.

        Returns:
            The download, which is to be read or closed.

        Raises:
            RequestError: the method failed, or the engine has ended.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs:
                size = await self.call(method, theirs.fileno(), **args)
            if not isinstance(size, int) or not 0 <= size <= self._max_file:
                raise RequestError(500, "internal", f"{self._name} gave a value of {size!r} bytes")
        except BaseException:
            ours.close()
            raise
        return Download(size, ours)

    async def _call(
        self, method: str, body: ipc.Body, args: dict[str, Any]
    ) -> tuple[Any, int | None]:
        if self._ended is not None:
            raise RequestError(503, self._code, self._ended)
        if len(self._replies) >= MAX_PENDING:
            raise RequestError(429, "busy", f"{self._name} has {MAX_PENDING} requests to answer")
        number = next(self._ids)
        reply = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        if not self._ending:  # else it is told how the engine ended, like those that wait
            file = os.dup(body) if isinstance(body, int) else None
            message = {"id": number, "call": method, "args": args}
            if isinstance(body, bytes):
                message["body"] = body
            self._send(message, file)
        answer: tuple[Any, int | None] = await reply
        return answer

    def hand_over_link(self, sock: socket.socket) -> None:
        """Pass the socket of a link that a peer has begun; drop it if many are waiting."""
        if not self._ending and len(self._unsent) < MAX_PENDING:
            self._send({"call": "link"}, os.dup(sock.fileno()))

    def tell(self, message: dict[str, Any], file: int | None = None) -> None:
        """Send a message that the engine does not answer; the file is closed once it is sent.

        An engine that takes none of many is ended, as their files would stay open here.
        """
        if not self._ending and len(self._unsent) < MAX_UNSENT:
            self._send(message, file)
            return
        if file is not None:
            os.close(file)
        if not self._ending:
            self.kill()

    # -- packets

    def _send(self, message: dict[str, Any], file: int | None) -> None:
        """Queue a message for the engine; its file is closed once it is sent."""
        self._unsent.append((message, file))
        self._flush()

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        while self._unsent:
            message, file = self._unsent[0]
            try:
                ipc.send(self._sock, message, file)
            except BlockingIOError:
                loop.add_writer(self._sock, self._flush)
                return
            except (BrokenPipeError, ConnectionError):
                return  # _receive detects the end
            except OSError as error:  # such as too many files on their way
                reply = self._replies.pop(message.get("id", -1), None)
                if reply is not None and not reply.done():
                    reply.set_exception(RequestError(503, "busy", f"try again: {error}"))
            except (OverflowError, TypeError, ValueError) as error:  # it is not plain data
                log.error("a message to an engine cannot be written: %s", type(error).__name__)
                reply = self._replies.pop(message.get("id", -1), None)
                if reply is not None and not reply.done():
                    reply.set_exception(RequestError(500, "internal", "it cannot be written"))
            self._unsent.popleft()
            if file is not None:
                os.close(file)
        loop.remove_writer(self._sock)

    def _receive(self) -> None:
        try:
            self._log.drain()  # what it wrote before it answers stands before the answer
            for _ in range(PACKETS):  # then others have a turn
                if not self._ending:
                    self._handle(*ipc.receive(self._sock))
        except BlockingIOError:
            return
        except (EOFError, OSError):
            self._lose()
        except Exception:  # a packet that no engine sends
            self._process.kill()
            self._lose()

    def _lose(self) -> None:
        self.lost = True
        asyncio.get_running_loop().remove_reader(self._sock)
        self._on_end()

    def _handle(self, message: dict[str, Any], file: int | None) -> None:
        if "event" in message:
            self._on_event(message, file)
            return
        reply = self._replies.pop(message["id"], None)
        if reply is None or reply.done():
            if file is not None:
                os.close(file)
        elif "error" in message:
            reply.set_exception(RequestError(*message["error"]))
        else:
            reply.set_result((message["ok"], file))

    # -- the end

    async def end(self, reason: str, *, kill: bool = False) -> str:
        """End the process, and fail all calls.

        Args:
            reason: text for the calls' errors; if it is empty, how the process ended by itself.
            kill: whether it is to end now, whatever it does.

        Returns:
            The text.
        """
        loop = asyncio.get_running_loop()
        self._ending = True
        with contextlib.suppress(OSError, ValueError):
            loop.remove_reader(self._sock)
            loop.remove_writer(self._sock)
        self._sock.close()
        for _, file in self._unsent:
            if file is not None:
                os.close(file)
        self._unsent.clear()
        if kill:
            self.kill()
        code = await loop.run_in_executor(None, self._wait)
        self._log.drain()
        self._log.close()
        ended = reason or f"{self._name} ended {how_ended(code)}; its values are lost"
        excess = self._cgroup.excess() if self._cgroup is not None else ""
        if not reason and excess and code == -signal.SIGKILL:
            ended = f"its engine was ended: {excess}"
        self._ended = ended
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(RequestError(503, self._code, ended))
        self._replies.clear()
        if self._cgroup is not None:
            await loop.run_in_executor(None, self._cgroup.remove)
        await loop.run_in_executor(None, self._clear)
        return ended

    def kill(self) -> None:
        """End the process now; its end is noticed like any other."""
        self._process.kill()

    def _wait(self) -> int:
        try:
            return self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            self._process.kill()
        try:
            return self._process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:  # the fork server does not answer
            return -signal.SIGKILL

    def usage(self) -> Usage:
        """Return what it uses; nothing once it has ended."""
        return usage(self.pid)


def usage(pid: int) -> Usage:
    """Return what a process uses; nothing once it has ended."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:  # its name may be any bytes
            lines = dict(line.split(b":", 1) for line in status if b":" in line)
        kilobytes = sum(int(lines[name].split()[0]) for name in (b"RssAnon", b"RssShmem"))
        return Usage(kilobytes << 10, int(lines[b"Threads"]), chr(lines[b"State"].strip()[0]))
    except (OSError, LookupError):  # a process that has ended uses nothing
        return Usage(0, 0, "Z")
