"""StableHLO modules: parsing, canonical text and portable artifacts. Imports JAX."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator

from jax._src.interpreters import mlir as jax_mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from jaxlib.mlir.passmanager import PassManager

STABLEHLO_VERSION = "1.9.0"
"""Version of StableHLO that code is written in: both XLA and SPU read it."""

_LOWER_VERSION = f"builtin.module(stablehlo-compatibility-expander{{target={STABLEHLO_VERSION}}})"
_EXPANDED = re.compile(r'\b(chlo|shape|sdy)\.|"mhlo\.')
"""Ops of dialects that an artifact has none of."""

_HINTS = ("mhlo.frontend_attributes", "sdy.sharding_rule")
"""Attributes of custom calls that only partitioning over several devices reads."""


RENEWED = 32
"""Modules of one MLIR context: to make one takes milliseconds, and it keeps all their literals."""
MAX_KEPT = 1 << 18
"""Bytes of text after which there is another one."""

_kept = threading.local()
_make_context = jax_mlir.make_ir_context
stablehlo.register_stablehlo_passes()


def parse(text: str | bytes) -> ir.Module:
    """Parse StableHLO, in an MLIR context that other modules of this thread have, too.

    Native code that runs without the GIL may not be given such a module, see :func:`parse_alone`.

    Raises:
        ir.MLIRError: MLIR's verifiers refuse it.
    """
    with shared_context(len(text)):
        return ir.Module.parse(text)


def shared_context(size: int = 0) -> ir.Context:
    """Return an MLIR context for a module of this thread, see :func:`parse`.

    Args:
        size: bytes of its text.
    """
    if getattr(_kept, "left", 0) <= 0:
        _kept.context, _kept.left = _make_context(), RENEWED
    _kept.left -= 1 + size * RENEWED // MAX_KEPT
    context: ir.Context = _kept.context
    return context


def parse_alone(text: str | bytes) -> ir.Module:
    """Parse StableHLO in a context of its own.

    Raises:
        ir.MLIRError: MLIR's verifiers refuse it.
    """
    with _make_context():
        return ir.Module.parse(text)


def artifact(text: str) -> bytes:
    """Return the portable artifact of StableHLO text.

    JAX's function makes an MLIR context for it, which takes four times as long as the rest. Where
    it has nothing to expand, one of its passes gives the same bytes.
    """
    if not _EXPANDED.search(text):
        with contextlib.suppress(ir.MLIRError):  # else it tells what is wrong
            module = parse(text)
            with module.context:
                PassManager.parse(_LOWER_VERSION).run(module.operation)
            made: bytes = stablehlo.serialize_portable_artifact(module, STABLEHLO_VERSION, True)
            return made
    expanded: bytes = _jax.mlir.serialize_portable_artifact(text, STABLEHLO_VERSION, True)
    return expanded


def canonical(text: str) -> str:
    """Return the same program without names, source lines, donations or later dialects.

    The portable artifact expands ``chlo`` ops and fixes the version; then the module is named
    ``main``, and attributes that no engine here reads are removed.
    """
    return canonical_of(artifact(text))


def canonical_of(artifact: bytes) -> str:
    """Return the canonical text of a portable artifact."""
    module = stablehlo.deserialize_portable_artifact(shared_context(len(artifact)), artifact)
    with module.context:
        module.operation.attributes["sym_name"] = ir.StringAttr.get("main")
        for op in module.body.operations:
            _remove(op.operation, "arg_attrs", "res_attrs")
        for op in walk(module.operation):
            if op.name == "stablehlo.custom_call":
                _remove(op, *_HINTS)
    return text_of(module)


@contextlib.contextmanager
def lowering_in_shared_context() -> Iterator[None]:
    """Make JAX lower functions of this thread in the context of :func:`parse`.

    For functions that are written as text: XLA, which runs without the GIL, may not compile them.
    """
    _kept.lowers = True
    try:
        yield
    finally:
        _kept.lowers = False


def _context_for_jax() -> ir.Context:
    return shared_context() if getattr(_kept, "lowers", False) else _make_context()


jax_mlir.make_ir_context = _context_for_jax


def text_of(module: ir.Module) -> str:
    """Return a module as text, without source lines."""
    text: str = module.operation.get_asm(enable_debug_info=False)
    return text


def walk(op: ir.Operation) -> Iterator[ir.Operation]:
    """Yield the ops inside of an op, as they are when the first one is asked for.

    They come in the order of the text: an op, what is in its regions, the one after it. They do not
    keep their module, other than ops of a block do: who keeps ops keeps the module as well.
    """
    ops: list[ir.Operation] = []

    def note(each: ir.Operation) -> ir.WalkResult:
        ops.append(each)
        return ir.WalkResult.ADVANCE

    op.walk(note, ir.WalkOrder.PRE_ORDER)
    yield from ops[1:]  # without itself, which is kept meanwhile


def attribute_names(op: ir.Operation) -> set[str]:
    """Return the names of an op's attributes.

    They are read by index: from jaxlib 0.8.1 on, an iteration gives names instead of attributes.
    """
    return {op.attributes[i].name for i in range(len(op.attributes))}


def number_columns(op: ir.Operation, name: str) -> list[int]:
    """Return the integers of an attribute.

    Args:
        op: the op.
        name: of the attribute.

    Returns:
        The integers; empty if the op has no such attribute.
    """
    if name not in op.attributes:
        return []
    found = op.attributes[name]
    if isinstance(found, ir.DenseIntElementsAttr):
        return list(map(int, found))
    return list(ir.DenseI64ArrayAttr(found))


def _remove(op: ir.Operation, *names: str) -> None:
    for name in names:
        if name in op.attributes:
            del op.attributes[name]
