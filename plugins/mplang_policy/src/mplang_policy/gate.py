"""The gate of a worker: decides what runs, by its owner's rules, and has it on record."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn
from weakref import WeakKeyDictionary

from mplang_analysis import ProgramRequest, RunRequest

from mplang_core.ext import AdmissionError, ConfigError
from mplang_policy.alarms import OWN, Alarm, add_alarm, clear_alarms, read_alarms
from mplang_policy.approval import Approval
from mplang_policy.approvals import Approvals, Wanted
from mplang_policy.approve_command import approving
from mplang_policy.budgets import charges, over_budget
from mplang_policy.decision import Decision, decide_program, decide_put
from mplang_policy.envelope import Signed
from mplang_policy.expiry import expire
from mplang_policy.gate_config import GateConfig
from mplang_policy.gate_log import GateLog
from mplang_policy.gate_refusals import other_log, over, shut, too_many_keys, used_up
from mplang_policy.ledger import Body, LedgerError, Writing
from mplang_policy.lineage import StoredLineage
from mplang_policy.live_rules import LiveRules
from mplang_policy.log_room import shortage
from mplang_policy.names import Names
from mplang_policy.owner_view import OwnerView, RulesInForce
from mplang_policy.package_versions import INSTALLED, Packages
from mplang_policy.quota import Used
from mplang_policy.record import refusal_of, shortened_fields
from mplang_policy.request import Entity, Request, told
from mplang_policy.rules import Rules
from mplang_policy.signed_heads import GateKey, SignedHead
from mplang_policy.standing import Standing
from mplang_policy.state import record_approval, record_change, record_configuration, record_rules
from mplang_policy.stopping import Stops
from mplang_policy.tried import over_tried, tries
from mplang_policy.witness import Witness


class Gate:
    """The gate of one party. Safe for threads; its methods wait for the disk.

    Args:
        config: where rules and log are.
        party: name of the party.
        names: what its rules may name.
        packages: what is installed here.
        clock: returns the time, in seconds since 1970.

    Raises:
        ConfigError: the rules are wrong, or the log cannot be used.
    """

    def __init__(
        self,
        config: GateConfig,
        party: str,
        names: Names,
        packages: Packages | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._party, self._path = party, config.log
        self._packages = packages or INSTALLED
        self._approvals = Approvals(config)
        self._budgets, self._retention = config.budgets, config.retention
        self._tried = config.tried
        self._rules, self._names = _live_rules(config, names), names
        # as long as whoever asks keeps what is asked, which may be large
        self._decisions = WeakKeyDictionary[ProgramRequest, dict[bool, tuple[Rules, Decision]]]()
        self._started = False
        self._noted: set[tuple[str, tuple[str, ...]]] = set()  # approvals, and who has signed them
        try:
            self._log = GateLog(party, config.log, Used(config.entries, config.bytes), clock)
            self._ledger = self._log.ledger
            self._key = GateKey(config.log)
            self._witness = Witness(party, self._ledger, self._key)
        except LedgerError as error:
            raise ConfigError(f"field 'gate.log': {error}", code="C013") from None
        self._lineage = StoredLineage(self._log)
        self._stops = Stops(self._log)
        self._owner = OwnerView(self._log, self._packages, self._configured)

    def reload(
        self, fields: Mapping[str, object], worker: Mapping[str, object]
    ) -> Callable[[], None]:
        """Return what makes other budgets, quotas, approvers, rules and names count.

        Args:
            fields: those of a :class:`GateConfig`, with absolute paths.
            worker: the worker's configuration, as plain data; tells what rules may name.

        Raises:
            ConfigError: the rules or a key is wrong, or the log is another one.
        """
        config = GateConfig.model_validate(fields)
        if config.log != self._path:
            raise ConfigError(
                "field 'gate.log': a change of the log takes effect after a restart", code="C013"
            )
        names, approvals = Names.of(worker), Approvals(config)
        rules = _live_rules(config, names)

        def commit() -> None:
            self._approvals, self._rules, self._budgets = approvals, rules, config.budgets
            self._tried = config.tried
            self._names = names
            self._log.set_limit(Used(config.entries, config.bytes))
            self._retention = config.retention

        return commit

    def start(self, fields: Body) -> None:
        """Record that the worker starts, and what of its owner's is another than before.

        Args:
            fields: the worker's configuration, as plain data.

        Raises:
            ConfigError: it cannot be recorded.
        """
        version, rules = self._packages.version("mplang-core"), self._rules.current()
        try:
            with self._ledger.writing() as writing:
                writing.add("start", {"version": version, "key": self._key.public})
                record_configuration(writing, fields)
                record_rules(writing, rules)
            self._note_approvals(self._approvals.read())
        except LedgerError as error:
            raise ConfigError(f"field 'gate.log': {error}", code="C013") from None
        self._started = True

    def note_configuration(self, fields: Body) -> None:
        """Record that the configuration of the worker changes, before it counts.

        Args:
            fields: the worker's configuration, as plain data.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        with self._log.using(), self._ledger.writing() as writing:
            record_configuration(writing, fields)

    def note(self, subject: str, about: Body) -> None:
        """Record what has changed of the worker, if it has since the last such entry.

        Args:
            subject: what it is about, such as ``certificates``.
            about: plain data.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        with self._log.using(), self._ledger.writing() as writing:
            record_change(writing, subject, subject, about)

    def expire(self, now: float, note: Callable[[Body], None]) -> None:
        """Delete what has expired of the log, which records that itself.

        Args:
            now: the time, in seconds since 1970.
            note: records what else expires.

        Raises:
            LedgerError: the log cannot be written, or was changed.
        """
        expire(self._ledger, self._retention, now)

    def close(self) -> None:
        """Close the log, which says that the worker stops."""
        if self._started:
            with contextlib.suppress(LedgerError):
                self._ledger.add("stop", {})
        self._ledger.close()

    def _configured(self) -> RulesInForce:
        return RulesInForce(self._approvals, self._rules.current, self._names)

    def _note_approvals(self, signed: Sequence[Signed], coordinator: str = "") -> None:
        """Record which approvals have come, or have other signatures than before."""
        new = [each for each in signed if (each.id, each.signers) not in self._noted]
        if not new:
            return
        with self._ledger.writing() as writing:
            for each in new:
                record_approval(writing, each.approval, each.signers, coordinator)
        self._noted |= {(each.id, each.signers) for each in new}

    @property
    def lineage(self) -> StoredLineage:
        """Lineage of stored values."""
        return self._lineage

    @property
    def stops(self) -> Stops:
        """Stops by the owner."""
        return self._stops

    @property
    def owner(self) -> OwnerView:
        """Interface for the owner while the worker runs."""
        return self._owner

    @property
    def public_key(self) -> str:
        """The public key by which it signs what it tells of its log, in hex."""
        return self._key.public

    def seen(self, peers: Sequence[str]) -> dict[str, str]:
        """Return by its name what is remembered of each peer's log, as the peer has sealed it.

        Args:
            peers: names of the peers.

        Raises:
            AdmissionError: the log cannot be read.
        """
        with self._log.using():
            return self._witness.seen(peers)

    def alarms(self) -> Sequence[Alarm]:
        """Return which logs were set back, a peer's or this party's; not yet cleared up.

        Raises:
            AdmissionError: the log cannot be read.
        """
        with self._log.using():
            return self._ledger.reading(read_alarms)

    def refuses(self) -> str:
        """Return why nothing may run here now, for the owner; empty if that is not so."""
        try:
            self._rules.current()
        except ConfigError as error:
            return str(error)
        return self._log.failure

    def missing(self) -> dict[str, str]:
        """Return why nothing may run here, or soon, as the disk of the log is full."""
        why = self.refuses() or shortage(self._path)
        return {"gate": why} if why else {}

    def open_approval(self, data: bytes, coordinator: str = "") -> Signed | None:
        """Return an approval that a coordinator passes on; ``None`` if it is none of this party.

        Args:
            data: untrusted bytes.
            coordinator: who passes it on.

        Raises:
            AdmissionError: it is not an envelope of an approval, or cannot be recorded.
        """
        try:
            found = self._approvals.open(data)
        except ConfigError as error:
            raise AdmissionError(str(error), code=error.code) from None
        if found is None or found.approval.party != self._party:
            return None
        with self._log.using():
            self._note_approvals([found], coordinator)
        return found

    def decide(self, run: RunRequest) -> Decision:
        """Return what the owner's rules say to all that a run does.

        Args:
            run: the run.

        Raises:
            AdmissionError: there are no valid rules, the log was set back, or the coordinator has
                caused too much of it.
        """
        self._log.check_quota(run.asked.coordinator)
        rules = self._current(run.about())
        self._check_seen(run)
        decision = self._decided(rules, run.asked, approved=False)
        if not decision.needs_approval:
            return decision
        approval, remarks = self._find_approval(run, decision)
        if approval is None:
            command = approving(run.asked, run.inputs)
            return decision._replace(remarks=remarks, approve=command)
        return self._decided(rules, run.asked, approved=True)._replace(approval=approval)

    def uses_up(self, run: RunRequest, decision: Decision) -> bool:
        """Return whether a run uses up an approval or a budget, so that it waits for the others.

        Args:
            run: the run.
            decision: that it is allowed.
        """
        asked = run.asked
        return bool(decision.approval or charges(asked.spends, asked.party) or tries(asked))

    def begin(self, run: RunRequest, decision: Decision) -> tuple[bytes, str]:
        """Record a run before it begins.

        Args:
            run: the run.
            decision: that it is allowed.

        Returns:
            The signed head that contains the run, for the peers; and its receipt, a line of text,
            for the coordinator.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        if not decision.allowed:
            raise ValueError("a run that is refused does not begin")
        if decision.rules is not self._current(run.about()):  # others since it was decided
            decision = self.decide(run)
            if not decision.allowed:
                self.refuse(run, decision)
        about, approval, asked = run.about(), decision.approval, run.asked
        head: SignedHead | None = None
        wanted, tried = charges(asked.spends, asked.party), tries(asked)
        with self._log.recording(asked.coordinator) as writing:
            spent = writing.spent()
            refused = over_budget(wanted, spent, asked.coordinator, self._budgets)
            error = over(self._party, refused, asked, wanted, spent, self._budgets)
            if not refused and tried:
                refused = over_tried(tried, writing.tried(), self._tried)
                error = too_many_keys(self._party, refused, asked) if refused else error
            if approval is not None and not refused:
                about["approval"] = approval.id
                refused = writing.use(approval)
                command = approving(asked, run.inputs)
                error = used_up(self._party, refused, asked, command)
            about["rules"] = _rules_of(decision, writing)
            if refused:
                writing.add("refusal", shortened_fields({**about, "why": refused}))
            else:
                for data_set, amount in wanted.items():
                    writing.spend(asked.coordinator, data_set, amount)
                if tried:
                    writing.try_keys(tried)
                    about["tried"] = [list(each) for each in tried]
                if wanted:
                    about["spends"] = {name: list(amount) for name, amount in wanted.items()}
                self._lineage.begin(writing, run, decision.approval_id)
                rows = writing.add_detail([told(each) for each in decision.requests])
                writing.add("run", shortened_fields({**about, "rows": rows}))
                head = self._witness.head(run.shared, run.seen, writing)
        if head is None:
            raise error
        return head.encode(), head.seal.to_text()

    def end(
        self, coordinator: str, about: Body, run: str, heads: Mapping[str, tuple[bytes, str]]
    ) -> None:
        """Record the end of a run, with what its peers told of their logs meanwhile.

        Args:
            coordinator: whose run it is.
            about: plain data; nothing if the end is on record already.
            run: name of the run that its parties know.
            heads: by the name of a peer its signed head, untrusted, and the public key of its gate.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        with self._log.recording(coordinator, always=True) as writing:
            noted = self._witness.note(writing, run, heads)
            if about:
                writing.add("end", shortened_fields({**about, "heads": noted}))

    def refuse(
        self, run: RunRequest, decision: Decision, paths: Sequence[Sequence[str]] = ()
    ) -> NoReturn:
        """Record that a run is refused.

        Args:
            run: the run.
            decision: that it is refused.
            paths: for each refusal that is told the lines by which its source comes there.

        Raises:
            AdmissionError: always; the text tells the coordinator why.
        """
        self._refuse(run.about(), decision, paths)

    def put(self, coordinator: str, session: str, name: str, size: int, mode: str) -> None:
        """Accept a value that a coordinator puts here, if the rules permit it.

        Args:
            coordinator: who puts it.
            session: name of its session.
            name: name of the value.
            size: its size in bytes.
            mode: mode of the worker.

        Raises:
            AdmissionError: they do not.
        """
        self._log.check_quota(coordinator)
        about = {"coordinator": coordinator, "session": session, "value": name, "bytes": size}
        resource = Entity("Party", self._party)
        request = Request(coordinator, "put", resource, {"mode": mode})
        decision = decide_put(self._current(about), request, self._party)
        if not decision.allowed:
            self._refuse(about, decision)
        with self._log.recording(coordinator) as writing:
            body = {**about, "rules": _rules_of(decision, writing)}
            writing.add("put", shortened_fields(body))

    def record(self, kind: str, about: Body) -> None:
        """Record something that was decided before, such as a fetch or a run's end.

        Args:
            kind: what it is.
            about: plain data.

        Raises:
            AdmissionError: it cannot be recorded, so it may not happen.
        """
        self._log.record(kind, about)

    # -- deciding

    def _current(self, about: Body) -> Rules:
        try:
            return self._rules.current()
        except ConfigError as error:
            self._log.record("refusal", {**about, "why": f"there are no valid rules: {error}"})
            raise shut(self._party, "rules", str(about["coordinator"])) from error

    def _decided(self, rules: Rules, asked: ProgramRequest, *, approved: bool) -> Decision:
        """Return :func:`decide_program`; neither rules nor programs change, so it is kept."""
        kept = self._decisions.setdefault(asked, {})
        found = kept.get(approved)
        if found is None or found[0] is not rules:
            found = kept[approved] = rules, decide_program(rules, asked, approved=approved)
        return found[1]

    def _check_seen(self, run: RunRequest) -> None:
        """Refuse to run if somebody remembers an entry of the log that is not there any more."""
        seen = {run.asked.coordinator: run.receipt} if run.receipt else {}
        seen |= run.seen
        with self._log.using():
            missing = self._witness.missing(seen)
            alarmed = {each.party for each in self._ledger.reading(read_alarms) if each.log == OWN}
        asking = {run.asked.coordinator, *run.asked.names}
        if missing is None and alarmed & asking:  # they remember no more than there is
            with self._log.recording(run.asked.coordinator, always=True) as writing:
                writing.changed(lambda file: clear_alarms(file, OWN, asking))
        if missing is not None:
            who, why = missing
            with self._log.recording(run.asked.coordinator) as writing:
                writing.add("refusal", shortened_fields({**run.about(), "why": why}))
                if self._witness.has_sealed(seen[who]):  # else whoever says so may lie
                    writing.changed(lambda file: add_alarm(file, Alarm(OWN, who, run.shared)))
            raise other_log(self._party, who, run.asked)

    def _find_approval(
        self, run: RunRequest, decision: Decision
    ) -> tuple[Approval | None, Sequence[str]]:
        """Return an approval for a run, the one that ends first; or why none counts.

        Raises:
            AdmissionError: the log cannot be read.
        """
        with self._log.using():
            self._note_approvals(self._approvals.read())
            standing = Standing.of(self._ledger, self._packages)
        asked = run.asked
        wanted = Wanted(asked, run.inputs, self._party, decision.requests)
        found, remarks = [], []
        passed_on = filter(self._approvals.counts, run.approvals)  # perhaps before a reload
        there = {each.id: each.approval for each in (*passed_on, *self._approvals.all())}
        for approval in there.values():
            if approval.program != asked.program and approval.name != asked.name:
                continue
            refused = standing.refusal(approval)
            why = wanted.refusal(approval) if refused is None else refused[1]
            if why:
                remarks.append(f"approval {approval.id} does not count: {why}")
            else:
                found.append(approval)
        return min(found, key=lambda each: each.expires, default=None), remarks

    def _refuse(
        self, about: Body, decision: Decision, paths: Sequence[Sequence[str]] = ()
    ) -> NoReturn:
        text = decision.text(self._party, paths)
        with self._log.recording(str(about.get("coordinator"))) as writing:
            rules = _rules_of(decision, writing)
            body = {**about, **refusal_of(decision), "why": text, "rules": rules}
            writing.add("refusal", shortened_fields(body))
        raise AdmissionError(text, refusals=decision.refusals(self._party, paths))


def _live_rules(config: GateConfig, names: Names) -> LiveRules:
    """Return the rules of a configuration.

    Raises:
        ConfigError: they are wrong, or a budget is of no data set.
    """
    for field, named in (("budgets", config.budgets), ("tried", config.tried)):
        for name in named:
            if names.unknown("DataSet", name):
                raise ConfigError(
                    f"field 'gate.{field}.{name}': there is no data set {name!r} here", code="C003"
                )
    rules = LiveRules(config.policy, names)
    rules.current()
    return rules


def _rules_of(decision: Decision, writing: Writing) -> str:
    """Return version and SHA-256 of the rules that have decided, which are on record then."""
    return "" if decision.rules is None else record_rules(writing, decision.rules)
