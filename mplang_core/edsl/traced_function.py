"""Traced functions: programs with their calling convention, and their calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mplang_core.display import Displayed
from mplang_core.edsl.context import Cluster, MPContext, MPObject, Placement, find_ctx
from mplang_core.edsl.interp import InterpContext, InterpVar, data_of
from mplang_core.edsl.literals import (
    MAX_LITERAL,
    constant,
    is_literal,
    literal_type,
    read_args,
    warn_of_data,
)
from mplang_core.errors import TraceError
from mplang_core.feop import ContextBound, flatten, unflatten
from mplang_core.feop.program import PyTreeDef
from mplang_core.ir import Graph, Program, Value, print_program
from mplang_core.ir.source_line import at
from mplang_core.types import BaseType, MPType

ARGUMENT_ADVICE = (
    f"an argument of more than {MAX_LITERAL} elements is a plain array: all parties get it. If it "
    "is private, mp.put it at its party first, inside of `with mp.with_ctx(host):`, and pass the "
    "value. If it is meant to be public, write mp.public(...) around it"
)


@dataclass(frozen=True, slots=True, repr=False)
class TracedFunction(ContextBound, Displayed):
    """Traced function: a program and its calling convention.

    It can be called where its program may stand: on a host, which runs it, or in a function that is
    traced, where it becomes a ``func.call``.

    Attributes:
        program: the program; its inputs are the parameters, then the captured values.
        in_struct: the structure of the arguments.
        in_leaves: per leaf of the arguments the type of a parameter, or a static literal.
        out_struct: the structure of the results.
        out_devices: per result its device; ``None`` for none.
        out_uniform: per result whether all holders have the same value.
        captures: the captured values of enclosing contexts.
        cluster_spec: the cluster that it was traced for; ``None`` if it was not traced here.
    """

    program: Program
    in_struct: PyTreeDef
    in_leaves: tuple[Any, ...]
    out_struct: PyTreeDef
    out_devices: tuple[Placement | None, ...]
    out_uniform: tuple[bool, ...]
    captures: tuple[MPObject, ...] = ()
    cluster_spec: Cluster | None = None

    @classmethod
    def of(cls, program: Program) -> TracedFunction:
        """Return a program as a function of its inputs, which are on no device.

        Args:
            program: as parsed or read from bytes. It returns its output, or a tuple of several.
        """
        inputs, outs = program.graph.inputs, program.graph.outputs
        _, in_struct = flatten((tuple(inputs), {}))
        _, out_struct = flatten(outs[0] if len(outs) == 1 else tuple(outs))
        types, nothing = tuple(value.type for value in inputs), (None,) * len(outs)
        return cls(program, in_struct, types, out_struct, nothing, (False,) * len(outs))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it on a host, or emit a ``func.call``; see :func:`apply` for the arguments."""
        ctx = find_ctx(flatten((args, kwargs))[0])
        if isinstance(ctx, InterpContext):
            return apply(ctx, self, *args, **kwargs)
        return call_op(ctx, "func.call", self, args, kwargs)

    def __repr__(self) -> str:
        return f"<TracedFunction {self.program!r}>"

    @property
    def name(self) -> str:
        """The function's name."""
        return self.program.name

    @property
    def in_vars(self) -> list[Value]:
        """The parameters in the graph, without the captured values."""
        inputs = self.program.graph.inputs
        return inputs[: len(inputs) - len(self.captures)]

    @property
    def out_vars(self) -> list[Value]:
        """The results in the graph."""
        return self.program.graph.outputs

    @property
    def capture_map(self) -> dict[MPObject, Value]:
        """The captured values, each with its input in the graph."""
        return dict(zip(self.captures, self.program.graph.inputs[len(self.in_vars) :], strict=True))

    def compiler_ir(self, *, locations: bool = True) -> str:
        """Return the program as text, which :func:`mplang_core.parse` reads.

        Args:
            locations: whether to include source lines.
        """
        return print_program(self.program, locations=locations)

    def region(self, captures: Sequence[MPObject]) -> Graph:
        """Return the graph with given captures, in this order, as its last inputs.

        A capture that the function does not use becomes an unused input.
        """
        mine = {id(obj): value for obj, value in self.capture_map.items()}
        local = any(isinstance(value.type, BaseType) for value in self.program.graph.inputs)
        extra = [
            mine.get(id(obj)) or Value(obj.base_type if local else obj.type) for obj in captures
        ]
        graph = self.program.graph
        return Graph(self.in_vars + extra, graph.ops, graph.outputs)


def call_op(ctx: MPContext, opcode: str, tfn: TracedFunction, args: Any, kwargs: Any) -> Any:
    """Emit a call of a traced function as one op.

    Args:
        ctx: a trace.
        opcode: ``func.call`` or ``func.launch``.
        tfn: the function.
        args: values of the trace or of one around it, or literals.
        kwargs: the same by keyword.

    Raises:
        TraceError: the arguments have another structure or other types.
    """
    operands = []
    for i, (leaf, expected) in enumerate(_arguments(tfn, args, kwargs)):
        if isinstance(expected, MPType | BaseType):
            value = constant(leaf) if is_literal(leaf) else leaf
            found = value.base_type if isinstance(expected, BaseType) else value.type
            _check_type(tfn, i, found, expected)
            operands.append(value)
    graph = tfn.region(tfn.captures)
    outs = ctx.emit(opcode, [*operands, *tfn.captures], {"name": tfn.name}, {"body": graph})
    return unflatten(tfn.out_struct, place_results(ctx, outs, tfn))


def place_results(ctx: MPContext, outs: list[MPObject], tfn: TracedFunction) -> list[MPObject]:
    """Return the results of a traced function with their devices and uniformity."""
    marks = zip(outs, tfn.out_devices, tfn.out_uniform, strict=True)
    return [ctx.place(out, device, uniform) for out, device, uniform in marks]


def apply(ctx: InterpContext, tfn: TracedFunction, *args: Any, **kwargs: Any) -> Any:
    """Run a traced function in an interpreter.

    Args:
        ctx: the interpreter, such as a host.
        tfn: the function.
        *args: values of that interpreter, or literals, with the structure and the types that
            the function was traced for.
        **kwargs: the same by keyword.

    Returns:
        The result of the function; its leaves are values of the interpreter.

    Raises:
        TraceError: the arguments have another structure or other types.
    """
    inputs = []
    for i, (leaf, expected) in enumerate(_arguments(tfn, args, kwargs)):
        if isinstance(expected, MPType):
            inputs.append(_argument(ctx, tfn, i, leaf, expected))
    for obj in tfn.captures:
        inputs.append(data_of(ctx.adopt(obj)))
    results = ctx.evaluate(tfn.program, inputs)
    outs: list[MPObject] = [
        InterpVar(ctx, out.type, result)  # type: ignore[arg-type]
        for out, result in zip(tfn.out_vars, results, strict=True)
    ]
    return unflatten(tfn.out_struct, place_results(ctx, outs, tfn))


def _arguments(tfn: TracedFunction, args: Any, kwargs: Any) -> list[tuple[Any, Any]]:
    """Return the leaves of arguments, each with what it was traced as."""
    leaves, struct = read_args(args, kwargs)
    if struct != tfn.in_struct:
        raise TraceError(
            f"{at()}{tfn.name} was traced for arguments nested as {tfn.in_struct}, got {struct}",
            code="T005",
        )
    pairs = list(zip(leaves, tfn.in_leaves, strict=True))
    for i, (leaf, expected) in enumerate(pairs):
        if not isinstance(expected, MPType | BaseType) and not _is_same(leaf, expected):
            raise TraceError(
                f"{at()}argument {i} of {tfn.name} is compiled in as {expected!r}, got {leaf!r}",
                code="T005",
            )
    return pairs


def _check_type(tfn: TracedFunction, i: int, found: Any, expected: Any) -> None:
    if found != expected:
        raise TraceError(
            f"{at()}argument {i} of {tfn.name} was traced as {expected}, got {found}; "
            "compile it again for other types",
            code="T005",
        )


def _argument(ctx: InterpContext, tfn: TracedFunction, i: int, leaf: Any, expected: MPType) -> Any:
    found: Any
    if isinstance(leaf, MPObject):
        found = leaf.type
    elif is_literal(leaf):
        found = MPType(literal_type(leaf), ctx.mask)
    else:
        found = type(leaf).__name__
    _check_type(tfn, i, found, expected)
    warn_of_data(leaf, ARGUMENT_ADVICE)
    return data_of(ctx.adopt(leaf)) if isinstance(leaf, MPObject) else ctx.lift(leaf)


def _is_same(leaf: Any, expected: Any) -> bool:
    """Return whether an argument equals the literal that was compiled in."""
    if isinstance(leaf, MPObject):  # == would run an op
        return False
    try:
        return leaf is expected or bool(leaf == expected)
    except (TypeError, ValueError):  # an array has no truth value
        return False
