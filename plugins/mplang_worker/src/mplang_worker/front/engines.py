"""Engines of a worker, one per session: opened, linked, called and ended by the front."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import socket
import time
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import msgspec

from mplang_core import MPLangError
from mplang_core.ext import ShutdownError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.base.logs import log_cause, log_context
from mplang_worker.front.data_sets import FrontDataSets
from mplang_worker.front.dialing import link
from mplang_worker.front.download import Download
from mplang_worker.front.ended_sessions import EndedSessions
from mplang_worker.front.engine_events import EngineEvents
from mplang_worker.front.engine_process import ENGINE_ENDED, EngineProcess
from mplang_worker.front.engine_start import EngineStarter
from mplang_worker.front.engine_watch import watch
from mplang_worker.front.failure_budget import FailureBudget
from mplang_worker.front.gate import FrontGate
from mplang_worker.front.kept_values import watch_kept_values
from mplang_worker.front.live_config import ConfigFile, LiveConfig, check_coordinator
from mplang_worker.front.log_quota import LogQuota
from mplang_worker.front.mpc import FrontMpc
from mplang_worker.front.open_queue import OpenQueue
from mplang_worker.front.questions import FrontQuestions
from mplang_worker.front.readiness import Readiness
from mplang_worker.front.retention import RetentionSweep
from mplang_worker.front.session import FrontSession, Key, check_room, fail_start, is_turn
from mplang_worker.front.session_credentials import SessionCredentials
from mplang_worker.front.slow_start import wait_for_start
from mplang_worker.front.stop_notices import StopNotices
from mplang_worker.front.stopping import PausedCoordinators, watch_revocations
from mplang_worker.front.storage import FrontStorage
from mplang_worker.front.warm_process import WarmProcess
from mplang_worker.front.withdrawals import Withdrawals
from mplang_worker.process.cgroups import Cgroups
from mplang_worker.process.forks import ForkServer
from mplang_worker.process.malloc import keep_giving_back
from mplang_worker.tls.certificates import Certificates
from mplang_worker.tls.credentials import Credential
from mplang_worker.wire import ipc
from mplang_worker.wire.requests import LinkRequest, SessionRequest

CLOSE_TIMEOUT = 1.0  # seconds that an engine has to end its jobs
STOP_TIMEOUT = 0.2  # seconds that it has to tell its peers that its owner stops it
log = logging.getLogger("mplang.http.front")

T = TypeVar("T")


class Engines:
    """Engines of a worker.

    Args:
        config: configuration of the worker.
        certificates: its certificates; ``None`` without TLS.
        forks: the fork server of its warm process, closed at the end.
        cgroups: cgroups of the engines; ``None`` where none can be made.
        file: file of the configuration, which is read again when it changes.

    Attributes:
        warm: the process that forks them.
        crashes: number of engines that ended unexpectedly.
        budget: failed runs of each coordinator.
        log_quota: bytes of the worker's own log of each coordinator.
        mpc: what starts their MPC processes.
        credentials: credentials of the sessions.
        data: the data sets of the worker.
        storage: its storage.
        gate: its gate.
        live: reloads the configuration.
        notices: tells the peers of sessions that were stopped here.
        paused: coordinators that its owner has paused.
        readiness: whether what its sections need is there.
        draining: whether the worker is being shut down, and takes no new sessions and jobs.
        downloads: number of values that are being sent to coordinators.
    """

    def __init__(
        self,
        config: WorkerConfig,
        certificates: Certificates | None,
        forks: ForkServer,
        cgroups: Cgroups | None = None,
        file: ConfigFile | None = None,
    ) -> None:
        self.warm = WarmProcess(config, forks, "" if file is None else file.path)
        self.crashes = 0
        self.draining = False
        self.downloads = 0
        self.budget = FailureBudget(config.name, config.limits.failures)
        self._config = config
        self.credentials = SessionCredentials(certificates)
        self.data = FrontDataSets(config)
        self.notices = StopNotices(config, certificates)
        self.storage = FrontStorage(config)
        self.log_quota = LogQuota(config.quotas.log)
        self.gate = FrontGate(config, self.storage, self.log_quota)
        self.paused = PausedCoordinators(config.name, self.gate)
        self.credentials.gate = self.gate.public_key
        self._starter = EngineStarter(
            config, self.warm, cgroups, self.log_quota, gated=self.gate.is_there
        )
        self._links: dict[str, FrontSession] = {}
        self.mpc = FrontMpc(
            config.name, self.warm, self._starter, self.credentials, self._links, self.begin
        )
        self.readiness = Readiness.of(self.data, self.storage, self.gate)
        self._retention = RetentionSweep.of(self.storage, self.gate)
        self._questions = FrontQuestions(
            config, self.data, self.storage, self.gate, self.budget, self.readiness
        )
        self._events = EngineEvents(self._questions, self.mpc, self.gate, self.budget, self.begin)
        self._sessions: dict[Key, FrontSession] = {}
        self._ended = EndedSessions()
        self._openings = OpenQueue()
        self._tasks: set[asyncio.Task[Any]] = set()
        parts = (self.data, self.gate, self._questions, self._starter, self.credentials)
        self.live = LiveConfig(config, file, self, parts)

    def __len__(self) -> int:
        """Number of sessions."""
        return len(self._sessions)

    @property
    def sessions(self) -> list[FrontSession]:
        """The sessions that are open."""
        return list(self._sessions.values())

    @property
    def state(self) -> str:
        """State of the worker, as ``/health`` and ``/ready`` tell it."""
        # while engines end before they can do anything, no coordinator is sent here
        return "draining" if self.draining else self._starter.state

    @property
    def busy(self) -> bool:
        """Whether a job, a call of an engine or a download has not ended."""
        sessions = self._sessions.values()
        calls = any(each.process is not None and each.process.pending for each in sessions)
        return calls or self.downloads > 0 or any(each.jobs.active for each in sessions)

    def start(self) -> None:
        """Start to warm up; needs a running event loop."""
        self.storage.start()
        self.begin(self.warm.warm_up())
        self.begin(watch(self._config, self))
        self.begin(watch_revocations(self, self._config.name))
        self.begin(Withdrawals(self._config, self).watch())
        self.begin(self.live.watch())
        self.begin(self.readiness.watch())
        self.begin(self._retention.watch())
        self.begin(watch_kept_values(self._config, self))
        self.begin(keep_giving_back())

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start work that is cancelled when the worker ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def stop(self) -> None:
        """End all engines, and the warm process, for good."""
        for task in list(self._tasks):
            task.cancel()
        for session in self._sessions.values():
            session.ending = True  # so that its engine is not taken for lost
            session.jobs.fail("the worker ends")
            self.gate.forget(session)
            session.kill()
        self.warm.close()
        self.gate.close()

    # -- sessions

    async def open(self, coordinator: str, name: str, body: Any) -> dict[str, Any]:
        """Open a session: start its engine, unless it has one.

        Args:
            coordinator: name of the coordinator.
            name: name of the session.
            body: a SessionRequest in JSON.

        Returns:
            The credentials of this party, for :meth:`join` at all parties: of its engine, and, as
            ``native``, of its MPC processes that have links, by native service.

        Raises:
            RequestError: the request is invalid, there are too many sessions, an engine does
                not start, or the session is closed meanwhile.
        """
        request = SessionRequest.read(body, self._config)
        key = (coordinator, name)
        session = self._sessions.get(key)
        self.mpc.check(request.native)
        if session is None:
            session = await self._in_turn(key, request)
        elif session.request.parties != request.parties or session.request.rank != request.rank:
            raise RequestError(409, "taken", "this session has other parties")
        session.seen = time.monotonic()
        assert session.started is not None
        try:
            credential, native = await asyncio.gather(
                asyncio.shield(session.started), self.mpc.open(session, request.native)
            )
        except RequestError as error:  # perhaps it was closed before it was open
            raise (self._ended.error(key) if session.closed else error) from None
        return {
            "credential": msgspec.to_builtins(credential),
            "native": msgspec.to_builtins(native),
        }

    async def _in_turn(self, key: Key, request: SessionRequest) -> FrontSession:
        """Return a session that starts, once it is its turn."""
        self._check_open(key, request)
        await self._openings.enter(key, lambda: is_turn(self._config, key[0], self.sessions))
        try:
            self._check_open(key, request)
            session = self._sessions.get(key) or self._new_session(key, request)
            assert session.started is not None
            session.started.add_done_callback(lambda _: self._openings.leave(key))
        except BaseException:
            self._openings.leave(key)
            raise
        return session

    def _check_open(self, key: Key, request: SessionRequest) -> None:
        """Check that a session may be opened, now or later."""
        self.refuse_if_draining()
        self.paused.check(key[0])
        check_coordinator(key[0], self._config)  # who may have been removed while it was queued
        if self.state != "ready":
            raise RequestError(
                503, "starting", f"worker {self._config.name} is not ready yet; try again"
            )
        check_room(self._config, key[0], request, self.sessions, self._openings.waiting(key[0]))

    def _new_session(self, key: Key, request: SessionRequest) -> FrontSession:
        session = FrontSession(key, request, self._config.limits.jobs)
        mine = [each for each in self._sessions.values() if each.key[0] == key[0]]
        session.cores = mine[0].cores if mine else self._starter.free_cores(self.sessions)
        self._sessions[key] = self._links[session.link] = session
        self._ended.reopen(key)
        session.started = asyncio.get_running_loop().create_task(self._start(session))
        session.started.add_done_callback(lambda task: task.cancelled() or task.exception())
        return session

    def refuse_if_draining(self) -> None:
        """Refuse what is new while the worker is being shut down.

        Raises:
            ShutdownError: it is.
        """
        if self.draining:
            raise ShutdownError(
                f"{self._config.name} is being shut down by its owner, and takes no new sessions "
                "and runs"
            )

    async def _start(self, session: FrontSession) -> Credential:
        """Start the engine of a session, and return the credential of its key."""
        try:
            await self._starter.start(
                session,
                functools.partial(self._events.handle, session),
                lambda: self.begin(self._lost(session)),
            )
            await self.gate.open(session, self.warm, lambda: self.begin(self._unchecked(session)))
            if session.ending:
                self.gate.forget(session)
                raise ConnectionError("it was closed before it was open")
            key = await wait_for_start(session.ready, "an engine")
        except (OSError, TimeoutError, RuntimeError) as error:
            if not session.ending:
                self._starter.failed()
            await self._abandon(session, str(error) or type(error).__name__)
            text = "an engine does not start; try again; why is in the worker's log"
            raise RequestError(503, "starting", text) from None
        assert session.process is not None
        self._starter.works()
        session.baseline = session.process.usage().memory
        if session.checker is not None:
            session.baseline += session.checker.usage().memory
        with log_cause(session.key[0]), log_context(session.key[1]):
            log.info(
                "a session of %s is open, as party %d of %d",
                session.key[0], session.request.rank, len(session.parties),
            )  # fmt: skip
        try:
            return self.credentials.issue(session, "engine", session.link, key)
        except MPLangError as error:
            await self._abandon(session, str(error))
            raise

    async def _abandon(self, session: FrontSession, why: str) -> None:
        """Give up a session whose engine does not start."""
        session.ending = True
        self._forget(session, f"its engine does not start: {why}", failed=True)
        self.gate.forget(session)
        if session.process is not None:
            await session.process.end("it did not start", kill=True)
        self.check_warm()

    def check_warm(self) -> None:
        """Start another warm process if it has ended."""
        if self.warm.has_ended():
            self.begin(self.warm.warm_up())

    async def join(self, coordinator: str, name: str, body: Any) -> dict[str, Any]:
        """Link the engine of a session to those of all parties, and start a generation.

        Args:
            coordinator: name of the coordinator.
            name: name of the session.
            body: a LinkRequest in JSON.

        Returns:
            The generation, and the lease in seconds.

        Raises:
            RequestError: the request is invalid.
            AdmissionError: a credential is refused.
            CommError: a link cannot be established.
        """
        session, request = self.find(coordinator, name), LinkRequest.read(body)
        process = session.process
        linked = {name for name, each in session.natives.items() if each.credential is not None}
        by_process = [request.credentials, *request.native.values()]
        fit = all(len(each) == len(session.parties) for each in by_process)
        if process is None or not fit or not request.native.keys() <= linked:
            raise RequestError(
                422, "parties", "each party of the session has a credential, and so has its MPC "
                "process of each native service that is to be linked",
            )  # fmt: skip
        async with session.linking:  # so that its credentials are those of its links
            await self.credentials.take(session, request.credentials, request.native)
            try:
                done = await link(session, process, self._config, request.generation)
            except BaseException:
                if not session.joined:
                    self.end_soon(session, "it was not linked to its peers")
                raise
            session.joined, session.receipt = True, request.receipt
        self.notices.contact(session.parties)
        return done

    def find(self, coordinator: str, name: str) -> FrontSession:
        """Return a session, and renew its lease.

        Raises:
            RequestError: there is none of that name and coordinator.
            ShutdownError: it was ended, as the worker is being shut down.
        """
        session = self._sessions.get((coordinator, name))
        if session is None or session.closed:
            raise self._ended.error((coordinator, name))
        session.seen = time.monotonic()
        return session

    async def close(self, coordinator: str, name: str) -> None:
        """Close a session; do nothing if there is none."""
        session = self._sessions.get((coordinator, name))
        if session is not None:
            await self._end(session, "the coordinator ended the session")

    def hand_over_link(self, sock: socket.socket, link: str) -> bool:
        """Pass the socket of a link to the process that has its end.

        Returns:
            Whether there is one.
        """
        session = self._links.get(link)
        process = None if session is None else session.process_of(link)
        if process is None:
            return False
        process.hand_over_link(sock)
        return True

    # -- calls

    def active_jobs(self, coordinator: str) -> int:
        """Return how many jobs of a coordinator have not ended."""
        mine = (each for each in self._sessions.values() if each.key[0] == coordinator)
        return sum(session.jobs.active for session in mine)

    def _process(self, coordinator: str, name: str) -> EngineProcess:
        process = self.find(coordinator, name).process
        if process is None:
            raise RequestError(409, "generation", "the session is being opened; join it first")
        return process

    async def call(
        self, method: str, coordinator: str, name: str, body: ipc.Body = None, /, **args: Any
    ) -> Any:
        """Call a method of a session's engine.

        Args:
            method: name of the method.
            coordinator: name of the coordinator.
            name: name of the session.
            body: body of the request; the caller closes a file descriptor.
            **args: further arguments of the method.

        Returns:
            The result.

        Raises:
            RequestError: there is no such session, the method failed, or the engine has ended.
        """
        process = self._process(coordinator, name)
        with self._told_why(coordinator, name):
            return await process.call(method, body, **args)

    async def download(self, method: str, coordinator: str, name: str, /, **args: Any) -> Download:
        """Call a method of a session's engine whose result is streamed.

        Args:
            method: name of the method.
            coordinator: name of the coordinator.
            name: name of the session.
            **args: arguments of the method.

        Raises:
            RequestError: there is no such session, the method failed, or the engine has ended.
        """
        process = self._process(coordinator, name)
        with self._told_why(coordinator, name):
            return await process.download(method, **args)

    @contextlib.contextmanager
    def _told_why(self, coordinator: str, name: str) -> Iterator[None]:
        """Report a call interrupted by the end of its session as one to an unknown session."""
        try:
            yield
        except RequestError as error:
            if error.code == ENGINE_ENDED:
                self.find(coordinator, name)
            raise

    # -- the end

    async def _lost(self, session: FrontSession) -> None:
        """Take notice that an engine has ended by itself."""
        if session.ending or session.process is None:
            return
        session.ending = True
        await session.jobs.wait_for_step()
        self.crashes += 1  # before the coordinator is told
        try:
            why = await session.process.end("")
        except Exception as error:  # the session must not stay
            log.exception("the end of an engine is not clear")
            why = f"its engine has ended: {type(error).__name__}"
        if not session.ready.done():
            self._starter.failed()
        self._forget(session, why, failed=True)
        self.check_warm()

    async def _unchecked(self, session: FrontSession) -> None:
        """End a session whose checker has ended: nothing of it can be decided any more."""
        if session.checker is not None:
            why = await session.checker.end("")
            await self._end(session, why, kill=True)

    async def _end(self, session: FrontSession, why: str, *, kill: bool = False) -> None:
        """End a session and its engine; at once if it is to be killed."""
        if session.ending:
            return
        session.ending = True
        process, failed = session.process, kill
        if kill:
            if process is not None:
                process.kill()
            await session.jobs.wait_for_step()
            self.crashes += 1  # before the coordinator is told
        session.closed = True
        self._ended.add(session.key, why)
        try:
            if process is not None and not kill:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.call("close", reason=why), CLOSE_TIMEOUT)
        except RequestError:
            failed = True  # it has ended by itself meanwhile
        finally:
            if process is not None:
                failed |= process.lost
                process.kill()
            self._forget(session, why, failed=failed)
        if process is not None:
            await process.end(why, kill=True)

    def end_soon(self, session: FrontSession, why: str, *, kill: bool = False) -> None:
        """End a session without waiting; at once, and as a crash, if it is to be killed."""
        self.begin(self._end(session, why, kill=kill))

    async def end_now(self, session: FrontSession, why: str) -> None:
        """End a session and its processes at once, as its owner wants; no run of it has failed."""
        ending, session.ending, session.closed = session.ending, True, True
        self._ended.add(session.key, why)
        process = None if ending else session.process
        if process is not None:  # so that its peers are told why, if it can
            with contextlib.suppress(RequestError, TimeoutError):
                await asyncio.wait_for(process.call("close", reason=why), STOP_TIMEOUT)
        session.kill()
        self._forget(session, why)
        if process is not None:
            await process.end(why, kill=True)

    async def shut_down(self, why: str, late: str, patience: float) -> None:
        """End all sessions, and wait until their coordinators have been told.

        Args:
            why: text of the error that they get.
            late: text of the error of jobs that have not ended.
            patience: seconds to wait.
        """
        sessions = self.sessions
        for session in sessions:
            self._ended.shut_down(session.key)
            session.jobs.fail(late, ShutdownError.__name__)
        await asyncio.gather(*(self._end(session, why) for session in sessions))
        await self._ended.wait_until_told(patience)

    def _forget(self, session: FrontSession, why: str, *, failed: bool = False) -> None:
        if self._sessions.get(session.key) is not session:
            return  # it has been told already
        del self._sessions[session.key]
        level = logging.ERROR if failed else logging.INFO
        with log_cause(session.key[0]), log_context(session.key[1]):
            log.log(level, "the session of %s is closed: %s", session.key[0], why)
        fail_start(session.ready, why)
        session.jobs.fail(why)
        self._questions.forget(session)
        self.gate.forget(session)
        self.begin(self.gate.end_all(session))
        self.budget.session_ended(session.key[0], session.link, failed=failed)
        self._links.pop(session.link, None)
        self.begin(self.mpc.end(session, why))
        self._ended.add(session.key, why)

    def check_credentials(self, *, again: bool) -> None:
        """End the sessions of which a certificate has expired, or is refused.

        Args:
            again: whether to verify them again, as others are believed now.
        """
        for session in self.sessions:
            if why := self.credentials.refusal(session, again=again):
                self.end_soon(session, why)
