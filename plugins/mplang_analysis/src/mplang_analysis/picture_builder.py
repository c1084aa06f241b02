"""Picture builder: the rows of a disclosure table and the ops of its program, by source lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from mplang_analysis.diagram import Mark
from mplang_analysis.disclosure_row import DisclosureRow
from mplang_analysis.flow_picture import often as often_of
from mplang_analysis.graph_builder import view_of
from mplang_analysis.graph_parts import Node
from mplang_analysis.graph_view import GraphView
from mplang_analysis.party_names import PartyNames, quoted
from mplang_analysis.phrases import amounts, listed, protected, sizes_of
from mplang_analysis.picture import Picture
from mplang_analysis.readers import reader_of
from mplang_analysis.reveals import reveals_of
from mplang_analysis.words import What, When
from mplang_core import Program
from mplang_core.ext import printable

LAST = (What.RESULT, What.DURATION, What.FAILURE, What.CHANGE)
"""The rows that are drawn at the end, where a run ends."""

TEXTS = {
    What.PREDICATE: "which way a condition or a loop goes",
    What.INDEX: "which party is asked for a value",
    What.MATCH: "which keys it has in common, and how many",
    What.DURATION: "how long ops take",
    What.FAILURE: "whether an op fails",
    What.CHANGE: "can change what arrives, unnoticed",
}
"""What is told by a row whose type does not say it."""

VERBS = {What.MOVE: "", What.REVEAL: "reveals ", What.RESULT: "returns "}
"""What happens to the value of a row; of another kind of row its name is told."""


def build(
    title: str, rows: Sequence[DisclosureRow], names: PartyNames, program: Program | None
) -> Picture:
    """Return the picture of a program.

    Args:
        title: its name.
        rows: the rows of its table: each is in exactly one mark.
        names: the names of its parties.
        program: the program, verified, for what the parties run by themselves; without it, only
            the rows are drawn.
    """
    lanes = (*map(names.of, names.parties), names.of("host"))
    view = view_of(program) if program is not None else None
    marks = _Marks(rows, names, view).all()
    sources = view.sources if view is not None else {}
    return Picture(f"{quoted(title)}, line by line", lanes, tuple(marks), sources=sources)


class _Marks:
    """Collects the marks of a picture per line, in the order of the program."""

    def __init__(
        self, rows: Sequence[DisclosureRow], names: PartyNames, view: GraphView | None
    ) -> None:
        self.table, self.names = rows, names
        self.lane = {rank: i for i, rank in enumerate(names.parties)}
        self.nodes: dict[str, list[Node]] = defaultdict(list)
        self.rows: dict[str, list[int]] = defaultdict(list)
        self.regions = {region.id: region for region in view.regions} if view else {}
        self.given = [node for node in view.nodes if node.kind == "input"] if view else []
        for node in view.nodes if view else ():
            if node.kind not in ("input", "output"):
                self.nodes[node.line].append(node)
        for i, row in enumerate(rows):
            self.rows[row.line].append(i)

    def all(self) -> Iterator[Mark]:
        yield from self.inputs()
        for line in self.lines():
            yield from self.step(line)
        for what in LAST:
            for line in self.rows:
                yield from self.crossings(line, what)

    def lines(self) -> list[str]:
        """Return the lines; one that only rows have comes after the line of the row before."""
        after: dict[str | None, dict[str, None]] = defaultdict(dict)
        last = None
        for line in self.rows:
            if line in self.nodes:
                last = line
            else:
                after[last][line] = None
        found = [*after[None]]
        for line in self.nodes:
            found += [line, *after[line]]
        return found

    def inputs(self) -> Iterator[Mark]:
        """Yield who holds inputs of the program."""
        counted = Counter(rank for node in self.given for rank in node.parties)
        by_number: dict[int, list[int]] = defaultdict(list)
        for rank, n in counted.items():
            by_number[n].append(self.lane[rank])
        for n, lanes in by_number.items():
            text = f"{n} input{'s' if n > 1 else ''}" + (" each" if len(lanes) > 1 else "")
            yield Mark("", "run", None, tuple(sorted(lanes)), text)

    def step(self, line: str) -> Iterator[Mark]:
        """Yield what one line does: what is run, what is sent, and what becomes plain."""
        moves = [node.id for node in self.nodes.get(line, ()) if node.kind == "move"]
        work = list(self.work(line))
        crossings = list(self.crossings(line))
        yield from (mark for first, mark in work if not moves or first < moves[0])
        yield from (mark for mark in crossings if mark.kind == "send")
        yield from (mark for first, mark in work if moves and first > moves[0])
        yield from (mark for mark in crossings if mark.kind == "open")

    # -- what the parties run

    def work(self, line: str) -> Iterator[tuple[int, Mark]]:
        """Yield what is run by whom, with the number of its first op; who runs the same is one."""
        ops: dict[int, Counter[str]] = defaultdict(Counter)
        first: dict[int, int] = {}
        for node in self.nodes.get(line, ()):
            if node.kind in ("run", "region"):
                often = often_of(self.regions, node.region)
                for rank in node.parties:
                    ops[rank][node.label + (f" ({often})" if often else "")] += 1
                    first.setdefault(rank, node.id)
        alike: dict[str, list[int]] = defaultdict(list)
        for rank, counted in sorted(ops.items()):
            texts = (f"{op} ×{n}" if n > 1 else op for op, n in counted.items())
            alike[printable(", ".join(texts))].append(rank)
        for text, ranks in alike.items():
            lanes = tuple(self.lane[rank] for rank in ranks)
            yield min(first[rank] for rank in ranks), Mark(line, "run", None, lanes, text)

    # -- what crosses

    def crossings(self, line: str, last: str | None = None) -> Iterator[Mark]:
        """Yield what is sent, revealed and told, or one kind of what comes last.

        Equal rows to several receivers are one mark, and so is a reveal with its shares.
        """
        kinds = [(i, self.table[i].what) for i in self.rows.get(line, ())]
        found = [i for i, what in kinds if last == (what if what in LAST else None)]
        reveals = reveals_of(self.table, found)
        joined = {i for each in reveals for i in (*each.rows, *each.shares)}
        by_receiver: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for i in found:
            row = self.table[i]
            if i not in joined:
                key = (row.what, row.sender, row.form, row.discloses, row.when)
                by_receiver[*key, row.receiver].append(i)
        alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for (*same, _), mine in by_receiver.items():
            payloads = tuple(self.table[i].payload for i in mine if same[0] not in TEXTS)
            alike[*same, payloads].extend(mine)
        for mine in alike.values():
            yield self.crossing(line, mine)
        for each in reveals:
            yield self.crossing(line, each.rows, each.shares)

    def crossing(self, line: str, found: Sequence[int], shares: Sequence[int] = ()) -> Mark:
        """Return the mark of rows that differ in their receivers, or in what is sent.

        Args:
            line: their line.
            found: the rows.
            shares: the rows of shares of what becomes plain by them.
        """
        rows = [self.table[i] for i in found]
        sender = None if rows[0].sender is None else self.lane[rows[0].sender]
        lanes = self.lanes_of(rows) - {sender}
        aware = self.lanes_of([row for row in rows if row.discloses])
        first = [row for row in rows if row.receiver == rows[0].receiver]
        owners = sorted({rank for row in rows for rank in row.discloses})
        text = self.text(rows[0], [row.payload for row in first], owners, len(rows) > len(first))
        form, what = rows[0].form, rows[0].what
        senders = {self.table[i].sender for i in shares}
        return Mark(
            line,
            "open" if sender is None else "send",
            sender,
            tuple(sorted(lanes)),
            text,
            label=form if what in VERBS else printable(what),
            dashed=form != "plain",
            alert=bool(owners),
            rows=tuple(sorted([*found, *shares])),
            shares=tuple(sorted(self.lane[rank] for rank in senders if rank is not None)),
            own=tuple(sorted(lanes - aware)) if owners else (),
        )

    def lanes_of(self, rows: Iterable[DisclosureRow]) -> set[int]:
        """Return the lanes of the receivers of some rows."""
        return {lane for row in rows for lane in self.receivers(row)}

    def receivers(self, row: DisclosureRow) -> list[int]:
        if row.receiver == "everyone":
            return list(range(len(self.lane) + 1))
        return [len(self.lane) if row.receiver == "host" else self.lane[row.receiver]]

    def text(
        self, row: DisclosureRow, payloads: Sequence[str], discloses: Sequence[int], several: bool
    ) -> str:
        """Return what a mark says; of what several receivers get that it is for each."""
        what = row.what
        if what in TEXTS or what == What.SIZE:
            text = TEXTS.get(what) or sizes_of(payloads, self.names.of(row.sender))
            if what == What.CHANGE and row.sender is None:
                text = f"every other party {text}"
            others = len(set(row.lines) - {row.line})
            text += f", at this or {others} other line{'s' * (others > 1)}" if others else ""
        else:
            verb = VERBS.get(what, f"{quoted(what)}: ")
            plain = row.form == "plain"
            text = f"{amounts(payloads)} in plain" if plain else protected(row.form, payloads)
            reader = reader_of(row.type, self.names.of(row.receiver))
            if reader is not None:
                text = f"{amounts(payloads)}, sealed for {'its reader' if several else reader}"
            text = verb + text + " each" * several
        if discloses:
            owners = listed(f"{self.names.of(rank)}'s" for rank in discloses)
            text = f"DISCLOSES {owners} data: {text}"
        is_plain = row.when == When.ONCE or what in (What.FAILURE, What.CHANGE)
        often = "" if is_plain else f", {row.when}"
        return printable(text + often)
