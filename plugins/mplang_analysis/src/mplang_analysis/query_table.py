"""Queries of a program over data sets: which run at their sources, and why others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from mplang_analysis.party_names import PartyNames, names_of, quoted, quoted_line, read_names
from mplang_analysis.plan import QueryPlan, plan_of
from mplang_analysis.pushdown import Pushdown, TableQuery, TableReading
from mplang_analysis.records import Records
from mplang_analysis.report import Part, Report, TextTable
from mplang_analysis.subject import program_of
from mplang_core.ext import Location, given_catalogue, prepared

SOURCE, ENGINE = "source", "engine"
HERE = "duckdb"
ON_ONE_SERVER = (
    "Tables of one server and one account are joined there. A catalogue does not say whether they "
    "are; if not, each is read whole, and the engine joins them."
)


@dataclass(frozen=True, slots=True)
class QueryRow:
    """Query over data sets, or the reading of a data set as it is.

    Attributes:
        party: rank of the party.
        line: its line; empty if it has none.
        op: its opcode.
        data_sets: names of the data sets that it reads itself.
        at: ``source`` if the source of its data sets runs it; ``engine`` if the engine of the
            session does, over what is read: there the rows of all columns that are named are in
            memory.
        engine: what runs it, such as ``duckdb`` or ``postgresql``; empty if no catalogue says that.
        why: why the source does not run it; empty if it does.
    """

    party: int
    line: str
    op: str
    data_sets: tuple[str, ...]
    at: str
    engine: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Queries(Report):
    """Queries of a program, and where they run.

    Attributes:
        program: name of the program.
        rows: its queries, and what it reads whole, in the order of the program.
        names: names of its parties.
        plan: what runs at which party, by which engine, and what moves, as a drawing.
    """

    program: str
    rows: tuple[QueryRow, ...]
    names: PartyNames
    plan: QueryPlan | None = field(default=None, compare=False, repr=False)

    def parts(self, drawings: bool = True) -> Sequence[Part]:
        """Return the plan, and the table with its notes."""
        drawn = [self.plan] if drawings and self.plan is not None and self.rows else []
        return [*drawn, *Report.parts(self)]

    def tables(self) -> list[TextTable]:
        """Return what to show."""
        columns = ["party", "line", "op", "data sets", "runs", "why not at the source"]
        rows = [
            [
                self.names.of(row.party),
                quoted_line(row.line) if row.line else "?",
                row.op,
                ", ".join(map(quoted, row.data_sets)),
                _where(row),
                row.why,
            ]
            for row in self.rows
        ]
        return [TextTable(f"Queries of {quoted(self.program)}", columns, rows)]

    def remarks(self) -> Sequence[str]:
        """Return what to say beneath the table."""
        many = any(len(row.data_sets) > 1 and row.engine not in ("", HERE) for row in self.rows)
        return [ON_ONE_SERVER] if many else []

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {"program": self.program, "queries": [asdict(row) for row in self.rows]}


def queries(
    program: object,
    *,
    catalogue: Mapping[str, Mapping[str, object]] | None = None,
    names: Sequence[str] | Mapping[int, str] | None = None,
) -> Queries:
    """Return which queries of a program run at the sources of its data sets.

    Args:
        program: a program, or a function that was traced or compiled.
        catalogue: descriptions of data sets by party and by name, such as ``host.catalogue``; by
            default those of ``with mp.catalogue(…)``. Without it the engines of sources are not
            known, and queries over those of two engines are taken for ones that a source runs.
        names: names of the parties by rank; by default those in the cluster of a compiled
            function, and ``party 0``, … for others.

    Raises:
        ConfigError: a name is not text.
        TraceError: it is not a program.
        VerifyError: the program breaks a rule.

    Example:
        >>> import mplang_core as mp
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda: mp.constant(1))
        >>> queries(traced).to_dict()["queries"]
        []
    """
    subject = program_of(program)
    called = names_of(program) if names is None else names
    shown = PartyNames(tuple(subject.mask), read_names(called, tuple(subject.mask)))
    known = given_catalogue.get() if catalogue is None else catalogue
    by_rank = dict(called if isinstance(called, Mapping) else enumerate(called))
    described = {rank: (known or {}).get(by_rank.get(rank, ""), {}) for rank in subject.mask}
    graph = prepared(subject).graph
    walk = Pushdown(graph, subject.mask)
    asked = [(query, rank) for query in walk.queries for rank in query.parties]
    rows = [_query_row(query, rank, described[rank]) for query, rank in asked]
    runs = [
        (query.node, rank, _in_words(row)) for (query, rank), row in zip(asked, rows, strict=True)
    ]
    runs += [
        (reading.node, rank, f"{quoted(reading.table.data)} is read whole")
        for reading in walk.readings
        for rank in reading.parties
        if not reading.stays
    ]
    rows += [
        QueryRow(
            rank, _text(reading.line), "reading", (reading.table.data,), ENGINE, why=_use(reading)
        )
        for reading in walk.readings
        for rank in reading.parties
        if not reading.stays and not reading.queries
    ]
    return Queries(subject.name, Records(rows), shown, plan_of(subject, graph, shown, runs))


def _query_row(query: TableQuery, rank: int, described: Mapping[str, object]) -> QueryRow:
    readings = [each for each in query.readings if each is not None]
    names = tuple(dict.fromkeys(each.table.data for each in readings))
    known = [(each, described.get(each.table.data)) for each in readings]
    engines = sorted({_engine(about) for _, about in known})
    if not query.at_source:
        why = _why(query, readings)
    elif len(engines) > 1:
        why = f"its data sets are at several engines: {', '.join(engines)}"
    else:
        why = next(filter(None, (_nan(each, about) for each, about in known)), "")
    if why:
        return QueryRow(rank, _text(query.line), query.op, names, ENGINE, HERE, why)
    return QueryRow(rank, _text(query.line), query.op, names, SOURCE, engines[0])


def _engine(described: object) -> str:
    """Return the engine of a data set; empty if it is not known."""
    return "" if described is None else str(getattr(described, "engine", None) or HERE)


def _nan(reading: TableReading, described: object) -> str:
    """Return why an engine other than DuckDB does not query a data set for its NaN, or nothing."""
    has_floats = any(f'"{name}"]' in reading.table.type for name in ("float", "double"))
    if not has_floats or getattr(described, "nan", None) is None or _engine(described) == HERE:
        return ""
    return f"NaN in {quoted(reading.table.data)} is a missing number or an error (`nan`)"


def _why(query: TableQuery, readings: Sequence[TableReading]) -> str:
    """Return why no source runs a query."""
    if None in query.readings:
        which = "one of its tables is" if len(query.readings) > 1 else "its table is"
        return f"{which} what another step of the program gave"
    leaving = next((each for each in readings if not each.stays), None)
    if leaving is None:
        return "it has no tables"
    return f"{quoted(leaving.table.data)} is read whole: {_use(leaving)}"


def _use(reading: TableReading) -> str:
    """Return why a data set does not stay at its source."""
    for use in reading.uses:
        if use is None:
            return "it is a result of the program"
        op, line = use
        return f"{op} uses it{_at(line)}"
    for query in reading.queries:
        if None in query.readings:
            return f"{query.op} joins it{_at(query.line)} with what another step gave"
    for query in reading.queries:
        if any(other is not None and other.uses for other in query.readings):
            return f"{query.op} joins it{_at(query.line)} with a data set that is read whole"
    if not reading.queries:
        return "nothing uses it"
    return "its queries are in another part of the program"


def _at(line: Location | None) -> str:
    return f" at {quoted_line(str(line))}" if line else ""


def _text(line: Location | None) -> str:
    return str(line or "")


def _in_words(row: QueryRow) -> str:
    """Return what runs a query, and over what."""
    engine = "" if row.at == SOURCE else f", {row.engine}" if row.engine else ""
    return f"{_where(row)}{engine}, over " + (
        ", ".join(map(quoted, row.data_sets)) or "what another step gave"
    )


def _where(row: QueryRow) -> str:
    if row.at == ENGINE:
        return "in the engine"
    return "at the source" + (f", {row.engine}" if row.engine else "")
