"""Decorators of feops: ``@feop`` and ``@simple_op``."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from mplang_core.errors import FeConfigError
from mplang_core.feop.program import FeProgram, PFunction, flatten
from mplang_core.feop.registry import registry
from mplang_core.feop.state import state_of
from mplang_core.ir import AnyType, Attr, Effects, OpDef, Operation, op_defs
from mplang_core.ir.opdef import REQUIRED
from mplang_core.ir.source_line import trace_errors
from mplang_core.mask import Mask
from mplang_core.types import BaseType, MPType

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import FeMeta, Feop


def feop(**fields: Any) -> Callable[[Callable[..., Any]], Feop]:
    """Declare a callable as a feop and register it.

    The callable, a function or an instance, gets ``__feop_meta__`` and ``__get_state__(ctx)``,
    which returns its state mapping by ``state_scope``.

    Args:
        **fields: the fields of :class:`~mplang_core.ext.FeMeta`; without ``name``, it is that of
            the callable, behind ``family``.

    Returns:
        A decorator that returns the same callable.

    Raises:
        FeConfigError: a field is unknown or invalid; the message names it and the feop.
        PluginConflictError: another provider has a feop of that name.

    Example:
        >>> @feop(name="demo.noop", op_kind="transform")
        ... def noop(program):
        ...     '''Return a program unchanged.'''
        ...     return program
        >>> is_feop(noop), noop.__feop_meta__.family
        (True, 'demo')
    """
    from mplang_core.feop.meta import FeMeta

    given = FeMeta(**fields) if "name" in fields or "family" not in fields else None

    def mark(fn: Callable[..., Any]) -> Feop:
        meta = given or FeMeta(name=f"{fields['family']}.{fn.__name__}", **fields)
        op = cast("Feop", fn)
        op.__feop__ = True
        op.__feop_meta__ = meta
        op.__get_state__ = lambda ctx=None: state_of(meta.name, meta.state_scope, ctx)
        registry.register(op)
        return op

    return mark


def is_feop(x: object) -> bool:
    """Return whether an object is a feop."""
    return bool(getattr(x, "__feop__", False))


def meta_of(op: Any) -> FeMeta:
    """Return the metadata of a feop.

    Raises:
        AttributeError: the object is not a feop.
    """
    return cast("FeMeta", op.__feop_meta__)


def simple_op(
    name: str,
    *,
    effects: Effects = Effects.ANY,
    interfaces: Sequence[object] = (),
    reads: tuple[str, ...] | Callable[[Operation], tuple[str, ...]] | None = None,
    total: bool | Callable[[Operation], bool] = False,
    **fields: Any,
) -> Callable[[Callable[..., Any]], Feop]:
    """Declare an op and its feop by one function of types.

    The function takes the base types of the operands by position and the attributes by
    keyword, and returns the base types of the results (one, or a nest of them). It raises
    ``TypeError`` or ``ValueError`` if the op is not allowed. It runs when a program is traced,
    and again wherever the program is verified.

    The feop takes values where the function takes types, and returns a :class:`FeProgram`,
    which :func:`mplang_core.peval` runs. Kernels implement the op: :func:`mplang_core.kernel`.

    Args:
        name: ``family.op``; also the opcode.
        effects: its effects beyond its results; by default passes leave the op unchanged.
        interfaces: its op interfaces, as in :class:`~mplang_core.ir.OpDef`.
        reads: the names of private data that it reads, or a function of the op that returns
            them; ``()`` for none, as in ``OpDef``.
        total: whether it never fails because of the values of its operands, or a function of the
            op that returns it, as in ``OpDef``.
        **fields: further fields of :class:`~mplang_core.ext.FeMeta`.

    Returns:
        A decorator of the function. It returns the feop.

    Raises:
        FeConfigError: a field is invalid, or the function has ``*args``, ``**kwargs`` or an
            operand whose annotation is not a base type.
        PluginConflictError: another provider has an op of that name.

    Example:
        >>> from mplang_core.types import TensorType
        >>> @simple_op("demo.scale")
        ... def scale(x: TensorType, *, by: float = 2.0) -> TensorType:
        ...     '''Multiply a tensor by a number.'''
        ...     return x
        >>> class X:
        ...     type = TensorType("f32", (3,))
        >>> print(*scale(X(), by=3).pfunc.outs_info)
        f32[3]
    """

    def declare(fn: Callable[..., Any]) -> Feop:
        operands, attrs = _read_signature(name, fn)

        def apply(types: Sequence[BaseType], values: dict[str, Any]) -> Any:
            _check_operands(operands, types)
            return fn(*types, **values)

        def infer(op: Operation, world: Mask) -> Sequence[AnyType]:
            types = [cast(BaseType, value.type) for value in op.inputs]
            return flatten(apply(types, dict(op.attrs)))[0]

        doc = inspect.getdoc(fn) or ""
        traits: Any = {"effects": effects, "interfaces": interfaces, "reads": reads, "total": total}
        op_def = OpDef(name, infer, attrs=attrs, doc=doc, **traits)
        op_defs.add(name, op_def, provider=fn.__module__.partition(".")[0], override=_again(fn))

        @feop(name=name, **{"dialects": (name.partition(".")[0],), **fields})
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> FeProgram:
            inputs, in_tree = flatten(args)
            with trace_errors(name):
                types = tuple(_base(value) for value in inputs)
                values = op_def.complete(kwargs)
                op_def.check_attrs(values)
                outs, out_tree = flatten(apply(types, values))
            pfunc = PFunction(name, types, tuple(outs), values)
            return FeProgram(pfunc, in_tree, out_tree, tuple(inputs), meta={"name": name})

        return call

    return declare


def _again(fn: Callable[..., Any]) -> bool:
    """Return whether an op may be redefined: a notebook cell may run twice, a plugin does not."""
    return fn.__module__ == "__main__"


def _base(value: Any) -> BaseType:
    kind = getattr(value, "type", None)
    if isinstance(kind, MPType):
        return kind.base
    if isinstance(kind, BaseType):
        return kind
    raise TypeError(
        "it takes multi-party values by position and attributes by keyword; "
        f"got a {type(value).__name__} by position (a literal becomes a value by mp.constant)"
    )


def _check_operands(expected: Sequence[type[BaseType]], types: Sequence[BaseType]) -> None:
    if len(expected) != len(types):
        raise TypeError(f"expected {len(expected)} operands, got {len(types)}")
    for i, (cls, found) in enumerate(zip(expected, types, strict=True)):
        if not isinstance(found, cls):
            raise TypeError(f"operand {i}: expected {cls.__name__}, got {found}")


def _read_signature(
    name: str, fn: Callable[..., Any]
) -> tuple[list[type[BaseType]], dict[str, Attr]]:
    hints = typing.get_type_hints(fn)
    operands: list[type[BaseType]] = []
    attrs: dict[str, Attr] = {}
    for param in inspect.signature(fn).parameters.values():
        hint = hints.get(param.name, BaseType)
        if param.kind is param.KEYWORD_ONLY:
            default = REQUIRED if param.default is param.empty else param.default
            attrs[param.name] = Attr(_kinds(name, param.name, hint), default)
        elif param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD):
            raise FeConfigError(f"{name}: a simple op has no *args or **kwargs; name each operand")
        else:
            if not isinstance(hint, type) or not issubclass(hint, BaseType):
                raise FeConfigError(
                    f"{name}: {param.name!r} stands by position, so it is an operand, and its "
                    f"annotation a type of mplang, got {hint}; an attribute stands behind a `*`"
                )
            operands.append(hint)
    return operands, attrs


def _kinds(op: str, attr: str, hint: Any) -> tuple[type, ...]:
    """Return the classes of an attribute's values by its annotation."""
    if hint is Any:
        return (object,)
    origin = typing.get_origin(hint)
    if isinstance(hint, types.UnionType) or origin is typing.Union:
        return tuple(kind for part in typing.get_args(hint) for kind in _kinds(op, attr, part))
    if origin is typing.Literal:
        return tuple({type(value) for value in typing.get_args(hint)})
    kind = origin or hint
    if not isinstance(kind, type):
        raise FeConfigError(f"{op}: the annotation of {attr!r} is not a class: {hint}")
    return (tuple if kind is list else kind,)
