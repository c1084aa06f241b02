"""Pass ``link_modules``: neighbouring modules of StableHLO become one. Imports no JAX."""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass, field

from mplang_passes.ext import rewrite_graphs, rewrite_ops, rewrite_regions

from mplang_core import Program, TensorType
from mplang_core.ext import Graph, Operation, Value
from mplang_stablehlo.interface import module_of
from mplang_stablehlo.source_parts import parts_of, remember_parts
from mplang_stablehlo.text import Facts, facts_of, signature_of
from mplang_stablehlo.writer import ModuleWriter, Name

MAX_LINES = 5000
"""Maximum number of lines that modules have together, each counted at every call.

Compiling takes about 30 ms, and 0.01 ms per line of elementwise ops. A product, a sum or a loop
takes tens of milliseconds at every call, so of such a module there is one call in a group: the
steps of a long training fall into groups of equal code, which are compiled once.
"""
MAX_VALUES = 3000  # operands and results


def link_modules(program: Program) -> Program:
    """Link the neighbouring modules of StableHLO of a party into one.

    So an engine is called once for all of them, keeps values between them to itself, and fuses
    loops over elements. A sum of products may be rounded once instead of twice.

    Only ops that implement :class:`RunsStableHlo` are linked, with equal engines; they have no
    effects besides their results, so they may run earlier than other ops. The op stands at the
    line of the first one; :func:`mplang_stablehlo.source_parts.parts_of` knows the others.

    Example:
        >>> import mplang_core as mp
        >>> def program(x):
        ...     return mp.simp.pcall_static(0, lambda x: x + 1, x + 1)
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), program, 1).program
        >>> from mplang_passes import fuse_pcalls
        >>> (call,) = link_modules(fuse_pcalls(traced)).graph.ops
        >>> [op.opcode for op in call.regions["do"].ops]
        ['jax.run']
    """
    return rewrite_graphs(program, _link)


def _link(graph: Graph) -> Graph:
    scan = _Scan()
    for op in graph.ops:
        scan.add(rewrite_regions(op, _link))
    used, ops = set(graph.outputs), list[Operation]()
    for item in reversed(scan.items):
        linked = [item] if isinstance(item, Operation) else item.linked(used)
        used.update(value for op in linked for value in op.inputs)
        ops += reversed(linked)
    return rewrite_ops(graph, ops[::-1])


@dataclass(slots=True, eq=False)
class _Group:
    """Group of ops to link.

    Attributes:
        parts: the ops in order.
        codes: their modules.
        lines: how many lines these have together.
        values: their operands and results.
        heavy: the modules among them that take long to compile.
    """

    parts: list[Operation] = field(default_factory=list)
    codes: list[bytes] = field(default_factory=list)
    lines: int = 0
    values: set[Value] = field(default_factory=set)
    heavy: set[bytes] = field(default_factory=set)

    def admits(self, op: Operation, code: bytes, facts: Facts) -> bool:
        """Return whether there is room for an op."""
        total = len(self.values) + len(op.inputs) + len(op.outputs)
        fits = self.lines + facts.lines <= MAX_LINES and total <= MAX_VALUES
        return fits and code not in self.heavy

    def join(self, op: Operation, code: bytes, facts: Facts) -> None:
        self.parts.append(op)
        self.codes.append(code)
        self.lines += facts.lines
        self.values.update(op.inputs, op.outputs)
        if not facts.is_light:
            self.heavy.add(code)

    def linked(self, used: Set[Value]) -> list[Operation]:
        """Return one op with the results that others use; the parts if that is refused."""
        outputs = [v for part in self.parts for v in part.outputs if v in used]
        if len(self.parts) == 1 or not outputs:
            return self.parts
        made = self._one(outputs)
        return self.parts if made is None else [made]

    def _one(self, outputs: Sequence[Value]) -> Operation | None:
        defined = {value for part in self.parts for value in part.outputs}
        takes: dict[Value, TensorType] = {}
        for part, code in zip(self.parts, self.codes, strict=True):
            for value, kind in zip(part.inputs, signature_of(code)[0], strict=True):
                if value not in defined:
                    takes[value] = kind
        writer = ModuleWriter(list(takes.values()))
        names: dict[Value, Name] = dict(zip(takes, writer.operands, strict=True))
        for part, code in zip(self.parts, self.codes, strict=True):
            results = writer.call(code, [names[value] for value in part.inputs])
            names.update(zip(part.outputs, results, strict=True))
        code = writer.code([names[value] for value in outputs])
        return linked(self.parts, code, tuple(takes), outputs)


def linked(
    parts: Sequence[Operation], code: bytes, ins: Sequence[Value], outs: Sequence[Value]
) -> Operation | None:
    """Return one op that does what several do, and remember their lines.

    Args:
        parts: the ops, which implement :class:`RunsStableHlo` for one engine.
        code: a module that does what they do together.
        ins: its operands.
        outs: its results.

    Returns:
        The op; ``None`` if there are no parts, or their engine refuses the code.
    """
    how = module_of(parts[0]) if parts else None
    made = None if how is None else how.linked(parts, code, ins, outs)
    if made is not None:
        own = [(part.location, _code(part)) for part in parts]
        remember_parts(
            code, [x for line, each in own for x in parts_of(each, line) or [(line, each)]]
        )
    return made


def _code(op: Operation) -> bytes:
    how = module_of(op)
    assert how is not None
    return how.code(op)


@dataclass(slots=True)
class _Scan:
    """Scan of the ops of a graph for groups.

    Attributes:
        items: what becomes of them, in order.
        position: per value the item that defines it.
        open: per engine the position of the group that may grow.
    """

    items: list[Operation | _Group] = field(default_factory=list)
    position: dict[Value, int] = field(default_factory=dict)
    open: dict[Hashable, int] = field(default_factory=dict)

    def add(self, op: Operation) -> None:
        how = module_of(op)
        if how is None:
            at = len(self.items)
            self.items.append(op)
        else:
            at = self._join(op, how.engine(op), how.code(op))
        for value in op.outputs:
            self.position[value] = at

    def _join(self, op: Operation, engine: Hashable, code: bytes) -> int:
        at, facts = self.open.get(engine, -1), facts_of(code)
        group = self.items[at] if at >= 0 else None
        ready = max((self.position.get(value, -1) for value in op.inputs), default=-1)
        fits = isinstance(group, _Group) and ready <= at and group.admits(op, code, facts)
        if not isinstance(group, _Group) or not fits:
            at = self.open[engine] = len(self.items)
            group = _Group()
            self.items.append(group)
        group.join(op, code, facts)
        return at
