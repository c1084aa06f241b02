"""The gate, as the front uses it: what runs, what is put and fetched, and what is on record.

The rules of the owner are asked about what a checker tells of a program, which has run no kernel of
its coordinator; an engine reads and runs nothing before.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

import msgspec
from mplang_analysis import DataQuestion, Label, ProgramRequest, PublicInput, RunRequest, Source

from mplang_core import MPLangError
from mplang_core.ext import AdmissionError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.base.section_protocols import Decision, Gate
from mplang_worker.base.sections import GATE
from mplang_worker.front.engine_process import EngineProcess
from mplang_worker.front.gate_runs import Fields, Pending, Reply
from mplang_worker.front.known_programs import KnownPrograms
from mplang_worker.front.log_quota import LogQuota
from mplang_worker.front.process_log import ProcessLog
from mplang_worker.front.run_ends import hear_head, record_end
from mplang_worker.front.section_reload import prepare_section
from mplang_worker.front.sections import provider_of
from mplang_worker.front.session import NOTHING, FrontSession, Permitted
from mplang_worker.front.storage import FrontStorage
from mplang_worker.front.threads import in_thread
from mplang_worker.front.warm_process import WarmProcess
from mplang_worker.process.session_argument import SessionArgument
from mplang_worker.wire import ipc
from mplang_worker.wire.opening import Logs, Opening, shared_name
from mplang_worker.wire.run_facts import ProgramFacts, RunFacts

MAX_FACTS = 16 << 20  # bytes of what a checker tells of a program
MAX_APPROVALS = 64  # that a coordinator passes on in a session
MAX_REFUSALS = 100  # of a session that are on record, beside those of runs
REFUSED = (400, 403, 422)  # of what is forged, not permitted, or no program
TOLD = (MPLangError, RequestError)
ENDED = "its session was ended meanwhile"
WITHDRAWN = (
    "the run that stored it was stopped by an owner, or rests on an approval that was revoked, or "
    "on what such a run has stored; remove it, and make it anew"
)
log = logging.getLogger("mplang.http.front")


class FrontGate:
    """The gate of a worker, for the sessions of coordinators.

    Args:
        config: configuration of the worker.
        storage: its storage.
        quota: quota of the worker's own log.

    Raises:
        ConfigError: the owner's rules are wrong, or the log cannot be used.
    """

    def __init__(self, config: WorkerConfig, storage: FrontStorage, quota: LogQuota) -> None:
        self._config, self._quota = config, quota
        self._storage = storage
        self._known = KnownPrograms()
        self._gate = provider_of(config, GATE, Gate)
        if self._gate is None and config.data and config.mode == "production":
            log.warning(
                "%s has data sets and no gate: their readers may run any program on them, and "
                "nothing is logged; mplang policy init writes rules to begin with",
                config.name,
            )

    def prepare(self, after: WorkerConfig) -> Callable[[], None]:
        """Return what makes the gate of a changed configuration count; see `LiveConfig`."""
        return prepare_section(self._gate, GATE, self._config, after)

    async def note_configuration(self, after: WorkerConfig) -> None:
        """Record a changed configuration, before it counts.

        Args:
            after: the configuration.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        if self._gate is not None:
            fields = after.model_dump(mode="json")
            await in_thread(self._gate.note_configuration, fields)

    @property
    def is_there(self) -> bool:
        """Whether the worker has a gate; else everything may run, and nothing is on record."""
        return self._gate is not None

    @property
    def provider(self) -> Gate | None:
        """The gate itself; ``None`` if there is none."""
        return self._gate

    @property
    def public_key(self) -> str:
        """The public key of the gate, in hex; empty without one."""
        return "" if self._gate is None else self._gate.public_key

    @property
    def state(self) -> str:
        """``open``, ``shut`` while nothing may run here, or ``none``."""
        if self._gate is None:
            return "none"
        return "shut" if self._gate.refuses() else "open"

    async def alarms(self, coordinator: str | None = None) -> list[dict[str, str]]:
        """Return which logs were set back, as a coordinator may know it.

        Args:
            coordinator: its name; those of others, and of their runs, are left out.
        """
        if self._gate is None:
            return []
        try:
            alarms = await in_thread(self._gate.alarms)
        except AdmissionError:  # which is logged, and nothing runs
            return []
        mine = "\0" if coordinator is None else shared_name(coordinator, "")[:-1]
        known = {coordinator, *(self._config.peers or ())}
        return [
            {
                "log": log,
                "party": party if log == "peer" or party in known else "another coordinator",
                "run": run if run.startswith(mine) else "",
            }
            for log, party, run in alarms
        ]

    def note(self, subject: str, about: Fields) -> None:
        """Record what has changed of the worker, if it has; waits for the disk.

        Args:
            subject: what it is about, such as ``certificates``.
            about: plain data.
        """
        if self._gate is not None:
            with contextlib.suppress(AdmissionError):  # which is logged, and refuses what comes
                self._gate.note(subject, about)

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
        argument = SessionArgument(
            config=config.for_engines,
            coordinator=session.key[0],
            session=session.key[1],
            rank=session.request.rank,
            parties=session.parties,
            cores=session.cores,
        )
        mine, theirs = ipc.channel()
        with theirs:
            try:
                child = await warm.fork({"checker": argument}, theirs.fileno())
            except BaseException:
                mine.close()
                raise
        session.checker = EngineProcess(
            child,
            mine,
            f"the checker of worker {config.name}",
            ProcessLog.of(session.key, config, self._quota),
            MAX_FACTS,
            _ignore,
            on_end,
        )

    async def program(self, session: FrontSession, body: ipc.Body, name: str) -> None:
        """Send a program to the checker of a session.

        Raises:
            RequestError: it is refused.
        """
        if session.checker is not None:
            await session.checker.call("program", body, name=name)

    async def approve(self, session: FrontSession, data: bytes) -> bool:
        """Take an approval that a coordinator passes on; return whether it is one that counts.

        Args:
            session: the session.
            data: untrusted bytes.

        Raises:
            AdmissionError: it is not an envelope of an approval.
            RequestError: the session has too many.
        """
        if self._gate is None:
            return False
        found = await in_thread(self._gate.open_approval, data, session.key[0])
        if found is None:
            return False
        if len(session.approvals) >= MAX_APPROVALS and found.id not in session.approvals:
            raise RequestError(429, "busy", f"a session has at most {MAX_APPROVALS} approvals")
        session.approvals[found.id] = found
        return True

    async def submit(self, session: FrontSession, run: str, body: ipc.Body) -> Reply:
        """Send a run to the checker of a session, before its engine gets it.

        Returns:
            As ``logs`` what the peers are told that this party remembers of their logs; as
            ``is_new`` whether the run was not known.

        Raises:
            RequestError: it is malformed.
        """
        if self._gate is None or session.checker is None:
            return {}
        asked = await session.checker.call("submit", body, run=run)
        if asked["is_new"]:
            session.gate_runs.asked[run] = {key: asked[key] for key in ("program", "name")}
        seen = await in_thread(self._gate.seen, session.parties)
        logs = msgspec.to_builtins(Logs(gated=True, seen=dict(seen)))
        return {"logs": logs, "is_new": asked["is_new"]}

    async def take_back(self, session: FrontSession, run: str, submitted: Fields) -> None:
        """Remove a run from the checker of a session, as its engine has not taken it.

        Args:
            session: the session.
            run: name of the run.
            submitted: what :meth:`submit` returned.
        """
        session.gate_runs.asked.pop(run, None)
        if session.checker is not None and submitted.get("is_new") is True:
            with contextlib.suppress(RequestError):
                await session.checker.call("take_back", run=run)

    async def begin(self, session: FrontSession, args: Fields) -> Reply:
        """Begin a run, or wait for the gates of the others if it uses something up.

        Args:
            session: its session.
            args: what the engine says: the run, and the openings of the parties; untrusted.

        Returns:
            As ``refused`` why it does not begin, or nothing; as ``head`` what the peers are told
            once it has begun.
        """
        assert self._gate is not None
        run, session.permitted = str(args["run"]), NOTHING.after(session.permitted)
        try:
            asking = await self._asking(session, run, args)
            if asking is None:  # it does not begin here
                return {"refused": ""}
        except (MPLangError, RequestError, LookupError, TypeError, ValueError) as error:
            why = getattr(error, "text", str(error)) if isinstance(error, TOLD) else "it is unclear"
            if session.closed:  # which has ended its checker
                why = ENDED
            log.warning("%s may not run %s: %s", session.key[0], run, error)
            if args.get("whole") is True:  # else another party is to blame
                session.jobs.judge(run, AdmissionError(why))
            return await self._unclear(session, run, why)
        asked = session.gate_runs.asked.pop(run, None)  # what follows has it on record
        try:
            decision = await in_thread(self._gate.decide, asking)
            if not decision.allowed:
                paths = await self._paths(session, run, decision)
                await in_thread(self._gate.refuse, asking, decision, paths)
        except (AdmissionError, RequestError) as error:
            return self._refused(session, run, error)
        session.gate_runs.pending = {run: Pending(asking, decision)}
        if asked is not None:
            session.gate_runs.asked[run] = asked
        if not self._gate.uses_up(asking, decision):
            return await self.commit(session, run)
        if session.over:
            await self.end_all(session)
        return {"refused": ""}

    async def commit(self, session: FrontSession, run: str) -> Reply:
        """Begin a run that the gate permits; see :meth:`begin`.

        Args:
            session: its session.
            run: name of the run; untrusted.
        """
        pending = session.gate_runs.pending.pop(run, None)
        if self._gate is None or pending is None:
            return {"refused": "it was not permitted"}
        if session.closed:
            return await self._unclear(session, run, ENDED)
        session.gate_runs.asked.pop(run, None)
        try:
            head, receipt = await in_thread(self._gate.begin, *pending)
        except AdmissionError as error:
            return self._refused(session, run, error)
        session.begun.add(run)
        session.rests |= {pending.decision.approval_id} - {""}
        session.jobs.give_receipt(run, receipt, pending.decision.approval_id)
        permitted = permitted_of(pending.asking.asked, session.request.rank, run)
        if permitted.leaves:
            session.loaded.difference_update(pending.asking.loaded)
            session.loaded.add(run)
        if session.over:  # it ended while this was written
            await self.end_all(session)
        if not session.closed:  # else what it would store is not among what was withdrawn
            session.permitted = permitted.after(session.permitted)
        if (job := session.jobs.get(run)) is not None and job.settled:  # says its engine meanwhile
            self.end_questions(session, run)
        return {"refused": "", "head": head}

    def _refused(
        self, session: FrontSession, run: str, error: AdmissionError | RequestError
    ) -> Reply:
        """Return the answer to an engine whose run is refused, as is on record."""
        log.warning("%s may not run %s: %s", session.key[0], run, error)
        if isinstance(error, AdmissionError):
            refusal = error
        else:
            refusal = AdmissionError(error.text, code=error.explain)
        session.jobs.judge(run, refusal)
        return {"refused": str(refusal)}

    async def _unclear(self, session: FrontSession, run: str, why: str) -> Reply:
        """Record that a run is refused that rules cannot be asked about.

        Where its session was ended nobody has broken a rule: it was asked for, and has not begun.
        """
        if session.closed:
            await self.end(session, {"run": run, "error": {"text": why}})
            return {"refused": why}
        session.gate_runs.asked.pop(run, None)
        try:
            await self._record("refusal", session.key[0], session, {"run": run, "why": why})
        except AdmissionError as error:
            return {"refused": str(error)}
        return {"refused": why}

    async def _asking(self, session: FrontSession, run: str, args: Fields) -> RunRequest | None:
        """Return what a run would do, as its checker tells; ``None`` if it does not begin here."""
        if session.checker is None:
            raise AdmissionError("there is nothing that could check it")
        openings = [(int(rank), bytes(memoryview(data))) for rank, data in args["openings"]]
        told = {"run": run, "openings": openings}
        if args["whole"] is not True:
            await session.checker.call("follow", whole=False, **told)
            return None
        found = await session.checker.fetch("follow", whole=True, **told)
        mine = dict(openings)[session.request.rank]
        await self._storage.check_told(session, Opening.read(mine))
        facts = RunFacts.read(found)
        asked = await in_thread(self._asked, session, facts.program)
        await self._check_loads(session, asked)
        inputs = tuple(PublicInput(*each) for each in facts.inputs)
        return RunRequest(
            session=session.link,
            run=run,
            asked=asked,
            inputs=inputs,
            given=facts.given,
            shared=shared_name(*session.key, run),
            seen=_seen(session, openings),
            receipt=session.receipt,
            approvals=tuple(session.approvals.values()),
            loaded=tuple(session.loaded),
            approved=tuple(session.rests),
        )

    async def _paths(
        self, session: FrontSession, run: str, decision: Decision
    ) -> Sequence[Sequence[str]]:
        """Return the lines by which what is refused comes to where it would leave."""
        if session.checker is None:
            return ()
        found = await session.checker.call("paths", run=run, rows=list(decision.sources()))
        return [[str(line) for line in path] for path in found]

    def _asked(self, session: FrontSession, told: bytes) -> ProgramRequest:
        """Return what a program does; the same object for the same facts."""
        key = (session.key[0], *session.parties, hashlib.sha256(told).digest())
        known = self._known.get(key)
        if known is not None:
            return known
        facts, rank = ProgramFacts.read(told), session.request.rank
        found = ProgramRequest(
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
            texts=facts.texts,
            storage=facts.storage,
            spends=facts.spends,
            remarks=facts.remarks,
            questions=facts.questions.get(rank, ()),
        )
        return self._known.add(key, found, len(told))

    def may_ask(self, session: FrontSession, question: DataQuestion) -> bool:
        """Return whether the program of the run that has begun asks this about data sets."""
        if session.closed or session.over:
            return False
        return self._gate is None or question.digest in session.permitted.questions

    def end_questions(self, session: FrontSession, run: str) -> None:
        """Permit no more questions about data sets to a run, none of whose ops runs any more."""
        if session.permitted.run == run:
            asked = session.permitted.questions
            session.permitted = session.permitted._replace(questions=frozenset(), before=asked)

    def may_store(self, session: FrontSession, method: str, args: Fields) -> bool:
        """Return whether the run that has begun may do something in storage.

        Args:
            session: its session.
            method: what the engine asks for; see :meth:`FrontStorage.answer`.
            args: its arguments; untrusted.
        """
        if self._gate is None or method in ("held", "done"):
            return True
        permitted, name = session.permitted, str(args.get("name"))
        if method == "stage":
            entry = args.get("entry")
            name = str(entry.get("name")) if isinstance(entry, dict) else ""
            if not permitted.labels.get(name, frozenset()) <= _sources_of(entry, session):
                return False
            if not isinstance(entry, dict) or entry.get("run") != permitted.run:
                return False
        action = {"open": "load", "remove": "remove"}.get(method, "store")
        return (action, name) in permitted.storage

    async def load(self, session: FrontSession, source: str) -> bool:
        """Return whether a session may load what a run has stored; record that before it does.

        Args:
            session: the session.
            source: name of the run.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        if self._gate is None:
            return True
        coordinator, permitted, lineage = session.key[0], session.permitted, self._gate.lineage
        if await in_thread(lineage.withdrawn, coordinator, [source]):
            return False
        if permitted.leaves and source not in session.loaded:
            await in_thread(lineage.rest_on, coordinator, permitted.run, source)
        session.loaded.add(source)
        return True

    async def _check_loads(self, session: FrontSession, asked: ProgramRequest) -> None:
        """Refuse to load what a run has stored that was stopped, or is approved no more.

        Raises:
            AdmissionError: the program loads such a value here.
        """
        mine = session.request.rank
        names = [name for what, name, at in asked.storage if what == "load" and mine in at]
        entries = await self._storage.told(session.key[0]) if names else {}
        runs = {str(entries[name]["run"]): name for name in names if name in entries}
        if self._gate is None or not runs:
            return
        for run in await in_thread(self._gate.lineage.withdrawn, session.key[0], list(runs)):
            raise AdmissionError(f"{self._config.name} does not load {runs[run]!r}: {WITHDRAWN}")

    def forget(self, session: FrontSession) -> None:
        """End the checker of a session."""
        if session.checker is not None:
            session.checker.kill()

    async def end_all(self, session: FrontSession) -> None:
        """Record that the runs of a session which have not ended end with it."""
        session.over = True
        for run in [*session.begun, *session.gate_runs.asked]:
            await self.end(session, {"run": run, "state": "ended with its session"})

    # -- values, and the end of runs

    async def put(self, coordinator: str, session: FrontSession, name: str, body: ipc.Body) -> None:
        """Accept a value that a coordinator puts, if the rules permit it.

        Raises:
            AdmissionError: they do not.
        """
        if self._gate is not None:
            size = os.fstat(body).st_size if isinstance(body, int) else len(body or b"")
            mode = self._config.mode
            await in_thread(self._gate.put, coordinator, session.link, name, size, mode)

    async def fetch(self, coordinator: str, session: FrontSession, name: str, size: int) -> None:
        """Record a fetch, before the value is sent.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        await self._record("fetch", coordinator, session, {"value": name, "bytes": size})

    async def refused(
        self, session: FrontSession, about: Mapping[str, str], error: RequestError
    ) -> None:
        """Record that a worker refuses what rules are not asked about.

        Args:
            session: the session.
            about: what was asked for, as a coordinator calls it.
            error: the refusal.
        """
        if self._gate is None or error.status not in REFUSED:
            return
        session.refusals += 1
        if session.refusals > MAX_REFUSALS:
            return
        last = "(more of this session are not on record) "
        why = (last if session.refusals == MAX_REFUSALS else "") + error.text
        with contextlib.suppress(AdmissionError):  # which is logged, and refuses what comes
            await self._record("refusal", session.key[0], session, {**about, "why": why})

    @contextlib.asynccontextmanager
    async def recorded(
        self, session: FrontSession, about: Mapping[str, str]
    ) -> AsyncGenerator[None, None]:
        """Record what is refused within, as :meth:`refused` does."""
        try:
            yield
        except RequestError as error:
            await self.refused(session, about, error)
            raise

    async def end(self, session: FrontSession, status: Fields) -> None:
        """Record the end of a run, as its engine tells it; see :func:`record_end`."""
        if self._gate is not None:
            await record_end(self._gate, session, status)

    async def hear(self, session: FrontSession, run: str, peer: str, head: bytes) -> None:
        """Keep what the gate of a peer has signed of its log; see :func:`hear_head`."""
        if self._gate is not None:
            await hear_head(self._gate, session, run, peer, head)

    async def _record(
        self, kind: str, coordinator: str, session: FrontSession, about: Fields
    ) -> None:
        if self._gate is not None:
            fields = {"coordinator": coordinator, "session": session.link, **about}
            await in_thread(self._gate.record, kind, fields)


def permitted_of(asked: ProgramRequest, rank: int, run: str) -> Permitted:
    """Return what the engine of a run may ask for.

    Args:
        asked: what the run does.
        rank: this party.
        run: name of the run.
    """
    return Permitted(
        run=run,
        questions=frozenset(asked.questions),
        storage=frozenset((what, name) for what, name, at in asked.storage if rank in at),
        labels={name: frozenset(at.get(rank, ())) for name, at in asked.stores.items()},
        leaves=any(what == "store" and at for what, _, at in asked.storage),
        states={},
    )


def _sources_of(entry: Any, session: FrontSession) -> frozenset[Source]:
    """Return what a value is made of, as its engine tells; nothing if that is malformed."""
    try:
        place = list(entry["members"]).index(session.request.rank)
        return Label.decode(entry["labels"][place]).sources
    except (MPLangError, LookupError, TypeError, ValueError):
        return frozenset()


def _ignore(message: Reply, file: int | None) -> None:
    """Take no events: a checker has none."""
    if file is not None:
        os.close(file)


def _seen(session: FrontSession, openings: list[tuple[int, bytes]]) -> dict[str, str]:
    """Return what the peers remember of this party's log, by their names."""
    mine, seen = session.parties[session.request.rank], {}
    for rank, data in openings:
        remembered = Opening.read(data).logs.seen.get(mine)
        if remembered is not None and rank != session.request.rank:
            seen[session.parties[rank]] = remembered
    return seen
