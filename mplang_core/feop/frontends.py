"""Choice of the frontend that compiles a plain Python function."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mplang_core.errors import FeCapabilityError, FeConfigError
from mplang_core.feop.decorator import meta_of
from mplang_core.feop.registry import registry
from mplang_core.feop.requirements import Target, unmet
from mplang_core.ir.source_line import at, trace_errors
from mplang_core.suggest import install_hint
from mplang_core.types import BaseType, TensorType

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import FeMeta, Feop

_OWN = 3  # the rank of a function that a frontend calls its own

preferred_here: ContextVar[tuple[str, ...]] = ContextVar("mplang_frontends", default=())
"""The families of :func:`frontend`, innermost first."""


@contextlib.contextmanager
def frontend(*families: str) -> Iterator[None]:
    """Prefer frontends for the functions that are called inside of ``with``.

    A function is compiled by the compiler that is called, as in
    ``mp.device("P0")(jax_compile)(fn, x)``. Else those that take its operands on that device are
    asked. If some call the function their own, since it names their package, these are left. Of
    several, the first of these counts:

    1. the first family in ``frontends`` of the device, then of the cluster;
    2. that of ``with mp.frontend(…)``;
    3. the one that takes functions that name no frontend, as ``jax`` and ``ibis`` do.

    Args:
        *families: the families, such as ``"jax"``, the preferred one first.

    Raises:
        FeConfigError: no compiler of that family is installed.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     x = mp.put("P0", [1.0, 2.0])
        ...     with mp.frontend("jax"):
        ...         return mp.device("P0")(lambda x: x * 2)(x)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        array([2., 4.])
    """
    _check_families(families)
    token = preferred_here.set((*families, *preferred_here.get()))
    try:
        yield
    finally:
        preferred_here.reset(token)


def compiler_for(
    fn: Callable[..., Any],
    kind: Target,
    members: int,
    types: Sequence[BaseType],
    frontends: Sequence[str] = (),
) -> Feop:
    """Return the feop that compiles a plain Python function for a kind of device.

    Args:
        fn: the function.
        kind: the device's kind.
        members: the number of its members.
        types: the base types of the operands.
        frontends: the families that device and cluster prefer.

    Raises:
        FeConfigError: a preferred family has no compiler.
        FeCapabilityError: no installed frontend compiles such functions, or several do, and
            none is preferred; see :func:`frontend`.
        TraceError: one failed when it was asked.
    """
    families = (*frontends, *preferred_here.get())
    _check_families(families)
    taking = _compilers(registry.load_all(), kind, members, tuple(types))
    if not taking:
        raise FeCapabilityError(_nobody(kind, members, types))
    if len(taking) == 1:
        return taking[0]
    answers = [_answer(meta_of(op), fn, types) for op in taking]
    own = [op for op, answer in zip(taking, answers, strict=True) if answer == _OWN]
    for family in families:
        preferred = [op for op in own or taking if meta_of(op).family == family]
        if len(preferred) == 1:
            return preferred[0]
    best = [op for op, answer in zip(taking, answers, strict=True) if answer == max(answers)]
    if len(best) == 1:
        return best[0]
    names = [meta_of(op).name for op in best]
    raise FeCapabilityError(
        f"{at()}several frontends compile a function of ({_shown(types)}) for a {kind.name}: "
        f"{', '.join(names)}; say which one, as in `with mp.frontend({meta_of(best[0]).family!r}):`"
        f", in `frontends` of the cluster, or by a call of mp.registry.get({names[0]!r}) on the "
        "device, with the function as first argument"
    )


def _answer(meta: FeMeta, fn: Callable[..., Any], types: Sequence[BaseType]) -> int:
    """Return a rank: its own, one that it takes, no answer, one that it takes if it is asked to."""
    if meta.understands is None:
        return 1
    with trace_errors(f"understands of {meta.name}"):
        return {True: _OWN, None: 2, False: 0}[meta.understands(fn, tuple(types))]


def has_compiler(kind: Target, members: int, types: Sequence[BaseType]) -> bool:
    """Return whether a frontend compiles Python functions for a kind of device.

    Args:
        kind: the device's kind.
        members: the number of its members.
        types: the base types of the operands.
    """
    return bool(_compilers(registry.load_all(), kind, members, tuple(types)))


def _nobody(kind: Target, members: int, types: Sequence[BaseType]) -> str:
    by_reason: dict[str, list[str]] = {}
    for meta in map(meta_of, registry.find(predicate=lambda meta: meta.op_kind == "compiler")):
        reason = _against(meta, kind, members, types)[0]
        by_reason.setdefault(reason, []).append(meta.name)
    known = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())
    text = f"{at()}no frontend compiles a Python function of ({_shown(types)}) for a "
    text += f"{kind.name} of {members}. Compilers here: {known or 'none'}. "
    if types and not all(isinstance(found, TensorType) for found in types):
        return text + "Call a feop on the device that takes such values, as `mplang ops` lists them"
    return f"{text}For functions of arrays, {install_hint('jax')}"


def _against(meta: FeMeta, kind: Target, members: int, types: Sequence[BaseType]) -> Sequence[str]:
    """Return the reasons against compiling a function of some operands for a kind of device."""
    reasons = [*unmet(meta, members), *kind.reasons_against(meta, members)]
    return reasons if takes(meta, types) else [*reasons, "it takes no such operands"]


def _shown(types: Sequence[BaseType]) -> str:
    return ", ".join(map(str, types)) or "no operands"


@functools.lru_cache(maxsize=256)
def _compilers(version: int, kind: Target, members: int, types: tuple[BaseType, ...]) -> list[Feop]:
    """Return the compilers for a device and operands; cached by the ``version`` of the registry."""

    def fits(meta: FeMeta) -> bool:
        return meta.op_kind == "compiler" and not _against(meta, kind, members, types)

    return registry.find(predicate=fits)


@functools.lru_cache(maxsize=256)
def _families(version: int) -> set[str]:
    """Return the families with a compiler."""
    found = registry.find(predicate=lambda meta: meta.op_kind == "compiler")
    return {meta_of(op).family for op in found}


def _check_families(families: Sequence[str]) -> None:
    known = _families(registry.load_all()) if families else set()
    for family in families:
        if family not in known:
            raise FeConfigError(
                f"{at()}frontends: no compiler of the family {family!r} is installed; "
                f"{install_hint(str(family), known)}"
            )


def takes(meta: FeMeta, types: Sequence[BaseType]) -> bool:
    """Return whether a compiler takes operands of some types, by the kinds of its inputs."""
    if not types:  # a function without operands returns arrays
        return not meta.inputs or any(spec.kind == "Tensor" for spec in meta.inputs)
    return not meta.inputs or all(
        any(spec.accepts(found) for spec in meta.inputs) for found in types
    )
