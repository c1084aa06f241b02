"""Decision on a program: what of it the rules of a party refuse, and why."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from mplang_analysis import ProgramRequest, Source
from mplang_analysis.ext import quoted, quoted_line, shortened

from mplang_core.ext import Refusal
from mplang_policy.approval import Approval
from mplang_policy.explain import Why, why
from mplang_policy.hints import hints_for
from mplang_policy.request import Entity, Request, describe, told
from mplang_policy.requests import column_of, requests_of
from mplang_policy.rules import Rules, Verdict

MAX_TOLD = 5  # refused requests that are told
MAX_LISTED = 8  # rules and columns of a refusal
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
    advice: Sequence[str] = ()

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
            advice=tuple(self.advice),
        )


class Decision(NamedTuple):
    """What the rules of a party say to a program.

    Attributes:
        requests: what they were asked.
        refused: what they refuse first; nothing if the program may run.
        more: how much else they refuse.
        needs_approval: whether they permit it once the owner has signed it.
        approval: the approval by which it may run, if it needs one.
        remarks: why the approvals that there are do not count.
        notes: what can be changed, so that they permit it.
        rules: the rules that were asked.
    """

    requests: Sequence[Request]
    refused: Sequence[RefusedRequest]
    more: int = 0
    needs_approval: bool = False
    approval: Approval | None = None
    remarks: Sequence[str] = ()
    notes: Sequence[str] = ()
    rules: Rules | None = None

    @property
    def allowed(self) -> bool:
        """Whether the program may run."""
        return not self.refused

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
        return tuple(
            each._replace(advice=[*each.advice, *self._approvals(party)]).public(
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
        told = []
        for each, path in itertools.zip_longest(self.refused, paths, fillvalue=()):
            assert isinstance(each, RefusedRequest)
            way = _way(each, path) if len(path) > 1 else ""
            reason = shortened(each.why.text, MAX_TEXT // 4)
            told.append(f"{party} refuses {describe(each.request)}: {reason}{way}")
        if self.more:
            told.append(f"and {self.more} more")
        told += self.notes
        told += self._approvals(party)
        return shortened("\n".join(told), MAX_TEXT)


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
        if not verdict.allowed
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
    units = rules.names.units
    found = decide(rules, requests_of(asked, units), approved=approved)
    refused = [
        each
        if each.request.row is None
        else each._replace(advice=[*hints_for(each.request.row, each.why.lacks, asked, units)])
        for each in found.refused
    ]
    notes = dict.fromkeys(hint for each in refused for hint in each.advice)
    return found._replace(refused=refused, notes=list(notes)[:MAX_TOLD])


def decide_quickly(rules: Rules, requests: Sequence[Request], *, approved: bool) -> bool:
    """Return whether all requests are allowed, without reasons."""
    asked = [each.approved() for each in requests] if approved else requests
    return all(verdict.allowed for verdict in rules.decide(asked))


def _why(rules: Rules, request: Request, verdict: Verdict) -> tuple[Why, Source | None]:
    reason = why(rules, request, verdict)
    if request.row is None or request.action == "rely":  # whose data it is does not matter
        return reason, None
    named = {_column(each) for each in reason.about if isinstance(each, Entity)}
    found = [each for each in request.row.sources if column_of(each) in named]
    return reason, (found or request.row.sources)[0]


def _column(entity: Entity) -> str:
    """Return the column that an entity is, or that an aggregate is of."""
    return entity.id.partition("(")[2][:-1] if entity.type == "Aggregate" else entity.id


def _way(refusal: RefusedRequest, path: Sequence[str]) -> str:
    assert refusal.source is not None
    begin, *through, end = map(quoted_line, path)
    if len(through) > MAX_LINES:
        through[MAX_LINES:] = [f"{len(through) - MAX_LINES} more lines"]
    between = f", goes through {', '.join(through)}" if through else ""
    return f"; {quoted(column_of(refusal.source))} comes in at {begin}{between} and out at {end}"
