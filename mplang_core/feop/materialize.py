"""Materialization of programs: choice of a compiler, configuration, determinism check."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from operator import eq, ge, le
from typing import TYPE_CHECKING, Any, cast

from mplang_core.errors import FeCapabilityError, FeConfigError, FeDeterminismError
from mplang_core.feop.decorator import is_feop, meta_of
from mplang_core.feop.program import FeBuilder, FeProgram, flatten
from mplang_core.feop.registry import registry
from mplang_core.ir import normalize
from mplang_core.ir.compressed_text import unpack
from mplang_core.types import BaseType, TensorType

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import FeMeta, Feop

CHECK = "MPLANG_CHECK_DETERMINISM"

_COUNT: dict[str, Callable[[int, int], bool]] = {"=": eq, ">=": ge, "<=": le}


def unmet(meta: FeMeta, kind: str, members: int, world_size: int | None = None) -> list[str]:
    """Return the requirements of a feop that a device does not meet.

    Args:
        meta: the feop's metadata.
        kind: the name of the device's kind.
        members: the number of its members.
        world_size: the number of parties of the cluster; ``None`` if it is not known.
    """
    reasons = []
    if meta.targets and kind not in meta.targets:
        reasons.append(f"targets are {', '.join(meta.targets)}, the device is a {kind}")
    need = meta.capabilities.requires_device
    if need is not None:
        if need.kind and kind not in need.kind:
            reasons.append(f"it requires a {' or '.join(need.kind)}, the device is a {kind}")
        if not _holds(members, need.members):
            reasons.append(f"it requires {need.members} members, the device has {members}")
    world = meta.capabilities.requires_world_size
    if world is not None and world_size is not None and not _holds(world_size, world):
        reasons.append(f"it requires a cluster of {world} parties, this one has {world_size}")
    return reasons


def _holds(found: int, wanted: str) -> bool:
    sign = wanted.rstrip("0123456789")
    return _COUNT[sign](found, int(wanted[len(sign) :]))


def misfit(meta: FeMeta, members: int) -> list[str]:
    """Return why a feop's execution model does not suit a number of members.

    An op of one party runs on devices of one member, an op of several parties on devices of
    several. Transforms, and ops that the host runs, fit all devices.
    """
    if meta.op_kind == "transform" or meta.execution_model == "in_controller":
        return []
    if meta.execution_model == "single_rank" and members != 1:
        return [f"it runs at one party, the device has {members}"]
    if meta.execution_model == "multi_party" and members == 1:
        return ["several parties run it together, the device has one"]
    return []


def compiler_for(kind: str, members: int, types: Sequence[BaseType]) -> Feop:
    """Return the feop that compiles plain Python functions for a kind of device.

    Args:
        kind: the name of the device's kind.
        members: the number of its members.
        types: the base types of the operands.

    Raises:
        FeCapabilityError: no installed frontend compiles such functions, or several do.
    """
    compilers = _compilers(registry.load_all(), kind, members)
    taking = [op for op in compilers if _takes(meta_of(op), types)]
    if len(taking) == 1:
        return taking[0]
    shown = ", ".join(map(str, types)) or "no operands"
    if taking:
        names = ", ".join(meta_of(op).name for op in taking)
        raise FeCapabilityError(
            f"several frontends compile a function of ({shown}) for a {kind}: {names}; "
            "call the one that you mean, and pass what it gives"
        )
    everywhere = registry.find(predicate=lambda meta: meta.op_kind == "compiler")
    known = ", ".join(meta_of(op).name for op in everywhere) or "none"
    raise FeCapabilityError(
        f"no frontend compiles a Python function of ({shown}) for a {kind} of {members}; "
        f"compilers here: {known}. For functions of arrays: pip install mplang-jax"
    )


@functools.lru_cache(maxsize=256)
def _compilers(version: int, kind: str, members: int) -> list[Feop]:
    """Return the compilers for a device; ``version`` of the registry is part of the cache key."""
    return [
        op
        for op in registry.find(predicate=lambda meta: meta.op_kind == "compiler")
        if not unmet(meta_of(op), kind, members) and not misfit(meta_of(op), members)
    ]


def _takes(meta: FeMeta, types: Sequence[BaseType]) -> bool:
    kinds = {spec.kind.lower() for spec in meta.inputs}
    if not types:  # a function without operands returns arrays
        return not kinds or TensorType.name in kinds
    return not kinds or all(kind.name.lower() in kinds for kind in types)


def fe_materialize(
    op: Callable[..., Any],
    *args: Any,
    kind: str = "PPU",
    members: int = 1,
    config: Any = None,
    **kwargs: Any,
) -> FeProgram:
    """Return the program of a feop or a plain Python function for arguments.

    Args:
        op: a feop; or a Python function, whose compiler is chosen by metadata.
        *args: nests whose leaves are values (with a ``base_type``) or literals.
        kind: the name of the kind of device that will run the program.
        members: the number of members of that device.
        config: the configuration for a feop with a schema: an instance, or its fields.
        **kwargs: attributes of the feop, or literals for the function.

    Returns:
        The program; its ``inputs`` are the values among the arguments.

    Raises:
        FeCapabilityError: no installed frontend compiles such a function, or several do.
        FeConfigError: the configuration does not fit the feop's schema.
        FeDeterminismError: with ``MPLANG_CHECK_DETERMINISM=1`` every program is built twice,
            and the two differ.

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
    if is_feop(op) and meta_of(op).op_kind != "compiler":
        return _built(op, meta_of(op), args, {**kwargs, **_options(meta_of(op), config)})
    leaves, _ = flatten(args)
    types = [leaf.base_type for leaf in leaves if hasattr(leaf, "base_type")]
    compiler = compiler_for(kind, members, types)
    options = _options(meta_of(compiler), config)
    build = FeBuilder(lambda signature: compiler(op, signature, **options))
    return _built(build, meta_of(compiler), args, kwargs)


def _built(build: Callable[..., Any], meta: FeMeta, args: Any, kwargs: Any) -> FeProgram:
    program = _build(build, args, kwargs)
    if os.environ.get(CHECK, "") not in ("", "0"):
        check_same(meta.name, program, _build(build, args, kwargs))
    return program


def _build(build: Callable[..., Any], args: Any, kwargs: Any) -> FeProgram:
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
    a, b = one.pfunc, other.pfunc
    if (a.fn_type, a.ins_info, a.outs_info) != (b.fn_type, b.ins_info, b.outs_info):
        raise FeDeterminismError(f"{name} gave two programs of different types: {a} and {b}")
    for attr in sorted({*a.attrs, *b.attrs}):
        lines = [_lines(pfunc.attrs.get(attr)) for pfunc in (a, b)]
        for i, (mine, theirs) in enumerate(zip_longest(*lines)):
            if mine != theirs:
                raise FeDeterminismError(
                    f"{name} gave two programs for the same arguments; they differ in line "
                    f"{i + 1} of {attr!r}:\n  - {mine}\n  + {theirs}"
                )


def _lines(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{key} = {line}" for key in sorted(value) for line in _lines(value[key])]
    if isinstance(value, bytes):
        try:
            return unpack(value).split("\n")
        except ValueError:
            return [value.hex()]
    return [repr(normalize(value))]
