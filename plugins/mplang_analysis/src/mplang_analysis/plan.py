"""Plan of the queries of a program: what runs at which owner, by which engine, and what moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mplang_analysis import plan_svg, plan_text
from mplang_analysis.op_traits import base_of, is_joint
from mplang_analysis.ops_among import ops_among
from mplang_analysis.party_names import PartyNames, quoted
from mplang_analysis.phrases import amount
from mplang_analysis.plan_chart import PlanChart, PlanStep
from mplang_analysis.prompt_text import shortened
from mplang_analysis.report import Drawing
from mplang_analysis.type_size import payload
from mplang_core import Form, MPType, Program
from mplang_core.ext import (
    Graph,
    MPLangError,
    Operation,
    QueriesSources,
    interface_of,
    messages_of,
    printable,
    unpack,
)

LONGEST = 300
"""Characters of a query that are shown."""


@dataclass(frozen=True, slots=True, repr=False)
class QueryPlan(Drawing, PlanChart):
    """A plan that draws itself, as SVG or in characters."""

    def text(self, columns: int = 80) -> str:
        """Return the plan in characters: a line for each step, with who runs it.

        Args:
            columns: its width.
        """
        return "\n".join(plan_text.draw(self, columns))

    def rich(self) -> object:
        """Return the plan for rich: as wide as the terminal, up to 100 columns."""
        return plan_text.RichPlan(self)

    def html(self) -> str:
        """Return the plan as HTML: inline SVG for wide and narrow columns."""
        return plan_svg.draw(self)

    def svg(self) -> str:
        """Return the plan as a document of SVG, which loads nothing."""
        return plan_svg.document(self)


def plan_of(
    program: Program, graph: Graph, names: PartyNames, runs: Sequence[tuple[Operation, int, str]]
) -> QueryPlan:
    """Return the plan of a program.

    Args:
        program: the program.
        graph: its graph after the passes.
        names: the names of its parties.
        runs: per query or reading its op, the party, and what runs it, in words.
    """
    lanes = tuple(map(names.of, names.parties))
    lane = {rank: i for i, rank in enumerate(names.parties)}
    known: dict[Operation, list[tuple[int, str]]] = {}
    for op, rank, text in runs:
        known.setdefault(op, []).append((rank, text))
    steps: list[PlanStep] = []
    for op, parties in ops_among(graph, program.mask):
        for rank, text in known.get(op, ()):
            code = _code(op) if interface_of(op, QueriesSources) is not None else ""
            steps.append(PlanStep("query", (lane[rank],), text, code))
        if op in known:
            continue
        if len(parties) > 1 and not op.regions and _is_together(op):
            ranks = tuple(lane[rank] for rank in parties)
            secret = _is_secret(op)
            title = "together, on shares" if secret else "together"
            steps.append(PlanStep("together", ranks, title, printable(op.opcode), secret))
        steps.extend(_moves(op, program, lane))
    for value in graph.outputs:
        kind = value.type
        if isinstance(kind, MPType) and kind.pmask is not None:
            ranks = tuple(lane[rank] for rank in kind.pmask)
            secret = kind.base.form is not Form.PLAIN
            text = quoted(kind.base.form.value) if secret else amount(str(payload(kind.base)))
            steps.append(PlanStep("result", ranks, "result", text, secret))
    return QueryPlan(f"Plan of {quoted(program.name)}", lanes, tuple(_folded(steps)))


def _is_together(op: Operation) -> bool:
    return is_joint(op) and not any(isinstance(value.type, MPType) for value in op.inputs)


def _is_secret(op: Operation) -> bool:
    values = (*op.inputs, *op.outputs)
    return any(base_of(value.type).form is not Form.PLAIN for value in values)


def _moves(op: Operation, program: Program, lane: dict[int, int]) -> Iterator[PlanStep]:
    """Yield the messages of an op among parties, those to several receivers as one."""
    kinds = [value.type for value in (*op.inputs, *op.outputs)]
    if not any(isinstance(kind, MPType) for kind in kinds) or op.regions:
        return
    by_sender: dict[tuple[int, str, bool], list[int]] = {}
    for each in messages_of(op, program.mask) or ():
        kind = each.type
        if kind is None and each.operand is not None:
            kind = base_of(op.inputs[each.operand].type)
        if kind is not None and each.sender != each.receiver:
            secret = kind.form is not Form.PLAIN
            text = quoted(kind.form.value) if secret else amount(str(payload(kind)))
            by_sender.setdefault((each.sender, text, secret), []).append(each.receiver)
    for (sender, text, secret), receivers in by_sender.items():
        lanes = (lane[sender], *(lane[rank] for rank in receivers))
        yield PlanStep("move", lanes, "", text, secret)


def _folded(steps: Iterable[PlanStep]) -> Iterator[PlanStep]:
    """Yield steps, equal ones that follow each other as one; moves of values in between count."""
    waiting: dict[PlanStep, int] = {}
    for step in steps:
        if waiting and (step.kind != "move" or next(iter(waiting)).kind != "move"):
            if step in waiting:
                waiting[step] += 1
                continue
            yield from _counted(waiting)
            waiting = {}
        waiting[step] = waiting.get(step, 0) + 1
    yield from _counted(waiting)


def _counted(steps: Mapping[PlanStep, int]) -> Iterator[PlanStep]:
    for step, many in steps.items():
        yield replace(step, text=f"{many} × {step.text}") if many > 1 else step


def _code(op: Operation) -> str:
    """Return the query of an op, shortened; empty if it cannot be read."""
    for value in op.attrs.values():
        if isinstance(value, bytes):
            try:
                text = unpack(value)
            except (ValueError, MPLangError):
                continue
            return shortened(printable(" ".join(text.split())), LONGEST)
    return ""
