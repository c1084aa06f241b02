"""The gate, as the front uses it: what runs, what is put and fetched, and what is on record.

The rules of the owner are asked about what a checker tells of a program, which has run no kernel of
its coordinator; an engine reads and runs nothing before.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mplang_core import MPLangError
from mplang_core.ext import AdmissionError
from mplang_http import ipc
from mplang_http.checker import CheckerArgument
from mplang_http.config import WorkerConfig, installed_plugins
from mplang_http.engine_process import EngineProcess
from mplang_http.errors import RequestError
from mplang_http.front_session import FrontSession
from mplang_http.opening import Logs, Opening
from mplang_http.process_log import ProcessLog
from mplang_http.run_facts import RunFacts
from mplang_http.stored_value import PUBLIC_NAME
from mplang_http.threads import in_thread
from mplang_http.warm_process import WarmProcess

if TYPE_CHECKING:
    from mplang_policy import Asked, Decision, Gate, Head

MAX_FACTS = 256 << 20  # bytes of what a checker tells of a program
MAX_KNOWN = 64  # programs of all coordinators whose facts are kept
log = logging.getLogger("mplang.http.front")


class FrontGate:
    """The gate of a worker, for the sessions of coordinators.

    Args:
        config: configuration of the worker.

    Raises:
        ConfigError: the owner's rules are wrong, or the log cannot be used.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._gate: Gate | None = None
        self._known: OrderedDict[tuple[Any, ...], Asked] = OrderedDict()
        self._lock = threading.Lock()
        if config.gate is not None:
            from mplang_policy import Gate, GateConfig, Names

            names = Names.of(config.model_dump(mode="json"))
            gate = GateConfig(**config.gate)
            self._gate = Gate(gate, config.name, names, installed_plugins())

    @property
    def is_there(self) -> bool:
        """Whether the worker has a gate; else everything may run, and nothing is on record."""
        return self._gate is not None

    @property
    def state(self) -> str:
        """``open``, ``shut`` while nothing may run here, or ``none``."""
        if self._gate is None:
            return "none"
        return "shut" if self._gate.refuses() else "open"

    def close(self) -> None:
        """Close the log."""
        if self._gate is not None:
            self._gate.close()

    # -- sessions

    async def open(
        self, session: FrontSession, warm: WarmProcess, on_end: Callable[[], object]
    ) -> None:
        """Start the checker of a session.

        Args:
            session: the session.
            warm: the process that forks it.
            on_end: called when it ends.

        Raises:
            OSError: there is no room for it.
        """
        if self._gate is None:
            return
        config = self._config
        argument = CheckerArgument(
            config=config.engine.model_dump(mode="json"),
            session=session.key[1],
            rank=session.request.rank,
            parties=session.parties,
        )
        mine, theirs = ipc.channel()
        with theirs:
            try:
                given = {"checker": msgspec.to_builtins(argument)}
                child = await warm.fork(given, theirs.fileno())
            except BaseException:
                mine.close()
                raise
        session.checker = EngineProcess(
            child,
            mine,
            f"the checker of worker {config.name}",
            ProcessLog(config.name, session.key[1], as_json=config.log_format == "json"),
            MAX_FACTS,
            _ignore,
            on_end,
        )

    async def program(self, session: FrontSession, body: ipc.Body, name: str) -> None:
        """Have the checker of a session know a program.

        Raises:
            RequestError: it is refused.
        """
        if session.checker is not None:
            await session.checker.call("program", body, name=name)

    async def expect(self, session: FrontSession, run: str, body: ipc.Body) -> Mapping[str, Any]:
        """Have the checker of a session know a run, before its engine does.

        Returns:
            What the peers are told of this party's log, and of what it knows of theirs.

        Raises:
            RequestError: it is malformed.
        """
        if self._gate is None or session.checker is None:
            return {}
        await session.checker.call("expect", body, run=run)
        head, seen = await in_thread(self._gate.known_heads)
        told = {name: (each.number, each.hash) for name, each in seen.items()}
        return {"logs": msgspec.to_builtins(Logs((head.number, head.hash), told))}

    async def begin(self, session: FrontSession, args: Mapping[str, Any]) -> str:
        """Have a run begin; return why it is refused, or nothing.

        Args:
            session: its session.
            args: what the engine says: the run, and the openings of the parties; untrusted.
        """
        from mplang_policy import Run

        assert self._gate is not None
        assert session.checker is not None
        run, whole = str(args["run"]), args["whole"] is True
        session.permitted = frozenset()
        try:
            openings = [(int(rank), bytes(data)) for rank, data in args["openings"]]
            told = await session.checker.fetch("follow", run=run, openings=openings, whole=whole)
            if not whole:
                return ""
            asked = await in_thread(self._asked, session, told)
            heads, seen = _logs(session, openings)
            asking = Run(session.link, run, asked, heads, seen)
            decision = await in_thread(self._gate.decide, asking)
            if not decision.allowed:
                paths = await self._paths(session, run, decision)
                await in_thread(self._gate.refuse, asking, decision, paths)
            await in_thread(self._gate.begin, asking, decision)
        except (AdmissionError, RequestError) as error:
            log.warning("%s may not run %s: %s", session.key[0], run, error)
            return str(error) if isinstance(error, AdmissionError) else error.text
        except (MPLangError, LookupError, TypeError, ValueError) as error:
            log.error("what an engine asks cannot be decided: %s", type(error).__name__)
            return "it cannot be decided here"
        session.permitted = frozenset(asked.reads)
        return ""

    async def _paths(
        self, session: FrontSession, run: str, decision: Decision
    ) -> Sequence[Sequence[str]]:
        """Return the lines by which what is refused comes to where it would leave."""
        rows: list[tuple[str, int, str] | None] = []
        for each in decision.told:
            row, source = each.request.row, each.source
            if row is None or source is None:
                rows.append(None)
            else:
                rows.append((row.line, source.party, source.name))
        assert session.checker is not None
        found = await session.checker.call("paths", run=run, rows=rows)
        return [[str(line) for line in path] for path in found]

    def _asked(self, session: FrontSession, told: memoryview) -> Asked:
        """Return what a run would do; the same object for the same facts."""
        from mplang_policy import Asked, PublicInput

        key = (session.key[0], *session.parties, hashlib.sha256(told).digest())
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
                return found
        facts, rank = RunFacts.read(told), session.request.rank
        found = Asked(
            coordinator=session.key[0],
            party=rank,
            names=session.parties,
            program=facts.program,
            name=facts.name,
            rows=facts.all_rows(),
            reads=facts.reads.get(rank, ()),
            stores=facts.stores,
            forms=facts.forms,
            mode=self._config.mode,
            shown=facts.shown,
            inputs=tuple(PublicInput(*each) for each in facts.inputs),
        )
        with self._lock:
            self._known[key] = found
            while len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        return found

    def may_read(self, session: FrontSession, names: frozenset[str]) -> bool:
        """Return whether the run that has begun may read columns of data sets."""
        return self._gate is None or names <= session.permitted

    def forget(self, session: FrontSession) -> None:
        """End the checker of a session."""
        if session.checker is not None:
            session.checker.kill()

    # -- values, and the end of runs

    async def put(self, coordinator: str, session: FrontSession, name: str, body: ipc.Body) -> None:
        """Let a coordinator put a value, if the rules permit it; one of a program is public.

        Raises:
            AdmissionError: they do not.
        """
        if self._gate is not None and not name.startswith(PUBLIC_NAME):
            size = os.fstat(body).st_size if isinstance(body, int) else len(body or b"")
            mode = self._config.mode
            await in_thread(self._gate.put, coordinator, session.link, name, size, mode)

    async def fetch(self, coordinator: str, session: FrontSession, name: str, size: int) -> None:
        """Have a fetch on record, before the value is sent.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        await self._record("fetch", coordinator, session, {"value": name, "bytes": size})

    async def end(self, session: FrontSession, status: Mapping[str, Any]) -> None:
        """Have the end of a run on record, as its engine tells it."""
        session.permitted = frozenset()
        links = status.get("links")
        sent = {
            session.parties[int(rank)]: int(link["sent"])
            for rank, link in (links.items() if isinstance(links, dict) else ())
        }
        about = {"run": str(status["run"]), "state": str(status["state"]), "sent": sent}
        with contextlib.suppress(AdmissionError):  # which is logged, and refuses what comes
            await self._record("end", session.key[0], session, about)

    async def _record(
        self, kind: str, coordinator: str, session: FrontSession, about: Mapping[str, Any]
    ) -> None:
        if self._gate is not None:
            fields = {"coordinator": coordinator, "session": session.link, **about}
            await in_thread(self._gate.record, kind, fields)


def _ignore(message: dict[str, Any], file: int | None) -> None:
    """Take no events: a checker has none."""
    if file is not None:
        os.close(file)


def _logs(
    session: FrontSession, openings: list[tuple[int, bytes]]
) -> tuple[dict[str, Head], dict[str, Head]]:
    """Return the heads of the peers' logs, and this party's as they know it, by their names."""
    from mplang_policy import Head

    heads, seen, mine = {}, {}, session.parties[session.request.rank]
    for rank, data in openings:
        logs = Opening.read(data).logs
        name = session.parties[rank]
        if name == mine:
            continue
        if logs.head is not None:
            heads[name] = Head(*logs.head)
        if mine in logs.seen:
            seen[name] = Head(*logs.seen[mine])
    return heads, seen
