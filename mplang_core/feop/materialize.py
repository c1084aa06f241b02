"""Materialization of programs: from feops and Python functions, checked against metadata."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from mplang_core.errors import FeConfigError, FeDeterminismError, TraceError
from mplang_core.feop.contracts import check_inputs, check_outputs, tell_stability
from mplang_core.feop.decorator import is_feop, meta_of
from mplang_core.feop.frontends import compiler_for
from mplang_core.feop.program import FeBuilder, FeProgram, FeSignature, flatten
from mplang_core.feop.requirements import PARTY_TARGET, Target
from mplang_core.ir.compressed_text import unpack
from mplang_core.ir.source_line import at, trace_errors

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import FeMeta


CHECK = "MPLANG_CHECK_DETERMINISM"


def checks_determinism() -> bool:
    """Return whether each program is built twice, and compared (``MPLANG_CHECK_DETERMINISM``)."""
    return os.environ.get(CHECK, "") not in ("", "0")


def fe_materialize(
    op: Callable[..., Any] | FeProgram,
    *args: Any,
    kind: Target = PARTY_TARGET,
    members: int = 1,
    config: Any = None,
    frontends: Sequence[str] = (),
    **kwargs: Any,
) -> FeProgram:
    """Return the program of a feop or a plain Python function for arguments.

    Args:
        op: a feop of any kind, or a Python function, whose compiler is chosen by metadata. A
            compiler takes the function as its first argument, then that function's arguments or
            one :class:`FeSignature`. A program is given the operands that it lacks.
        *args: nests whose leaves are values (with a ``base_type``) or literals.
        kind: the kind of device that will run the program; parties in plain by default.
        members: the number of members of that device.
        config: the configuration for a feop with a schema: an instance, or its fields.
        frontends: the families of compilers that are preferred; see :func:`mplang_core.frontend`.
        **kwargs: attributes of the feop, or literals for the function.

    Returns:
        The program; its ``inputs`` are the values among the arguments.

    Raises:
        FeCapabilityError: no installed frontend compiles such a function, or several do; or an
            operand or a result is none that the feop declares.
        FeConfigError: the configuration does not fit the feop's schema.
        FeDeterminismError: with ``MPLANG_CHECK_DETERMINISM=1`` every program is built twice,
            and the two differ.
        TraceError: a compiler is given no function, a program other operands than it takes, or
            the feop failed.

    Example:
        >>> import mplang_core as mp
        >>> @mp.simple_op("demo.twice")
        ... def twice(x: mp.TensorType) -> mp.TensorType:
        ...     '''Double a tensor.'''
        ...     return x
        >>> from mplang_core.ext import Operand
        >>> operand = Operand(mp.TensorType("f32", (3,)))
        >>> mp.fe_materialize(twice, operand).pfunc.fn_type
        'demo.twice'
    """
    if isinstance(op, FeProgram):
        return op.bound(*args, *([kwargs] if kwargs else []))
    if is_feop(op) and meta_of(op).op_kind != "compiler":
        return _built(op, meta_of(op), args, {**kwargs, **_options(meta_of(op), config)})
    if is_feop(op):
        compiler, (op, *args) = op, _with_function(op, args)  # type: ignore[assignment]
    else:
        types = [leaf.base_type for leaf in flatten(args)[0] if hasattr(leaf, "base_type")]
        compiler = compiler_for(op, kind, members, types, frontends)
    options = _options(meta_of(compiler), config)
    build = FeBuilder(lambda signature: compiler(op, signature, **options))
    if len(args) == 1 and isinstance(args[0], FeSignature):
        return _built(lambda: build.build(args[0]), meta_of(compiler), (), {})
    return _built(build, meta_of(compiler), args, kwargs)


def _with_function(compiler: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if not args or not callable(args[0]):
        name = meta_of(compiler).name
        raise TraceError(
            f"{at()}{name} compiles functions: it takes one as its first argument, as in "
            f"mp.device(...)(mp.registry.get({name!r}))(fn, x), got "
            f"{type(args[0]).__name__ if args else 'nothing'}"
        )
    return args


def _built(build: Callable[..., Any], meta: FeMeta, args: Any, kwargs: Any) -> FeProgram:
    if meta.inputs or meta.capabilities.input_types or meta.capabilities.supports_visibility:
        check_inputs(meta, [leaf for leaf in flatten(args)[0] if hasattr(leaf, "base_type")])
    program = _build(build, meta.name, args, kwargs)
    if checks_determinism():
        check_same(meta.name, program, _build(build, meta.name, args, kwargs))
    check_outputs(meta, program.pfunc.outs_info)
    tell_stability(meta)
    return program


def _build(build: Callable[..., Any], name: str, args: Any, kwargs: Any) -> FeProgram:
    with trace_errors(name):
        made = build(*args, **kwargs)
        return made(*args) if isinstance(made, FeBuilder) else cast(FeProgram, made)


def _options(meta: FeMeta, config: Any) -> dict[str, Any]:
    """Return the keyword argument for a feop's configuration, validated by its schema.

    Raises:
        FeConfigError: the configuration has another class, or an invalid field.
    """
    schema: Any = meta.config_schema
    if schema is None or config is None:
        return {}
    if isinstance(config, Mapping):
        try:
            config = schema(**config)
        except (TypeError, ValueError) as error:
            raise FeConfigError(f"{meta.name}: its configuration: {error}") from error
    if not isinstance(config, schema):
        raise FeConfigError(
            f"{meta.name}: its configuration is a {schema.__name__}, got a {type(config).__name__}"
        )
    return {"config": config}


def check_same(name: str, one: FeProgram, other: FeProgram) -> None:
    """Check that two programs of a feop for the same arguments are equal.

    Raises:
        FeDeterminismError: they differ; the message shows the first difference.
    """
    found = [program.pfunc for program in (one, other)]
    lines = [[f"{p.fn_type}: {p.ins_info} -> {p.outs_info}", *_lines(p.attrs)] for p in found]
    diff = list(difflib.unified_diff(lines[0], lines[1], n=0, lineterm=""))
    if diff:
        shown = "\n  ".join(diff[3:7])  # without its heading
        raise FeDeterminismError(
            f"{at()}{name} gave two programs for the same arguments:\n  {shown}\nA function draws "
            "no numbers and reads no clock or file; pass them as arguments"
        )


def _lines(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{key} = {line}" for key in sorted(value) for line in _lines(value[key])]
    with contextlib.suppress(ValueError, TypeError):  # what is not code
        return unpack(value).split("\n")
    return [repr(value)]
