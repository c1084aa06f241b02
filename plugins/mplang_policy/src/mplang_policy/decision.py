"""Decision on a program: what of it the rules of a party refuse, and why."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from mplang_analysis import ProgramRequest, Source
from mplang_analysis.ext import quoted, quoted_line, shortened

from mplang_core.ext import Advice, Refusal
from mplang_policy.approval import Approval
from mplang_policy.approve_command import approving
from mplang_policy.explain import Why, why
from mplang_policy.hints import changes_for, hints_for
from mplang_policy.permits import permits_of
from mplang_policy.request import Entity, Request, describe, told
from mplang_policy.requests import column_of, requests_of
from mplang_policy.rules import Rules, Verdict

MAX_TOLD = 5  # refused requests that are told
MAX_LISTED = 8  # rules and columns of a refusal
MAX_ADVICE = 16  # of a refusal
MAX_LINES = 8  # of a path that are told, beside its ends
MAX_TEXT = 4000  # bytes of what is told, and of one reason a fourth


class RefusedRequest(NamedTuple):
    """A request that rules refuse.

    Attributes:
        request: the request.
        verdict: what they said.
        why: why.
        source: some private data that it is about, if it is about a row.
        advice: what can be changed, so that they permit it.
    """

    request: Request
    verdict: Verdict
    why: Why
    source: Source | None = None
    advice: Sequence[Advice] = ()

    def public(self, party: str, path: Sequence[str] = ()) -> Refusal:
        """Return it as whoever wants to run the program gets it, and as it is on record.

        Args:
            party: the name of the party.
            path: the lines by which its source comes to where it would leave.
        """
        fields, columns = told(self.request), self.request.context.get("columns", ())
        shown = [each.shown for each in self.why.rules]
        return Refusal(
            party=party,
            code=self.why.code,
            action=fields["action"],
            resource=fields["resource"],
            what=str(fields.get("what", "")),
            rules=tuple(map(shortened, shown[:MAX_LISTED])),
            lacks=tuple(self.why.lacks),
            columns=tuple(shortened(each.id) for each in columns[:MAX_LISTED]),
            location=fields.get("line", ""),
            path=tuple(map(shortened, path[:MAX_LINES])),
            reason=shortened(self.why.text, MAX_TEXT // 4),
            advice=tuple(map(_shortened, self.advice[:MAX_ADVICE])),
        )


class Decision(NamedTuple):
    """Decision of a party's rules on a program.

    Attributes:
        requests: what they were asked.
        refused: what they refuse first; nothing if the program may run.
        more: how much else they refuse.
        needs_approval: whether they permit it once the owner has signed it.
        approval: the approval by which it may run, if it needs one.
        remarks: why the approvals that there are do not count.
        approve: the command by which the owner approves it.
        notes: what can be changed, so that they permit it.
        rules: the rules that were asked.
    """

    requests: Sequence[Request]
    refused: Sequence[RefusedRequest]
    more: int = 0
    needs_approval: bool = False
    approval: Approval | None = None
    remarks: Sequence[str] = ()
    approve: str = ""
    notes: Sequence[str] = ()
    rules: Rules | None = None

    @property
    def allowed(self) -> bool:
        """Whether the program may run."""
        return not self.refused

    @property
    def approval_id(self) -> str:
        """Name of the approval by which the program may run; empty if it needs none."""
        return "" if self.approval is None else self.approval.id

    def sources(self) -> list[tuple[str, int, str] | None]:
        """Return for each refusal that is told its row's line, and party and name of some data."""
        return [
            None
            if each.request.row is None or each.source is None
            else (each.request.row.line, each.source.party, each.source.name)
            for each in self.refused
        ]

    def refusals(self, party: str, paths: Sequence[Sequence[str]] = ()) -> tuple[Refusal, ...]:
        """Return what is refused first, as whoever wants to run it gets it.

        Args:
            party: name of the party.
            paths: as in :meth:`text`.
        """
        approvals = self._approvals(party)
        command = [Advice("command", "; ".join(approvals), self.approve, by=party)]
        return tuple(
            each._replace(advice=[*each.advice, *(command if approvals else ())]).public(
                party, paths[i] if i < len(paths) else ()
            )
            for i, each in enumerate(self.refused)
        )

    def _approvals(self, party: str) -> Sequence[str]:
        """Return what an approval would do, and why those that there are do not count."""
        if not self.needs_approval:
            return ()
        return [f"once {party} has approved this program, its rules permit it", *self.remarks]

    def text(self, party: str, paths: Sequence[Sequence[str]] = ()) -> str:
        """Return why the program is refused, for whoever wants to run it.

        Args:
            party: name of the party.
            paths: for each refusal that is told the lines by which its source comes there.
        """
        lines = []
        for each, path in itertools.zip_longest(self.refused, paths, fillvalue=()):
            assert isinstance(each, RefusedRequest)
            way = _way(each, path) if len(path) > 1 else ""
            reason = shortened(each.why.text, MAX_TEXT // 4)
            lines.append(f"{party} refuses {describe(each.request)}: {reason}{way}")
        if self.more:
            lines.append(f"and {self.more} more")
        lines += self.notes
        lines += self._approvals(party)
        return shortened("\n".join(lines), MAX_TEXT)


def decide(rules: Rules, requests: Sequence[Request], *, approved: bool = False) -> Decision:
    """Decide on the requests of a program.

    Args:
        rules: the rules of a party.
        requests: what the program would do.
        approved: whether the owner has signed the program for this coordinator.
    """
    asked = [each.approved() for each in requests] if approved else list(requests)
    denied = [
        (request, verdict)
        for request, verdict in zip(asked, rules.decide(asked), strict=True)
        if request.read or not verdict.allowed
    ]
    refused = [
        RefusedRequest(request, verdict, *_why(rules, request, verdict))
        for request, verdict in denied[:MAX_TOLD]
    ]
    needs = bool(refused) and not approved and decide_quickly(rules, requests, approved=True)
    return Decision(asked, refused, len(denied) - len(refused), needs, rules=rules)


def decide_program(rules: Rules, asked: ProgramRequest, *, approved: bool = False) -> Decision:
    """Decide on all that a program does at a party.

    Args:
        rules: the rules of the party.
        asked: what it would do.
        approved: whether the owner has signed the program for this coordinator.

    Raises:
        AdmissionError: it is more than an owner could read.
    """
    decision = decide(
        rules, requests_of(asked, rules.names.units, rules.names.match), approved=approved
    )
    hints = [list(_hints(each, asked, rules)) for each in decision.refused]
    refused = [
        each._replace(advice=[*mine, *_changes(each, asked, rules, decision)])
        for each, mine in zip(decision.refused, hints, strict=True)
    ]
    notes = dict.fromkeys(hint.text for mine in hints for hint in mine)
    approve = approving(asked) if decision.needs_approval else ""
    return decision._replace(refused=refused, notes=list(notes)[:MAX_TOLD], approve=approve)


def _hints(refused: RefusedRequest, asked: ProgramRequest, rules: Rules) -> Iterator[Advice]:
    row = refused.request.row
    if row is not None:
        yield from hints_for(row, refused.request, refused.why, asked, rules)


def _changes(
    refused: RefusedRequest, asked: ProgramRequest, rules: Rules, decision: Decision
) -> Iterator[Advice]:
    """Yield what else program and owner could change; what asks for a signature keeps asking."""
    yield from changes_for(refused.request, refused.why, asked)
    if not decision.needs_approval:
        yield from _permits(rules, refused, asked.names[asked.party])


def _permits(rules: Rules, refused: RefusedRequest, party: str) -> Iterator[Advice]:
    if refused.why.code != "error":
        forbids = refused.why.rules if refused.why.code == "forbidden" else ()
        yield from permits_of(rules, refused.request, party, forbids)


def decide_put(rules: Rules, request: Request, party: str) -> Decision:
    """Decide on a value that a coordinator puts at a party.

    Args:
        rules: the rules of the party.
        request: what it would do.
        party: name of the party.
    """
    decision = decide(rules, [request])
    refused = [each._replace(advice=[*_permits(rules, each, party)]) for each in decision.refused]
    return decision._replace(refused=refused)


def decide_quickly(rules: Rules, requests: Sequence[Request], *, approved: bool) -> bool:
    """Return whether all requests are allowed, without reasons."""
    asked = [each.approved() for each in requests] if approved else requests
    if any(each.read for each in asked):
        return False
    return all(verdict.allowed for verdict in rules.decide(asked))


def _why(rules: Rules, request: Request, verdict: Verdict) -> tuple[Why, Source | None]:
    reason = _read(request) if request.read else why(rules, request, verdict)
    if request.row is None or request.action == "rely":  # whose data it is does not matter
        return reason, None
    named = {_column(each) for each in reason.about if isinstance(each, Entity)}
    found = [each for each in request.row.sources if column_of(each) in named]
    return reason, (found or request.row.sources)[0]


def _read(request: Request) -> Why:
    """Return why columns that are offered to match on alone cannot leave, whatever rules say."""
    columns = " and ".join(map(quoted, request.read))
    text = (
        f"{columns} is offered for matching only; mp.match leaves it out of its "
        "results unless keep=True, and no filter may name it"
    )
    return Why("forbidden", text, about=[Entity("Column", each) for each in request.read])


def _column(entity: Entity) -> str:
    """Return the column that an entity is, or that an aggregate is of."""
    return entity.id.partition("(")[2][:-1] if entity.type == "Aggregate" else entity.id


def _shortened(advice: Advice) -> Advice:
    """Return an advice with no long text; half of a change would be another one."""
    fits = len(advice.change) <= MAX_TEXT and len(advice.where) <= MAX_TEXT
    change, where = (advice.change, advice.where) if fits else ("", "")
    return replace(advice, text=shortened(advice.text, MAX_TEXT // 4), change=change, where=where)


def _way(refusal: RefusedRequest, path: Sequence[str]) -> str:
    assert refusal.source is not None
    begin, *through, end = map(quoted_line, path)
    if len(through) > MAX_LINES:
        through[MAX_LINES:] = [f"{len(through) - MAX_LINES} more lines"]
    between = f", goes through {', '.join(through)}" if through else ""
    return f"; {quoted(column_of(refusal.source))} comes in at {begin}{between} and out at {end}"
