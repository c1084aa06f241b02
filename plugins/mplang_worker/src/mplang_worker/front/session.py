"""Session of a coordinator, as the front sees it: its engine, its jobs and its limits."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from mplang_analysis import Source

from mplang_worker.base.config import Limits, Timeouts, WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.front.answered_files import AnsweredFiles
from mplang_worker.front.engine_process import EngineProcess
from mplang_worker.front.gate_runs import GateRuns
from mplang_worker.front.jobs import MAX_KNOWN, FrontJobs
from mplang_worker.process.cgroups import memory_excess
from mplang_worker.tls.credentials import Credential, LinkEnd, Role, session_statement
from mplang_worker.wire.requests import SessionRequest

MAX_STOPPED = 2  # times in turn that an engine may be seen to be stopped

Key = tuple[str, str]
"""Coordinator and name of a session."""

Ready: TypeAlias = dict[str, Any]
"""What a process says once it is ready, as plain data."""

T = TypeVar("T")


class Permitted(NamedTuple):
    """Requests that the engine of a run may make, if there is a gate.

    Attributes:
        run: name of the run.
        questions: digests of questions about data sets.
        storage: actions and names.
        labels: by name what flows into what it leaves in storage here.
        leaves: whether it leaves something in storage, here or elsewhere.
        before: digests of the questions of the run before, of which a thread may not have ended.
        states: what tells whether a data set has changed since the run has seen it, by its name.
    """

    run: str = ""
    questions: frozenset[str] = frozenset()
    storage: frozenset[tuple[str, str]] = frozenset()
    labels: Mapping[str, frozenset[Source]] = {}
    leaves: bool = False
    before: frozenset[str] = frozenset()
    states: dict[str, str | None] | None = None

    def after(self, earlier: Permitted) -> Permitted:
        """Return it as what follows something else that was permitted."""
        return self._replace(before=earlier.questions or earlier.before)


NOTHING = Permitted()


class SessionMpc:
    """MPC process of a session, which another one replaces once it has ended.

    Args:
        service: name of its native service.

    Attributes:
        service: name of its native service.
        process: the process; ``None`` if there is none, or it has ended.
        link: name of its end of the links.
        credential: for its key; ``None`` if it has no links.
        credentials: those of the MPC processes of all parties, by rank, once it is linked.
        ends: the ends of their links, by rank, once it is linked.
        starting: held by who starts it.
        ready: what the process says once it is ready, at its start and when it is asked;
            ``None`` before the first.
        baseline: bytes of memory that the process had at its start.
    """

    def __init__(self, service: str) -> None:
        self.service = service
        self.baseline = 0
        self.process: EngineProcess | None = None
        self.link = ""
        self.credential: Credential | None = None
        self.credentials: Sequence[Credential] = ()
        self.ends: Sequence[LinkEnd] = ()
        self.starting = asyncio.Lock()
        self.ready: asyncio.Future[Ready] | None = None


class FrontSession:
    """Session of a coordinator, as the front sees it.

    Args:
        key: coordinator and name.
        request: the request that opened it.
        jobs: number of its jobs whose status is kept.

    Attributes:
        link: name of its end of the links; whoever knows it reaches the engine's handshake.
        process: its engine, once that has started.
        natives: its MPC processes, by the name of the native service that each runs.
        needed: names of the native services that its coordinator has asked for last.
        checker: what analyses its programs for the gate, if there is one.
        permitted: what its engine may ask for since the last run began, if there is a gate.
        begun: the runs that have begun and not ended, if there is a gate.
        rests: the approvals that its runs have used.
        loaded: what it rests on besides, if there is a gate: its last run that has stored
            something, which rests on all before, and the runs whose stored values it has loaded
            since.
        gate_runs: what the gate knows of its other runs, and what peers tell of their logs.
        refusals: how often it was refused something, beside runs that rules refuse.
        approvals: those of this party that its coordinator has passed on, by their names.
        opened: time when it was opened.
        seen: time of the last request.
        joined: whether it was ever linked to all parties.
        receipt: what its coordinator remembers of this party's log.
        answered: what its engine was given of files in memory.
        memory: bytes of private memory that its engine used when it was last looked at, or of what
            it was given and has, if these are more.
        credentials: those of all parties, by rank, once it is linked.
        ends: the ends of all parties' links, by rank, once it is linked.
    """

    def __init__(self, key: Key, request: SessionRequest, jobs: int = MAX_KNOWN) -> None:
        self.key = key
        self.request = request
        self.parties = [party.name for party in request.parties]
        self.link = secrets.token_hex(16)
        self.process: EngineProcess | None = None
        self.checker: EngineProcess | None = None
        self.natives: dict[str, SessionMpc] = {}
        self.needed: frozenset[str] = frozenset()
        self.permitted = NOTHING
        self.begun: set[str] = set()
        self.rests: set[str] = set()
        self.loaded: set[str] = set()
        self.stopping: asyncio.Future[None] | None = None  # its stop by an owner, if there is one
        self.gate_runs = GateRuns()
        self.over = False  # whether the ends of its runs were put on record, as it has ended
        self.refusals = 0
        self.approvals: dict[str, Any] = {}
        self.jobs = FrontJobs(jobs)
        self.opened = self.seen = time.monotonic()
        self.joined = False
        self.receipt = ""
        self.credentials: Sequence[Credential] = ()
        self.ends: Sequence[LinkEnd] = ()
        self.ending = False
        self.closed = False  # whether it was ended here, and is not found any more
        self.baseline = 0  # bytes of memory of its engine and checker at their start
        self.memory = 0
        self.cores: list[int] = []
        self.asking = 0  # answers that its engine has not taken
        self.receipts: set[str] = set()  # of these
        self.answered = AnsweredFiles()
        self.given: dict[int, list[int]] = {}  # files of its engine's questions, by number
        self.files = 0  # how many there are, of questions that are being answered, too
        self.stopped = 0  # how often it was seen to be stopped
        self.ready: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.started: asyncio.Task[Credential] | None = None
        self.linking = asyncio.Lock()

    def statement(self, role: Role, service: str = "") -> str:
        """Return what the certificates of the keys of its processes of a role state.

        Args:
            role: the role.
            service: of MPC processes the native service.
        """
        return session_statement(*self.key, self.parties, role, service)

    def kill(self) -> None:
        """End its processes at once, whatever they do."""
        natives = (each.process for each in self.natives.values())
        for process in (self.process, *natives, self.checker):
            if process is not None:
                process.kill()

    def process_of(self, link: str) -> EngineProcess | None:
        """Return the process that has an end of the links; ``None`` if it has ended."""
        if link == self.link:
            return self.process
        return next((each.process for each in self.natives.values() if each.link == link), None)

    def expired(self, now: float) -> str:
        """Return whose certificate has expired; empty if none.

        Args:
            now: seconds since 1970.
        """
        apart = (each.ends for each in self.natives.values())
        for end in itertools.chain(self.ends, *apart):
            if 0 < end.expires < now:
                return f"the certificate of {end.name} has expired"
        return ""

    @property
    def has_mpc(self) -> bool:
        """Whether its MPC processes are there that it needs, as its coordinator may know.

        The end of one is told at the step of the clock of its run, as that run's end is.
        """
        there = {name for name, each in self.natives.items() if each.process is not None}
        return self.needed <= there or self.jobs.has_clock

    def excess(self, limits: Limits, timeouts: Timeouts) -> str:
        """Return which limit its engine passes; empty if none.

        Args:
            limits: limits of the worker.
            timeouts: timeouts of the worker.
        """
        if self.process is None:
            return ""
        memory, threads, state = self.process.usage()
        for each in self.natives.values():
            if each.process is None:
                continue
            apart = each.process.usage()
            memory += apart.memory - each.baseline
            threads += apart.threads
            state = apart.state if apart.state == "T" else state
        self.stopped = self.stopped + 1 if state == "T" else 0
        if self.stopped > MAX_STOPPED:
            return "its process was stopped by a signal"
        if self.checker is not None:
            memory += self.checker.usage().memory
        self.memory = max(memory - self.baseline, self.answered.size())
        if self.memory > limits.memory:
            return memory_excess(limits)
        if threads > limits.threads:
            return f"it had more than {limits.threads} threads (limits.threads)"
        return self.jobs.overdue(timeouts.job, timeouts.cancel) or ""


def fail_start(ready: asyncio.Future[T] | None, why: str) -> None:
    """Fail whoever waits for a process to be ready, as it was ended; do nothing once it is ready.

    Args:
        ready: the key of the process.
        why: text of the error.
    """
    if ready is not None and not ready.done():
        ready.set_exception(ConnectionError(why))
        ready.exception()  # whoever started it may have gone


def check_room(
    config: WorkerConfig,
    coordinator: str,
    request: SessionRequest,
    sessions: list[FrontSession],
    waiting: int,
) -> None:
    """Check that a coordinator may open another session.

    Args:
        config: configuration of the worker.
        coordinator: name of the coordinator.
        request: the request to open it.
        sessions: the sessions that are open.
        waiting: how many of the coordinator wait to be opened.

    Raises:
        RequestError: it may not.
    """
    limits, quotas = config.limits, config.quotas
    if len(request.parties) > limits.parties:
        raise RequestError(422, "parties", f"at most {limits.parties} parties are linked here")
    mine = [session for session in sessions if session.key[0] == coordinator]
    if len(sessions) >= limits.sessions or len(mine) >= quotas.sessions:
        raise RequestError(
            429,
            "busy",
            f"{len(mine)} sessions of {coordinator} are open here, of at most {quotas.sessions}, "
            f"and of all coordinators at most {limits.sessions}",
        )
    if waiting > quotas.sessions:
        raise RequestError(429, "busy", f"{waiting} sessions of {coordinator} wait to be opened")


def is_turn(config: WorkerConfig, coordinator: str, sessions: list[FrontSession]) -> bool:
    """Return whether a coordinator may open another session beside those that it links now.

    Args:
        config: configuration of the worker.
        coordinator: name of the coordinator.
        sessions: the sessions that are open.
    """
    mine = [session for session in sessions if session.key[0] == coordinator]
    return sum(not session.joined for session in mine) < config.quotas.opens
