"""Contracts of feops, held where they are called: inputs, outputs, stability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mplang_core.errors import FeCapabilityError, StabilityWarning
from mplang_core.ir.source_line import at, warn
from mplang_core.types import BaseType, Form, TensorType

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import FeMeta, IOSpec

_warned: set[str] = set()  # experimental feops that were used


def check_inputs(meta: FeMeta, values: Sequence[Any]) -> None:
    """Check the operands of a feop against its ``inputs`` and capabilities.

    As many specifications as operands hold one by one; else, and for a compiler, each operand fits
    one of them.

    Args:
        meta: the feop's metadata.
        values: the operands, with a ``base_type``.

    Raises:
        FeCapabilityError: an operand does not fit; the message tells which, and what is expected.
    """
    can = meta.capabilities
    for i, value in enumerate(values):
        kind, visibility = value.base_type, _visibility(value)
        specs = _specs(meta, meta.inputs, i, len(values))
        if not _fits(kind, visibility, specs, can.input_types, can.supports_visibility):
            found = f"operand {i} is {visibility or 'a'} {kind}"
            wanted = _shown(specs, can.input_types, can.supports_visibility)
            raise FeCapabilityError(f"{at()}{meta.name}: {found}; it takes {wanted}")


def check_outputs(meta: FeMeta, types: Sequence[BaseType]) -> None:
    """Check the results of a feop against its ``outputs`` and capabilities.

    Args:
        meta: the feop's metadata.
        types: the base types of the results.

    Raises:
        FeCapabilityError: a result does not fit; the message tells which, and what was declared.
    """
    can = meta.capabilities
    for i, kind in enumerate(types):
        specs = _specs(meta, meta.outputs, i, len(types))
        visibility = "SECRET" if _is_secret(kind) else None
        if not _fits(kind, visibility, specs, can.output_types):
            wanted = _shown(specs, can.output_types)
            text = f"result {i} is {kind}, and its outputs are declared as {wanted}"
            raise FeCapabilityError(f"{at()}{meta.name}: {text}")


def _specs(meta: FeMeta, specs: Sequence[IOSpec], i: int, count: int) -> Sequence[IOSpec]:
    return (specs[i],) if len(specs) == count and meta.op_kind != "compiler" else specs


def _fits(
    kind: BaseType,
    visibility: str | None,
    specs: Sequence[IOSpec],
    names: Sequence[str],
    seen: Sequence[str] = (),
) -> bool:
    mine = {kind.name, kind.dtype.value if isinstance(kind, TensorType) else kind.name}
    one_fits = any(spec.accepts(kind) and _sees(visibility, spec.visibility) for spec in specs)
    named = not names or not mine.isdisjoint(names)
    return named and (one_fits or not specs) and _sees(visibility, seen)


def _shown(specs: Sequence[IOSpec], names: Sequence[str], seen: Sequence[str] = ()) -> str:
    parts = [" or ".join(map(str, specs)), " or ".join(names), " or ".join(seen)]
    return ", ".join(part for part in parts if part)


def _is_secret(kind: BaseType) -> bool:
    return kind.form not in (Form.PLAIN, Form.KEY)


def _visibility(value: Any) -> str | None:
    """Return who may know a value; ``None`` for a plain one whose holders are not known here."""
    if _is_secret(value.base_type):
        return "SECRET"
    if (ctx := getattr(value, "ctx", None)) is None:
        return None
    everywhere = not ctx.is_local and value.device is None and value.uniform
    return "PUBLIC" if everywhere and value.pmask == ctx.mask else "PRIVATE"


def _sees(visibility: str | None, allowed: Sequence[str]) -> bool:
    if not allowed or visibility in allowed:
        return True
    if visibility is None:
        return not {"PUBLIC", "PRIVATE"}.isdisjoint(allowed)
    return visibility == "PUBLIC" and "PRIVATE" in allowed


def tell_stability(meta: FeMeta) -> None:
    """Warn of an experimental feop, once in a process, at the user's line."""
    stability = meta.capabilities.stability
    if stability.level == "stable" or meta.name in _warned:
        return
    notes = f": {stability.notes}" if stability.notes else ""
    text = f"{meta.name} is experimental; it may change in any release{notes}"
    warn(text, StabilityWarning)
    _warned.add(meta.name)  # not if a filter makes it an error, which is raised each time
