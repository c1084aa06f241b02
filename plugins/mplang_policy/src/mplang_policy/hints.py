"""Hints: what whoever wrote a program can change, so that rules permit a row of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mplang_analysis import DisclosureRow, ProgramRequest, What

from mplang_policy.guarded import uncounted

OF_GUARDS = ("k", "max_share", "declassifiers", "aggregates")
NO_GUARD = (
    "what it tells is of single rows; mp.guard.aggregate, or an op of mp.dp, aggregates a table so "
    "that rules count on it"
)
OF_GUARDED = {
    "k": "it tells of smaller groups; a larger k= of mp.guard.aggregate leaves them out",
    "max_share": (
        "it tells of groups of which one unit may have a larger part; max_share= of "
        "mp.guard.aggregate leaves them out"
    ),
}
OF_SIDE_CHANNELS = {
    What.DURATION: (
        "its ops at that line take as long as private values say: have loops turn a public number "
        'of times, and join by equality (docs/disclosure.md, "Sizes and durations")'
    ),
    What.SIZE: (
        "a table's size tells who cannot read it of its rows: send tensors, or the table to "
        'parties that may read it (docs/disclosure.md, "Sizes and durations")'
    ),
}


def hints_for(
    row: DisclosureRow, lacks: Sequence[str], asked: ProgramRequest, units: Mapping[str, str]
) -> Iterator[str]:
    """Yield what can be changed about a row.

    Args:
        row: a row that rules refuse.
        lacks: the fields of the context that it lacks.
        asked: the program.
        units: for each data set of the party the column by which its units differ.
    """
    if row.what in OF_SIDE_CHANNELS:
        yield OF_SIDE_CHANNELS[row.what]
        return
    lacking = [field for field in OF_GUARDS if field in lacks]
    if not lacking:
        return
    mine = [source for source in row.sources if source.party == asked.party]
    useless = [*asked.remarks, *uncounted(mine, asked.party, units)]
    if useless:
        yield from useless
    elif any(source.guards for source in mine):
        yield from (OF_GUARDED[field] for field in lacking if field in OF_GUARDED)
    else:
        yield NO_GUARD
