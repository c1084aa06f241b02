"""Which feop turns a Python function into a program, and how it is asked to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mplang_core.errors import FeCapabilityError
from mplang_core.feop.decorator import Feop, is_feop, meta_of
from mplang_core.feop.meta import FeMeta
from mplang_core.feop.program import FeProgram, FeSignature, flatten, unflatten
from mplang_core.feop.registry import registry
from mplang_core.types import BaseType

__all__ = ["compiler_for", "fe_materialize", "unmet"]

_COUNT = {
    "=": lambda found, wanted: found == wanted,
    ">=": lambda found, wanted: found >= wanted,
    "<=": lambda found, wanted: found <= wanted,
}


def unmet(meta: FeMeta, kind: str, members: int) -> list[str]:
    """Return which of a feop's requirements a device does not meet; none means it fits.

    Args:
        meta: the feop's metadata.
        kind: the device's kind.
        members: how many parties are in it.
    """
    reasons = []
    if meta.targets and kind not in meta.targets:
        reasons.append(f"targets are {', '.join(meta.targets)}, the device is a {kind}")
    need = meta.capabilities.requires_device
    if need is not None:
        if need.kind and kind not in need.kind:
            reasons.append(f"it requires a {' or '.join(need.kind)}, the device is a {kind}")
        sign = need.members.rstrip("0123456789")
        if not _COUNT[sign](members, int(need.members[len(sign) :])):
            reasons.append(f"it requires {need.members} members, the device has {members}")
    if meta.execution_model == "single_rank" and members != 1:
        reasons.append(f"it runs at one party, the device has {members}")
    return reasons


def compiler_for(kind: str, members: int, types: Sequence[BaseType]) -> Feop:
    """Return the feop that compiles plain Python functions for a kind of device.

    Args:
        kind: the device's kind.
        members: how many parties are in it.
        types: base types of the operands.

    Raises:
        FeCapabilityError: no installed frontend does, or several do.
    """
    compilers = registry.find(predicate=lambda meta: meta.op_kind == "compiler")
    fitting = [op for op in compilers if not unmet(meta_of(op), kind, members)]
    taking = [op for op in fitting if _takes(meta_of(op), types)]
    if len(taking) == 1:
        return taking[0]
    shown = ", ".join(map(str, types)) or "no operands"
    if taking:
        names = ", ".join(meta_of(op).name for op in taking)
        raise FeCapabilityError(
            f"several frontends compile a function of ({shown}) for a {kind}: {names}; "
            "call the one that you mean, and pass what it gives"
        )
    known = ", ".join(meta_of(op).name for op in compilers) or "none"
    raise FeCapabilityError(
        f"no frontend compiles a Python function of ({shown}) for a {kind} of {members}; "
        f"compilers here: {known}. For functions of arrays: pip install mplang-jax"
    )


def _takes(meta: FeMeta, types: Sequence[BaseType]) -> bool:
    kinds = {spec.kind.lower() for spec in meta.inputs}
    return not kinds or all(kind.name.lower() in kinds for kind in types)


def fe_materialize(
    op: Callable[..., Any],
    *args: Any,
    kind: str = "PPU",
    members: int = 1,
    config: Any = None,
    **kwargs: Any,
) -> FeProgram:
    """Make a program of a feop or a plain Python function and its arguments.

    Args:
        op: a feop; or a Python function, for which a compiler is looked up by its metadata.
        *args: nests whose leaves are values (with a ``base_type``) or literals.
        kind: the kind of device that will run it.
        members: how many parties are in it.
        config: configuration for a compiler that has a schema of its own.
        **kwargs: attributes, or literals for the function.

    Raises:
        FeCapabilityError: nothing here compiles such a function.

    Returns:
        The program; its ``inputs`` are the values among the arguments.
    """
    if is_feop(op) and meta_of(op).op_kind != "compiler":
        return op(*args, **kwargs)  # type: ignore[no-any-return]
    leaves, spec = flatten(args)
    values = [leaf for leaf in leaves if hasattr(leaf, "base_type")]
    abstract = [leaf.base_type if hasattr(leaf, "base_type") else leaf for leaf in leaves]
    signature = FeSignature(tuple(unflatten(spec, abstract)), kwargs)
    compiler = compiler_for(kind, members, signature.operands)
    options: Mapping[str, Any] = {}
    if meta_of(compiler).config_schema is not None and config is not None:
        options = {"config": config}
    program = compiler(op, signature, **options)
    return FeProgram(
        program.pfunc,
        program.in_tree,
        program.out_tree,
        tuple(values),
        program.consts,
        program.meta,
    )
