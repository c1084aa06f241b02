"""Review: what an owner is shown of a program before it is approved."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from mplang_analysis import (
    WHOLE,
    Constant,
    Costs,
    Disclosure,
    LineText,
    Link,
    Paragraphs,
    ProgramRequest,
    Queries,
    Ranges,
    Report,
    TextTable,
    constants,
    costs,
    line_texts,
    ops_among,
    queries,
    ranges,
)
from mplang_analysis.ext import Part, in_curly_quotes, isolated, quoted, quoted_line

from mplang_core import MPType, Program
from mplang_core.ext import MPLangError, printable, unpack
from mplang_policy.approval import AllowedInput
from mplang_policy.budgets import Amount
from mplang_policy.decision import Decision
from mplang_policy.request import describe

LINES = "Its source lines"
ABOUT_LINES = (
    "This text is what {} claims. The digest identifies what runs, whatever its lines say. An "
    "approval holds for these functions and texts; files, cells and numbers may change."
)
MAX_LINES = 12  # of a piece of code that a terminal shows


class Code(NamedTuple):
    """A piece of code that an op runs.

    Attributes:
        line: the user's line.
        op: the op.
        parties: who runs it.
        text: the code.
    """

    line: str
    op: str
    parties: str
    text: str

    @property
    def head(self) -> str:
        """What stands above it."""
        return f"{quoted_line(self.line)} {quoted(self.op)} at {self.parties}"


class CodeListing:
    """Pieces of code, ready to be shown: whole on a page, their beginnings in a terminal.

    Args:
        title: above them.
        pieces: the pieces.
    """

    def __init__(self, title: str, pieces: Sequence[Code]) -> None:
        self.title, self._pieces = printable(title), pieces

    def text(self) -> str:
        """Return it as plain text."""
        lines = [self.title]
        for each in self._pieces:
            lines.append(printable(f"  {each.head}"))
            code = each.text.splitlines()
            lines += [f"    {printable(line)}" for line in code[:MAX_LINES]]
            if len(code) > MAX_LINES:
                lines.append(f"    … {len(code) - MAX_LINES} more lines; --html shows all")
        return "\n".join(lines)

    def rich(self) -> Any:
        """Return it for rich."""
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        title, *lines = self.text().splitlines()
        # a long line that goes on below stays indented, or its end could be taken for a title
        indented = (Padding(Text(line[2:]), (0, 0, 0, 2)) for line in lines)
        return Group(Text(title), *indented, Text(""))

    def html(self) -> str:
        """Return it as elements of HTML, each piece folded."""
        parts = [f"<p><b>{isolated(self.title)}</b></p>"]
        for each in self._pieces:
            head = isolated(printable(each.head))
            body = "\n".join(html.escape(printable(line)) for line in each.text.splitlines())
            parts.append(
                f"<details><summary>{head}</summary><pre><bdi>{body}</bdi></pre></details>"
            )
        return "".join(parts)


@dataclass(frozen=True)
class Review(Report):
    """Review of a program, as its owner sees it.

    Attributes:
        party: the owner's party.
        program: the whole program.
        asked: what it would ask of the owner's rules.
        decision: what they say, without an approval.
        discloses: what it discloses to whom.
        costs: what it sends and runs.
        ranges: which numbers it computes with.
        queries: which of its queries run where the party's data is, and which on what is read.
        inputs: what its public inputs may be, by position, as far as that was said.
        devices: the devices that it uses, with their protocols.
        names: names of its inputs, by position.
    """

    party: str
    program: Program
    asked: ProgramRequest
    decision: Decision
    discloses: Disclosure
    costs: Costs | None
    ranges: Ranges | None
    queries: Queries | None
    inputs: Mapping[int, AllowedInput]
    devices: Sequence[str]
    names: Sequence[str]

    @classmethod
    def of(
        cls,
        program: Program,
        asked: ProgramRequest,
        decision: Decision,
        discloses: Disclosure,
        inputs: Mapping[int, AllowedInput],
        devices: Sequence[str],
        names: Sequence[str],
        link: Link | None = None,
    ) -> Review:
        """Return the review of a program; with a link, what protocols take on it is counted."""
        party, counted = asked.names[asked.party], partial(costs, link=link)
        found = _tried(counted, program), _tried(ranges, program), _own_queries(program, asked)
        return cls(party, program, asked, decision, discloses, *found, inputs, devices, names)

    @property
    def verdict(self) -> str:
        """What the owner's rules say, in a sentence."""
        who = self.asked.coordinator
        if self.decision.allowed:
            return f"The rules of {self.party} permit it to {who} without an approval."
        if self.decision.needs_approval:
            return f"The rules of {self.party} permit it to {who} once it is approved."
        return f"The rules of {self.party} refuse it, approved or not."

    @property
    def public_inputs(self) -> Sequence[int]:
        """The positions of its public inputs."""
        mask = self.program.mask
        return [
            i
            for i, value in enumerate(self.program.graph.inputs)
            if isinstance(value.type, MPType) and value.type.pmask == mask and len(mask) > 1
        ]

    def code(self) -> list[Code]:
        """Return the code that the owner's party runs, alone or with others."""
        found: dict[Code, None] = {}
        for op, parties in ops_among(self.program.graph, self.program.mask):
            if self.asked.party in parties:
                who = " and ".join(quoted(self.asked.names[rank]) for rank in parties)
                for text in _texts(op.attrs):
                    found[Code(str(op.location or ""), op.opcode, who, text)] = None
        return list(found)

    def lines(self) -> list[list[str]]:
        """Return for each source line where it stands, its function and its text, each once."""
        ops = self.program.graph.walk()
        lines: dict[tuple[str, LineText], None] = {}
        for op, each in zip(ops, line_texts(self.program), strict=True):
            if op.location is not None:
                lines[str(op.location), each] = None
        return [[where, each.function, each.text] for where, each in lines]

    def tables(self) -> list[TextTable]:
        """Return what it is, what it reads, and what its inputs may be."""
        asked, program = self.asked, self.program
        facts = [
            ["digest", program.digest],
            ["for", asked.coordinator],
            *([f"party {rank}", quoted(name)] for rank, name in enumerate(asked.names)),
            *(["device", each] for each in self.devices),
        ]
        shown = [TextTable(f"{quoted(program.name)}, as {self.party} sees it", ["", ""], facts)]
        if asked.reads:
            sets: dict[str, list[str]] = {}
            for name in asked.reads:
                data_set, _, column = name.partition(".")
                sets.setdefault(data_set, []).extend([quoted(column)] if column else [])
            rows = [[quoted(name), ", ".join(each)] for name, each in sets.items()]
            shown.append(TextTable(f"What it reads at {self.party}", ["data set", "columns"], rows))
        contained = [
            [quoted_line(str(each.line or "")), each.op, *_cells(each.constant)]
            for each in constants(self.program)
        ]
        if contained:
            columns = ["line", "op", "name", "type", "values"]
            shown.append(TextTable("What the program contains", columns, contained))
        guards = list(self._guards())
        if guards:
            shown.append(TextTable("What guards tell", GUARD_COLUMNS, guards))
        spends = [
            [quoted(each.data_set), str(Amount(each.epsilon, each.delta)), quoted_line(each.line)]
            for each in asked.spends
            if each.party == asked.party
        ]
        if spends:
            title = "What noise uses up, in each run"
            shown.append(TextTable(title, ["data set", "amount", "line"], spends))
        inputs = [
            [quoted(self.names[i], None), str(self.program.graph.inputs[i].type), self._allowed(i)]
            for i in self.public_inputs
        ]
        if inputs:
            columns = ["name", "type", "may be"]
            alerts = [n for n, i in enumerate(self.public_inputs) if i not in self.inputs]
            shown.append(TextTable("Its public inputs", columns, inputs, alerts))
        return shown

    def _guards(self) -> Iterator[list[str]]:
        """Yield the cells of each row that is made of what went through guards."""
        for request in self.decision.requests:
            context = request.context
            if context.get("declassifiers"):
                sets = ("aggregates", "grouped", "filtered", "matched")
                names = [", ".join(each.told for each in context[field]) for field in sets]
                k = str(context["k"]) if context["k"] else "noise"
                share = context["max_share"]
                most = f"{share / WHOLE:.6g}" if share < WHOLE else "any"
                yield [request.resource.told, k, most, *names]

    def _allowed(self, position: int) -> str:
        given = self.inputs.get(position)
        return "not said: --input NAME=LOW..HIGH" if given is None else given.shown

    def parts(self, drawings: bool = True) -> Sequence[Part]:
        """Return what it is, what it discloses, what the rules say, its code and its costs."""
        code = self.code()
        asked = [describe(each) for each in self.decision.requests]
        return [
            *self.tables(),
            *self.discloses.parts(drawings),
            Paragraphs([self.verdict, *self._refusals()], "What the rules say"),
            Paragraphs(asked, f"What the rules of {self.party} are asked"),
            *self._lines(),
            *([CodeListing(f"What {self.party} runs", code)] if code else []),
            *(self.queries.parts(drawings) if self.queries and self.queries.rows else []),
            *_parts("Costs", self.costs, drawings),
            *_parts("Number ranges", self.ranges, drawings),
        ]

    def _lines(self) -> Sequence[Part]:
        """Return the source lines that an approval holds for."""
        known = [row for row in self.lines() if row[1] or row[2]]
        if not known:
            return [Paragraphs(["The program does not include the text of its lines."], LINES)]
        rows = [
            [quoted_line(where), quoted(name, None), in_curly_quotes(text)]
            for where, name, text in known
        ]
        table = TextTable(LINES, ["line", "function", "text"], rows)
        return [table, Paragraphs([ABOUT_LINES.format(self.asked.coordinator)])]

    def _refusals(self) -> list[str]:
        text = "" if self.decision.allowed else self.decision.text(self.party)
        return [line for line in text.splitlines() if not line.startswith("once ")]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "party": self.party,
            "program": self.program.digest,
            "name": self.program.name,
            "coordinator": self.asked.coordinator,
            "verdict": self.verdict,
            "reads": list(self.asked.reads),
            "disclosure": self.discloses.to_dict(),
            "lines": [
                dict(zip(("line", "function", "text"), row, strict=True)) for row in self.lines()
            ],
            "code": [each._asdict() for each in self.code()],
            "constants": [
                {"line": str(each.line or ""), "op": each.op, **each.constant._asdict()}
                for each in constants(self.program)
            ],
            "queries": self.queries.to_dict()["queries"] if self.queries is not None else None,
            "costs": self.costs.to_dict() if self.costs is not None else None,
            "ranges": self.ranges.to_dict() if self.ranges is not None else None,
        }


GUARD_COLUMNS = ("to", "at least", "share", "tells", "by", "filtered by", "matched by")


def _tried(way: Any, program: Program) -> Any:
    """Return an analysis; ``None`` if it cannot be made, as for a program that is too involved."""
    try:
        return way(program)
    except MPLangError:
        return None


def _own_queries(program: Program, asked: ProgramRequest) -> Queries | None:
    """Return where the queries run that the owner's party has; ``None`` as :func:`_tried`."""
    report: Queries | None = _tried(partial(queries, names=asked.names), program)
    if report is None:
        return None
    return replace(report, rows=tuple(each for each in report.rows if each.party == asked.party))


def _parts(title: str, found: Report | None, drawings: bool) -> Sequence[Part]:
    """Return what is shown of an analysis; that it is missing, if it could not be made."""
    if found is None:
        return [Paragraphs(["Not known: the analysis does not take this program."], title)]
    return found.parts(drawings)


def _cells(constant: Constant) -> list[str]:
    """Return name, type and values of a constant."""
    name = quoted(constant.name) if constant.name else ""
    return [name, constant.type, constant.shown]


def _texts(attrs: Any) -> Iterator[str]:
    """Yield the compressed texts among attributes."""
    for value in attrs.values():
        if isinstance(value, Mapping):
            yield from _texts(value)
        elif isinstance(value, bytes):
            try:
                yield unpack(value)
            except ValueError:
                yield f"{len(value)} bytes"
