"""The gate of a worker: decides what runs, by its owner's rules, and has it on record."""

from __future__ import annotations

import contextlib
import datetime
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from mplang_analysis import ProgramRequest, RunRequest
from mplang_analysis.ext import quoted

from mplang_core.ext import AdmissionError, ConfigError
from mplang_policy.approval import Approval
from mplang_policy.approvals import Approvals, Wanted, installed_version
from mplang_policy.budgets import charges, over_budget
from mplang_policy.decision import Decision, decide, decide_program
from mplang_policy.envelope import Signed
from mplang_policy.gate_config import GateConfig
from mplang_policy.ledger import Head, Ledger, LedgerError, Writing
from mplang_policy.live_rules import LiveRules
from mplang_policy.names import Names
from mplang_policy.quota import Quota, Used
from mplang_policy.record import refusal_of, shortened_fields
from mplang_policy.request import Entity, Request, told
from mplang_policy.rules import Rules
from mplang_policy.stopping import listed, paused, rest_on, set_paused, stores, withdraw, withdrawn

ALWAYS = ("end", "failures reset")  # of what has begun, or the owner does: counted, not refused
log = logging.getLogger("mplang.policy")


class _FullError(Exception):
    """What is to be recorded is more than a quota allows."""


class Gate:
    """The gate of one party. Safe for threads; its methods wait for the disk.

    Args:
        config: where rules and log are.
        party: name of the party.
        names: what its rules may name.
        versions: returns the version of a package that is installed here.
        clock: returns the time, in seconds since 1970.

    Raises:
        ConfigError: the rules are wrong, or the log cannot be used.
    """

    def __init__(
        self,
        config: GateConfig,
        party: str,
        names: Names,
        versions: Callable[[str], str | None] = installed_version,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._party = party
        self._versions = versions
        self._approvals = Approvals(config)
        self._budgets = config.budgets
        strange = [name for name in config.budgets if names.unknown("DataSet", name)]
        if strange:
            raise ConfigError(f"field 'gate.budgets': there is no data set {strange[0]!r} here")
        self._rules = LiveRules(config.policy, names)
        self._rules.current()
        # as long as whoever asks keeps what is asked, which may be large
        self._decisions = WeakKeyDictionary[ProgramRequest, dict[bool, tuple[Rules, Decision]]]()
        self._failure = ""  # why the log could not be written when that was last tried
        try:
            self._ledger = Ledger(config.log, clock)
            most = Used(config.entries, config.bytes)
            self._quota = Quota(party, most, clock, self._ledger.written)
        except LedgerError as error:
            raise ConfigError(f"field 'gate.log': {error}") from None

    def close(self) -> None:
        """Close the log."""
        self._ledger.close()

    def known_heads(self) -> tuple[Head, dict[str, Head]]:
        """Return the last entry of the log, and those of the peers', as they told them.

        Raises:
            AdmissionError: the log cannot be read.
        """
        try:
            return self._ledger.head, self._ledger.heads()
        except LedgerError as error:
            raise self._failed(error) from error

    def refuses(self) -> str:
        """Return why nothing may run here now, for the owner; empty if that is not so."""
        try:
            self._rules.current()
        except ConfigError as error:
            return str(error)
        return self._failure

    def open_approval(self, data: bytes) -> Signed | None:
        """Return an approval that a coordinator passes on; ``None`` if it is none of this party.

        Args:
            data: untrusted bytes.

        Raises:
            AdmissionError: it is no envelope of an approval.
        """
        try:
            found = self._approvals.open(data)
        except ConfigError as error:
            raise AdmissionError(str(error)) from None
        return found if found is not None and found.approval.party == self._party else None

    def decide(self, run: RunRequest) -> Decision:
        """Return what the owner's rules say to all that a run does.

        Args:
            run: the run.

        Raises:
            AdmissionError: there are no valid rules, the log was set back, or the coordinator has
                caused too much of it.
        """
        self._check_quota(run.asked.coordinator)
        rules = self._current(run.about())
        self._check_seen(run)
        decision = self._decided(rules, run.asked, approved=False)
        if not decision.needs_approval:
            return decision
        approval, remarks = self._find_approval(run, decision)
        if approval is None:
            return decision._replace(remarks=remarks)
        return self._decided(rules, run.asked, approved=True)._replace(approval=approval)

    def begin(self, run: RunRequest, decision: Decision) -> None:
        """Have a run on record before it begins.

        Args:
            run: the run.
            decision: that it is allowed.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        if not decision.allowed:
            raise ValueError("a run that is refused does not begin")
        about, approval, asked = run.about(), decision.approval, run.asked
        wanted = charges(asked.spends, asked.party)
        with self._recording(asked.coordinator) as writing:
            refused = over_budget(wanted, writing.spent(), asked.coordinator, self._budgets)
            if approval is not None and not refused:
                about["approval"] = approval.id
                refused = writing.use(approval)
            if refused:
                writing.add("refusal", shortened_fields({**about, "why": refused}))
            else:
                writing.note_heads({peer: Head(*head) for peer, head in run.heads.items()})
                for data_set, amount in wanted.items():
                    writing.spend(asked.coordinator, data_set, amount)
                if wanted:
                    about["spends"] = {name: list(amount) for name, amount in wanted.items()}
                if approval is not None and stores(asked):
                    rest_on(writing, asked.coordinator, run.run, approval.id)
                rows = writing.add_detail([told(each) for each in decision.requests])
                heads = {peer: list(head) for peer, head in run.heads.items()}
                writing.add("run", shortened_fields({**about, "rows": rows, "heads": heads}))
        if refused:
            raise AdmissionError(f"{self._party} does not run {quoted(asked.name)}: {refused}")

    def refuse(
        self, run: RunRequest, decision: Decision, paths: Sequence[Sequence[str]] = ()
    ) -> NoReturn:
        """Have on record that a run is refused.

        Args:
            run: the run.
            decision: that it is refused.
            paths: for each refusal that is told the lines by which its source comes there.

        Raises:
            AdmissionError: always; the text tells the coordinator why.
        """
        self._refuse(run.about(), decision, paths)

    def put(self, coordinator: str, session: str, name: str, size: int, mode: str) -> None:
        """Let a coordinator put a value here, if the rules permit it.

        Args:
            coordinator: who puts it.
            session: name of its session.
            name: name of the value.
            size: its size in bytes.
            mode: mode of the worker.

        Raises:
            AdmissionError: they do not.
        """
        self._check_quota(coordinator)
        about = {"coordinator": coordinator, "session": session, "value": name, "bytes": size}
        resource = Entity("Party", self._party)
        request = Request(coordinator, "put", resource, {"mode": mode})
        decision = decide(self._current(about), [request])
        if not decision.allowed:
            self._refuse(about, decision)
        self._record("put", about)

    def record(self, kind: str, about: Mapping[str, Any]) -> None:
        """Have something on record that was decided before, such as a fetch or a run's end.

        Args:
            kind: what it is.
            about: plain data.

        Raises:
            AdmissionError: it cannot be recorded, so it may not happen.
        """
        self._record(kind, about)

    def revoked(self) -> Collection[str]:
        """Return the names of the approvals that were revoked.

        Raises:
            AdmissionError: the log cannot be read.
        """
        with self._reading():
            return self._ledger.revoked()

    def withdrawn(self, coordinator: str, runs: Collection[str]) -> Collection[str]:
        """Return the runs whose results may not be loaded: stopped, or approved no more.

        Args:
            coordinator: whose runs they are.
            runs: their names; untrusted.

        Raises:
            AdmissionError: the log cannot be read.
        """
        with self._reading():
            return withdrawn(self._ledger, coordinator, runs)

    def paused(self) -> Collection[str]:
        """Return the coordinators that the owner lets run nothing.

        Raises:
            AdmissionError: the log cannot be read.
        """
        with self._reading():
            return paused(self._ledger)

    def pause(self, coordinator: str, by: str, *, paused: bool) -> None:
        """Remember that a coordinator is paused, or that it is not any more, and record it.

        Args:
            coordinator: its name.
            by: who wants it.
            paused: whether it is.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        with self._recording(coordinator, always=True) as writing:
            set_paused(writing, coordinator, paused=paused)
            fields = {"coordinator": coordinator, "by": by}
            writing.add("paused" if paused else "resumed", shortened_fields(fields))

    def stop(self, coordinator: str, runs: Collection[str], about: Mapping[str, object]) -> None:
        """Withdraw runs, and have on record that the owner has stopped them.

        Args:
            coordinator: whose runs they are.
            runs: their names.
            about: plain data.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        with self._recording(coordinator, always=True) as writing:
            withdraw(writing, coordinator, runs)
            fields = {"coordinator": coordinator, **about, "runs": listed(runs)}
            writing.add("stopped", shortened_fields(fields))

    def _record(self, kind: str, about: Mapping[str, Any]) -> None:
        with self._recording(str(about.get("coordinator")), always=kind in ALWAYS) as writing:
            writing.add(kind, shortened_fields(about))

    # -- deciding

    def _current(self, about: Mapping[str, Any]) -> Rules:
        try:
            return self._rules.current()
        except ConfigError as error:
            self._record("refusal", {**about, "why": f"there are no valid rules: {error}"})
            raise AdmissionError(
                f"{self._party} runs nothing until its owner has mended its rules"
            ) from error

    def _decided(self, rules: Rules, asked: ProgramRequest, *, approved: bool) -> Decision:
        """Return :func:`decide_program`; neither rules nor programs change, so it is kept."""
        kept = self._decisions.setdefault(asked, {})
        found = kept.get(approved)
        if found is None or found[0] is not rules:
            found = kept[approved] = rules, decide_program(rules, asked, approved=approved)
        return found[1]

    def _check_seen(self, run: RunRequest) -> None:
        """Refuse to run if a peer remembers an entry of the log that is not there any more."""
        try:
            seen = [(peer, Head(*each)) for peer, each in run.seen.items()]
            unknown = [each for each in seen if not self._ledger.has(each[1])]
        except LedgerError as error:
            raise self._failed(error) from error
        for peer, head in unknown[:1]:
            why = (
                f"{peer} remembers entry {head.number} of this party's log, {head.hash[:12]}…, "
                "which is not there: the log was set back, or that party lies"
            )
            self._record("refusal", {**run.about(), "why": why})
            raise AdmissionError(
                f"{self._party} does not run it: {peer} remembers another log of {self._party}"
            )

    def _find_approval(
        self, run: RunRequest, decision: Decision
    ) -> tuple[Approval | None, Sequence[str]]:
        """Return an approval for a run, the one that ends first; or why none counts.

        Raises:
            AdmissionError: the log cannot be read.
        """
        try:
            used, revoked = self._ledger.uses(), self._ledger.revoked()
            now = datetime.datetime.fromtimestamp(self._ledger.now(), datetime.UTC)
        except LedgerError as error:
            raise self._failed(error) from error
        asked = run.asked
        wanted = Wanted(asked, run.inputs, self._party, decision.requests, self._versions)
        found, remarks = [], []
        there = {each.approval.id: each for each in (*run.approvals, *self._approvals.all())}
        for approval, _ in there.values():
            if approval.program != asked.program and approval.name != asked.name:
                continue
            why = wanted.refusal(approval, now)
            if approval.id in revoked:
                why = "it was revoked"
            elif used.get(approval.id, 0) >= approval.uses:
                why = why or f"its {approval.uses} uses are used up"
            if why:
                remarks.append(f"approval {approval.id} does not count: {why}")
            else:
                found.append(approval)
        return min(found, key=lambda each: each.expires, default=None), remarks

    def _refuse(
        self, about: Mapping[str, Any], decision: Decision, paths: Sequence[Sequence[str]] = ()
    ) -> NoReturn:
        text = decision.text(self._party, paths)
        self._record("refusal", {**about, **refusal_of(decision), "why": text})
        raise AdmissionError(text, refusals=decision.refusals(self._party, paths))

    @contextlib.contextmanager
    def _recording(self, coordinator: str, *, always: bool = False) -> Iterator[Writing]:
        """Write into the log inside of ``with``, if it is within a coordinator's quota."""
        try:
            with self._ledger.writing() as writing:
                yield writing
                full = "" if always else self._quota.refusal(coordinator, writing.used)
                if full:
                    raise _FullError(full)  # so that nothing of it is written
                self._quota.count(coordinator, writing.used)
        except LedgerError as error:
            raise self._failed(error) from error
        except _FullError as error:
            raise self._full(coordinator, str(error)) from None
        self._failure = ""

    def _check_quota(self, coordinator: str) -> None:
        full = self._quota.refusal(coordinator)
        if full:
            raise self._full(coordinator, full)

    def _full(self, coordinator: str, full: str) -> AdmissionError:
        """Have on record that a quota is used up, once a day, and nothing that it refuses."""
        if self._quota.is_first(coordinator):
            why = f"(more of today are not on record) {full}"
            with self._recording(coordinator, always=True) as writing:
                writing.add("refusal", shortened_fields({"coordinator": coordinator, "why": why}))
        return AdmissionError(full)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Read the log inside of ``with``."""
        try:
            yield
        except LedgerError as error:
            raise self._failed(error) from error

    def _failed(self, error: LedgerError) -> AdmissionError:
        self._failure = str(error)
        log.error("nothing runs: %s", error)
        return AdmissionError(f"{self._party} runs nothing until its owner has mended its log")
