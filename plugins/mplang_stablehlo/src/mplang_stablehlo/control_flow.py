"""Pass ``convert_control_flow``: loops and branches without messages become StableHLO's.

Imports no JAX.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from mplang_passes import effects_of
from mplang_passes.ext import rewrite_graphs, rewrite_ops, rewrite_regions

from mplang_core import Mask, MPType, Program, TensorType
from mplang_core.ext import (
    Branch,
    Call,
    Effects,
    Forwards,
    Graph,
    Loop,
    Operation,
    PartyCall,
    PublicLiteral,
    Value,
    control_of,
    holders_of,
    interface_of,
    messages_of,
    op_defs,
)
from mplang_stablehlo.interface import module_of
from mplang_stablehlo.link import linked
from mplang_stablehlo.text import text_of_type
from mplang_stablehlo.writer import ModuleWriter, Name

MAX_CLASSES = 8
"""Maximum number of groups of parties that do different things in a loop; each gets its own."""


def convert_control_flow(program: Program) -> Program:
    """Convert loops and branches among parties that exchange nothing to StableHLO's own.

    Each party runs such a loop as one module, so a turn costs what the engine makes of it. The
    regions have nothing but ``pcall``s of StableHLO, literals, and ops that give one of their
    operands, all at known parties; predicates are not compared. Parties that hold or do different
    things get a loop of their own.

    Example:
        >>> import mplang_core as mp
        >>> def program(n):
        ...     return mp.while_loop(lambda i: i < n, lambda i: i + 1, 0, verify_uniform=False)
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program, 5).program
        >>> [op.opcode for op in convert_control_flow(traced).graph.ops]
        ['simp.constant', 'simp.pcall_static']
    """
    return rewrite_graphs(program, partial(_convert, program.mask))


def _convert(world: Mask, graph: Graph) -> Graph:
    ops = list[Operation]()
    for op in graph.ops:
        converted = None
        if isinstance(control_of(op), Loop | Branch) and op.outputs:
            converted = _converted(op, world)
        ops += converted or [rewrite_regions(op, partial(_convert, world))]
    return rewrite_ops(graph, ops)


def _converted(op: Operation, world: Mask) -> list[Operation] | None:
    """Return what becomes of a loop or branch; ``None`` if it stays."""
    classes = None if effects_of(op) is Effects.ANY else _classes(op, world)
    if classes is None:
        return None
    literals = {value: each for each in _inner(op) if _is_literal(each) for value in each.outputs}
    moved = {value: Value(value.type) for value in literals}
    ops = [
        Operation(each.opcode, each.inputs, (moved[value],), each.attrs, {}, each.location)
        for value, each in literals.items()
    ]
    made: dict[Value, list[Value]] = defaultdict(list)
    for parties in classes:
        held = _held(parties, world, op.outputs)
        call = _call(op, parties, world, moved) if held else None
        if call is not None:
            ops.append(call)
        elif held:
            return None
        for value, result in zip(held, call.outputs if call else (), strict=True):
            made[value].append(result)
    joined = [
        Operation("simp.converge", tuple(parts), (value,), {}, {}, op.location)
        for value, parts in made.items()
        if parts != [value]
    ]
    return [*ops, *joined]


def _inner(op: Operation) -> Iterator[Operation]:
    for region in op.regions.values():
        for each in region.ops:
            yield each
            yield from _inner(each)


def _is_literal(op: Operation) -> bool:
    """Return whether an op is a literal among parties, which may stand before the loop."""
    among_parties = all(isinstance(value.type, MPType) for value in op.outputs)
    return among_parties and interface_of(op, PublicLiteral) is not None


def _classes(op: Operation, world: Mask) -> list[Mask] | None:
    """Return the parties by what they hold and do; ``None`` if it is unknown, or too many."""
    masks = set[Mask]()
    regions = [region for each in (op, *_inner(op)) for region in each.regions.values()]
    values = {*op.inputs, *op.outputs, *(v for each in _inner(op) for v in each.outputs)}
    for value in values.union(*(region.inputs for region in regions)):
        if isinstance(value.type, MPType):
            if value.type.pmask is None:
                return None
            masks.add(value.type.pmask)
    found: dict[tuple[bool, ...], list[int]] = defaultdict(list)
    for rank in world:
        found[tuple(rank in mask for mask in masks)].append(rank)
    return (
        [Mask.from_ranks(ranks) for ranks in found.values()] if len(found) <= MAX_CLASSES else None
    )


class _StaysError(Exception):
    """The loop has something that is not StableHLO."""


def _call(
    op: Operation, parties: Mask, world: Mask, literals: Mapping[Value, Value]
) -> Operation | None:
    """Return the call of what some parties do in a loop or branch; ``None`` if it stays."""
    held = partial(_held, parties, world)
    given, constants, gives = list(dict.fromkeys(held(op.inputs))), held(literals), held(op.outputs)
    try:
        takes = [_tensor(value) for value in (*given, *constants)]
        outs = tuple(Value(_tensor(value)) for value in gives)
        writer = ModuleWriter(takes)
        names = dict(zip((*given, *constants), writer.operands, strict=True))
        translation = _Translation(writer, held, world, names)
        translation.write(op)
    except _StaysError:
        return None
    code = writer.code([names[value] for value in gives])
    ins = tuple(map(Value, takes))
    made = linked(translation.parts, code, ins, outs)
    if made is None:
        return None
    operands = (*given, *(literals[value] for value in constants))
    types = (MPType(_tensor(value), parties) for value in gives)
    results = tuple(
        v if v.type == kind else Value(kind) for v, kind in zip(gives, types, strict=True)
    )
    body = {"do": Graph(list(ins), [made], list(outs))}
    return Operation(
        "simp.pcall_static", operands, results, {"parties": parties}, body, op.location
    )


def _held(parties: Mask, world: Mask, values: Iterable[Value]) -> list[Value]:
    """Return the values that parties hold."""
    return [value for value in values if parties <= holders_of(value.type, world)]


def _tensor(value: Value) -> TensorType:
    base = value.type.base if isinstance(value.type, MPType) else value.type
    if not isinstance(base, TensorType):
        raise _StaysError
    return base


class _Translation:
    """Translation of what some parties do, who hold and do the same.

    Args:
        writer: of the module.
        held: returns those of some values that the parties hold.
        world: the parties of the program.
        names: the values that are known, by those of the graphs; it grows.

    Attributes:
        parts: the ops whose modules are called.
    """

    def __init__(
        self,
        writer: ModuleWriter,
        held: Callable[[Iterable[Value]], list[Value]],
        world: Mask,
        names: dict[Value, Name],
    ) -> None:
        self.parts: list[Operation] = []
        self._writer = writer
        self._held = held
        self._world = world
        self._names = names

    def write(self, op: Operation) -> None:
        """Write an op, and name its results.

        Raises:
            _StaysError: it is not StableHLO.
        """
        outs = self._held(op.outputs)
        results = self._results(op) if outs else []
        self._names.update(zip(outs, results, strict=True))

    def _results(self, op: Operation) -> list[Name]:
        match control_of(op):
            case PartyCall(region) | Call(region):
                return self._region(op.regions[region], op.inputs)
            case Loop(condition, body, compared=False):
                return self._loop(op, op.regions[condition], op.regions[body])
            case Branch(taken, compared=False):
                return self._branch(op, {value: op.regions[name] for name, value in taken})
            case None:
                return self._simple(op)
        raise _StaysError

    def _region(self, region: Graph, inputs: Sequence[Value]) -> list[Name]:
        """Write a region for its operands; return the results that the parties hold."""
        pairs = zip(region.inputs, inputs, strict=True)
        self._names.update((param, self._names[x]) for param, x in pairs if x in self._names)
        return self._body(region)

    def _body(self, region: Graph) -> list[Name]:
        for op in region.ops:
            if not _is_literal(op):
                self.write(op)
        return [self._names[value] for value in self._held(region.outputs)]

    def _loop(self, op: Operation, condition: Graph, body: Graph) -> list[Name]:
        states = [i for i, value in enumerate(op.outputs) if self._held([value])]

        def region(graph: Graph, state: Sequence[Name]) -> list[Name]:
            params = zip(graph.inputs, op.inputs, strict=True)
            self._names.update((param, self._names[x]) for param, x in params if x in self._names)
            self._names.update((graph.inputs[i], x) for i, x in zip(states, state, strict=True))
            return self._body(graph)

        return self._writer.loop(
            [self._names[op.inputs[i]] for i in states],
            lambda state: region(condition, state)[0],
            lambda state: region(body, state),
        )

    def _branch(self, op: Operation, regions: Mapping[int, Graph]) -> list[Name]:
        if set(regions) != {0, 1}:
            raise _StaysError
        types = [text_of_type(_tensor(value)) for value in self._held(op.outputs)]
        then, otherwise = (partial(self._region, regions[i], op.inputs[1:]) for i in (1, 0))
        return self._writer.branch(self._names[op.inputs[0]], types, then, otherwise)

    def _simple(self, op: Operation) -> list[Name]:
        how = module_of(op)
        if how is not None:
            self._check_engine(op, how.engine(op))
            self.parts.append(op)
            return self._writer.call(how.code(op), [self._names[value] for value in op.inputs])
        return [
            self._names[self._source(op, i)] for i, v in enumerate(op.outputs) if self._held([v])
        ]

    def _check_engine(self, op: Operation, engine: Hashable) -> None:
        first = module_of(self.parts[0]) if self.parts else None
        if first is not None and first.engine(self.parts[0]) != engine:
            raise _StaysError

    def _source(self, op: Operation, output: int) -> Value:
        """Return the operand that an output is a copy of."""
        forwards, op_def = interface_of(op, Forwards), op_defs.get(op.opcode)
        if forwards is None or op_def is None or op_def.may_fail(op):
            raise _StaysError
        if messages_of(op, self._world) != ():
            raise _StaysError
        held = self._held(op.inputs[k] for k in forwards.sources(op, output))
        if len(held) != 1:
            raise _StaysError
        return held[0]
