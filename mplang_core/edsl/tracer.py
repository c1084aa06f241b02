"""Tracing context, and tracing of functions to programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from mplang_core.edsl.build import make_op
from mplang_core.edsl.context import Cluster, MPContext, MPObject, Placement, with_ctx
from mplang_core.edsl.literals import constant, is_literal, literal_type, read_args
from mplang_core.edsl.traced_function import TracedFunction
from mplang_core.errors import TraceError
from mplang_core.feop import flatten, unflatten
from mplang_core.ir import AnyType, Graph, Program, Value
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.types import BaseType, MPType


class TraceVar(MPObject):
    """Value of a graph under construction."""

    __slots__ = ("value",)

    def __init__(
        self,
        ctx: TraceContext,
        value: Value,
        device: Placement | None = None,
        uniform: bool = False,
    ) -> None:
        super().__init__(ctx, device, uniform)
        self.value = value

    @property
    def type(self) -> AnyType:
        """The type in the graph."""
        return self.value.type


class TraceContext(MPContext):
    """Context that appends ops to a graph.

    Args:
        cluster_spec: the parties and devices.
        parent: the enclosing context; its values are captured when they are used here.
        mask: the parties that take part; those of ``parent`` or the cluster by default.
        local: whether it builds the body of a ``pcall``.

    Attributes:
        graph: the graph so far; captured values are its last inputs.
        captures: the captured values of enclosing contexts by id, each with its value here.
        closed: whether the trace has ended; then no op can be appended.
    """

    def __init__(
        self,
        cluster_spec: Cluster,
        parent: MPContext | None = None,
        mask: Mask | None = None,
        *,
        local: bool = False,
    ) -> None:
        super().__init__(cluster_spec, parent)
        inherited = parent.mask if parent is not None else cluster_spec.mask
        self._mask = inherited if mask is None else mask
        self._local = local
        self.graph = Graph()
        self.captures: dict[int, tuple[MPObject, TraceVar]] = {}
        self.closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.mask}>"

    @property
    def mask(self) -> Mask:
        """The parties that take part."""
        return self._mask

    @property
    def is_local(self) -> bool:
        """Whether this is the body of a ``pcall``."""
        return self._local

    def fork(self, *, local: bool = False) -> TraceContext:
        """Return a context for a function or region of this one; ``local`` for a ``pcall``."""
        return TraceContext(self.cluster_spec, self, local=local or self._local)

    def parameter(
        self, type: AnyType, device: Placement | None = None, uniform: bool = False
    ) -> TraceVar:
        """Append an input to the graph and return its value.

        Args:
            type: its type; a base type in the body of a ``pcall``.
            device: its device; ignored in the body of a ``pcall``.
            uniform: whether all holders have the same value.
        """
        value = Value(type)
        self.graph.inputs.append(value)
        return TraceVar(self, value, None if self._local else device, uniform)

    def emit(
        self,
        opcode: str,
        inputs: Sequence[MPObject],
        attrs: Mapping[str, Any] | None = None,
        regions: Mapping[str, Graph] | None = None,
    ) -> list[MPObject]:
        """Append an op to the graph and return its results."""
        if self.closed:
            raise TraceError(f"{at()}{opcode} is applied in a trace that has ended", code="T004")
        operands = [cast(TraceVar, self.adopt(obj)).value for obj in inputs]
        op = make_op(opcode, operands, attrs, regions, self)
        self.graph.ops.append(op)
        return [TraceVar(self, value) for value in op.outputs]

    def adopt(self, obj: MPObject) -> MPObject:
        """Return a value as one of this context; capture it from an enclosing context."""
        return obj if obj.ctx is self else self.capture(obj)

    def capture(self, obj: MPObject) -> MPObject:
        """Return a value of an enclosing context as an input of the graph, one per value.

        Raises:
            TraceError: it belongs to no enclosing context, or its trace has ended.
        """
        if (known := self.captures.get(id(obj))) is not None:
            return known[1]
        if isinstance(obj.ctx, TraceContext) and obj.ctx.closed:
            raise TraceError(
                f"{at()}{obj!s} leaked out of the function that it was traced in, which has "
                "ended; return it from that function, and use what the call gives",
                code="T004",
            )
        if obj.ctx not in self.ancestors():
            raise TraceError(
                f"{at()}{obj!s} belongs to another context, one that is not around this "
                "one; pass it as an argument, or fetch it there first",
                code="T004",
            )
        seen = obj.base_type if self._local else obj.mptype
        var = self.parameter(seen, obj.device, obj.uniform)
        self.captures[id(obj)] = (obj, var)
        return var

    def place(
        self, obj: MPObject, device: Placement | None, uniform: bool | None = None
    ) -> MPObject:
        """Return the same value with another device and uniformity."""
        here = cast(TraceVar, self.adopt(obj))
        return TraceVar(self, here.value, device, here.uniform if uniform is None else uniform)


def trace(ctx: TraceContext, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> TracedFunction:
    """Trace a function: run it on abstract values and record its ops.

    Args:
        ctx: the enclosing context; its values are captured where the function uses them.
        fn: the function.
        *args: per leaf a multi-party value, an ``MPType``, an array or a number (public:
            known to all parties), or any other literal, which is passed as it is. A list of
            plain numbers is an array.
        **kwargs: the same by keyword.

    Returns:
        The traced function.

    Raises:
        TraceError: the function cannot be traced; the message has the user's line.

    Example:
        >>> import mplang_core as mp
        >>> context = mp.TraceContext(mp.ClusterSpec.simple(2))
        >>> traced = mp.trace(context, lambda x: mp.pshfl_s(x, 1, [0]), 7)
        >>> [str(value.type) for value in traced.out_vars]
        ['i64[]@{1}']
    """
    made = trace_into(ctx.fork(), fn, args, kwargs)
    if isinstance(ctx.parent, TraceContext):  # a part of a program
        return made
    return replace(made, program=ctx.cluster_spec.settle(made.program))


def trace_into(
    inner: TraceContext,
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    literals: bool = True,
) -> TracedFunction:
    """Trace a function into a new context and close it.

    Args:
        inner: the context.
        fn: the function.
        args: its arguments.
        kwargs: its keyword arguments.
        literals: whether numbers and arrays become parameters; else they are passed as
            they are.
    """
    read = read_args if literals else lambda args, kwargs: flatten((tuple(args), dict(kwargs)))
    leaves, in_struct = read(args, kwargs)
    filled, in_leaves = [], []
    for leaf in leaves:
        type = _abstract(leaf, inner) if literals or isinstance(leaf, MPObject) else None
        in_leaves.append(leaf if type is None else type)
        filled.append(leaf if type is None else _parameter(inner, type, leaf))
    call_args, call_kwargs = unflatten(in_struct, filled)
    _check_call(fn, call_args, call_kwargs)
    try:
        with with_ctx(inner):
            result = fn(*call_args, **call_kwargs)
            outs, out_struct = flatten(result)
            vars = [_result(inner, out, fn) for out in outs]
    finally:
        inner.closed = True
    inner.graph.outputs = [var.value for var in vars]
    captured = [outer for outer, _ in inner.captures.values()]
    return TracedFunction(
        Program(getattr(fn, "__name__", type_name(fn)), inner.mask, inner.graph),
        in_struct,
        tuple(in_leaves),
        out_struct,
        tuple(var.device for var in vars),
        tuple(var.uniform for var in vars),
        tuple(captured),
        inner.cluster_spec,
    )


def _check_call(fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Refuse arguments that a function does not take, before it is called."""
    try:
        found = inspect.signature(fn)
    except (TypeError, ValueError):
        return  # it has none
    try:
        found.bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(fn, "__name__", type_name(fn))
        raise TraceError(
            f"{at()}{name}{found} is called with other arguments: {error}; give one argument for "
            "each parameter, as in mp.evaluate(host, fn, x)",
            code="T005",
        ) from None


def _parameter(ctx: TraceContext, type: AnyType, leaf: Any) -> TraceVar:
    if isinstance(leaf, MPObject):
        return ctx.parameter(type, leaf.device, leaf.uniform)
    return ctx.parameter(type, uniform=is_literal(leaf))


def type_name(fn: object) -> str:
    """Return the class name of a callable that has no name."""
    return type(fn).__name__


def _abstract(leaf: Any, ctx: TraceContext) -> AnyType | None:
    if isinstance(leaf, MPObject):
        return leaf.base_type if ctx.is_local else leaf.type
    if isinstance(leaf, MPType | BaseType):
        return leaf
    if not is_literal(leaf):
        return None
    base = literal_type(leaf)
    return base if ctx.is_local else MPType(base, ctx.mask)


def _result(ctx: TraceContext, out: Any, fn: Callable[..., Any]) -> TraceVar:
    if isinstance(out, MPObject):
        return cast(TraceVar, ctx.adopt(out))
    name = getattr(fn, "__name__", type_name(fn))
    if is_literal(out):
        return cast(TraceVar, ctx.adopt(constant(out)))
    what = "a function" if callable(out) else f"a {type_name(out)}"
    raise TraceError(
        f"{at()}{name} returns {what}; a traced function returns multi-party values, numbers "
        "and arrays, in tuples, lists, dicts and dataclasses",
        code="T006",
    )
