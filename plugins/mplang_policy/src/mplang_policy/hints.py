"""Hints: what whoever wrote a program can change, so that rules permit a row of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mplang_analysis import DisclosureRow, ProgramRequest, What
from mplang_analysis.ext import quoted

from mplang_core.ext import Advice
from mplang_policy.explain import Conjunct, Why, attributes, conjuncts, permits_near
from mplang_policy.guard_calls import OF_THE_GUARD, guard_call, millionths
from mplang_policy.guarded import uncounted, unit_of
from mplang_policy.names import Names
from mplang_policy.request import Entity, Request
from mplang_policy.requirements import least_of, most_of, names_among, names_in, parties_of
from mplang_policy.rules import Rules

OF_GUARDS = ("k", "max_share", "declassifiers", "aggregates")
NO_GUARD = (
    "it discloses single rows; mp.guard.aggregate, or an op of mp.dp, computes aggregates that "
    "rules can permit"
)
NOT_THROUGH_IT = "this value did not go through {ops}: send only what the guard returns"
OF_OTHERS = "its guard is {there}, and the rule counts on {wanted} alone"
SMALLER = "it includes smaller groups; a larger k= of mp.guard.aggregate leaves them out"
DOMINATED = (
    "it includes groups of which one unit may have a larger share; max_share= of "
    "mp.guard.aggregate leaves them out"
)
OF_SIDE_CHANNELS = {
    What.DURATION: (
        "its ops at that line take as long as private values say: have loops turn a public number "
        'of times, and join by equality (docs/disclosure.md, "Sizes and durations")'
    ),
    What.SIZE: (
        "a table's size discloses its number of rows to parties that cannot read it: send tensors, "
        "or the table to "
        'parties that may read it (docs/disclosure.md, "Sizes and durations")'
    ),
}
USES = {
    "filtered": "a filter by",
    "grouped": "groups by",
    "matched": "a match by",
    "functions": "the function",
    "joined_with": "a match with the data of",
}


def hints_for(
    row: DisclosureRow, request: Request, why: Why, asked: ProgramRequest, rules: Rules
) -> Iterator[Advice]:
    """Yield what can be changed about how a row is made; the text of a refusal has them, too.

    Args:
        row: a row that rules refuse.
        request: the request that is about it.
        why: why they do.
        asked: the program.
        rules: the rules.
    """
    if row.what in OF_SIDE_CHANNELS:
        yield Advice("code", OF_SIDE_CHANNELS[row.what], where=row.line)
        return
    if not any(field in why.lacks for field in OF_GUARDS):
        return
    names = rules.names.seen_by(asked.coordinator)
    mine = [source for source in row.sources if source.party == asked.party]
    there = {guard.op for each in asked.rows for of in each.sources for guard in of.guards}
    if any(source.guards for source in mine):
        yield from _of_guarded(row, why, asked, names)
    elif asked.remarks:
        yield from (Advice("code", each) for each in asked.remarks)
    elif there:
        yield Advice("code", NOT_THROUGH_IT.format(ops=_listed(sorted(there))), where=row.line)
    else:
        yield from _guards(row, request, asked, rules, names)


def _guards(
    row: DisclosureRow, request: Request, asked: ProgramRequest, rules: Rules, names: Names
) -> Iterator[Advice]:
    """Yield the guards that permits count on, those of the nearest permit first."""
    mine = [source for source in row.sources if source.party == asked.party]
    for permit, _ in permits_near(rules, request):
        conditions = conjuncts(permit)
        families = names_in(conditions, "declassifiers")
        fields = (field for each in conditions for field in attributes(each.body))
        if set(OF_GUARDS).isdisjoint(fields):
            continue
        if not families or OF_THE_GUARD in families:
            call = guard_call(mine, conditions, asked, names)
            yield Advice("code", NO_GUARD, call, row.line)
        else:
            text = f"it discloses single rows; {permit.shown} counts on {_listed(families)}"
            yield Advice("code", text, where=row.line)


def _of_guarded(
    row: DisclosureRow, why: Why, asked: ProgramRequest, names: Names
) -> Iterator[Advice]:
    """Yield what can be changed about the guards of a row."""
    mine = [source for source in row.sources if source.party == asked.party]
    useless = [*asked.remarks, *uncounted(mine, asked.party, names.units)]
    if useless:
        unit = unit_of(mine, asked.party, names.units)
        change = f"unit={unit!r}" if unit and not asked.remarks else ""
        yield from (Advice("code", each, change, row.line) for each in useless)
        return
    conditions = conjuncts(why.rules[0])
    there = {guard.op for each in mine for guard in each.guards}
    wanted = names_in(conditions, "declassifiers")
    if "declassifiers" in why.lacks and wanted and there.isdisjoint(wanted):
        text = OF_OTHERS.format(there=_listed(sorted(there)), wanted=_listed(wanted))
        call = guard_call(mine, conditions, asked, names) if OF_THE_GUARD in wanted else ""
        yield Advice("code", text, call, row.line)
        return
    if OF_THE_GUARD not in there:
        return
    k, share = least_of(why.lacking, "k"), most_of(why.lacking, "max_share")
    if "k" in why.lacks:
        yield Advice("code", SMALLER, "" if k is None else f"k={k}", row.line)
    if "max_share" in why.lacks:
        change = "" if share is None else f"max_share={millionths(share)}"
        yield Advice("code", DOMINATED, change, row.line)


def changes_for(request: Request, why: Why, asked: ProgramRequest) -> Iterator[Advice]:
    """Yield what else a program could do, so that the nearest rule permits a request.

    Args:
        request: what rules refuse.
        why: why they do.
        asked: the program.
    """
    line = "" if request.row is None else request.row.line
    parties = [each for each in parties_of(why.lacking) if each in asked.names]
    if request.resource.type == "Party" and parties:
        yield Advice("receiver", "the rule is of another receiver", "\n".join(parties), line)
    most = most_of(why.lacking, "epsilon")
    if most and len([each for each in asked.spends if each.party == asked.party]) == 1:
        text = "more noise takes less of the budgets; results are less exact"
        yield Advice("code", text, f"epsilon={millionths(most)}")
    if "columns" in why.lacks:
        yield from _of_columns(request, why.lacking, asked)
    yield from _of_aggregates(request, why.lacking, line)
    for field, use in USES.items():
        among = names_among(why.lacking, field)
        if among is not None:
            beyond = [each for each in _ids(request, field) if each not in among]
            yield Advice("without", f"the rule permits {use} others", "\n".join(beyond), line)


def _of_columns(
    request: Request, conditions: Sequence[Conjunct], asked: ProgramRequest
) -> Iterator[Advice]:
    among = names_among(conditions, "columns")
    kept = [each for each in _ids(request, "columns") if among is not None and each in among]
    sets: dict[str, list[str]] = {}
    for each in kept:
        data_set, dot, column = each.partition(".")
        if dot:
            sets.setdefault(data_set, []).append(column)
    party = asked.names[asked.party]
    reads = [f"mp.dataset({party!r}, {name!r}, {columns!r})" for name, columns in sets.items()]
    if reads:
        text = "the rule permits fewer columns: read these alone, and compute with them"
        yield Advice("code", text, "\n".join(reads))


def _of_aggregates(request: Request, conditions: Sequence[Conjunct], line: str) -> Iterator[Advice]:
    among = names_among(conditions, "aggregates")
    if among:
        beyond = [each for each in _ids(request, "aggregates") if each not in among]
        if beyond:
            text = f"the rule permits {_listed(among)}"
            yield Advice("without", text, "\n".join(beyond), line)


def _ids(request: Request, field: str) -> list[str]:
    values = request.context.get(field, ())
    return [each.id if isinstance(each, Entity) else str(each) for each in values]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))
