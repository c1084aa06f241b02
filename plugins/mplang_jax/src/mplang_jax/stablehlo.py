"""StableHLO in its one canonical form, and what of it may run here. Imports JAX."""

from __future__ import annotations

import re

from jax._src.interpreters import mlir as jax_mlir
from jaxlib import _jax
from jaxlib.mlir import ir

__all__ = ["VERSION", "artifact", "canonical", "check_targets"]

VERSION = "1.9.0"
"""Written in a version that both XLA and SPU read."""

_ALLOWED_TARGETS = re.compile(r"lapack_[a-z]+(_ffi)?|mhlo\.(erf|topk)|Sharding")


def artifact(text: str) -> bytes:
    """Return the portable artifact of StableHLO text."""
    made: bytes = _jax.mlir.serialize_portable_artifact(text, VERSION, True)
    return made


def canonical(text: str) -> str:
    """Return the same program with no names, places, donations or later dialects in it.

    The way through the portable artifact writes ``chlo`` ops out and fixes the version;
    then the module is named ``main``, and the attributes of arguments and results go.
    """
    module = _parse(_jax.mlir.deserialize_portable_artifact(artifact(text)))
    with module.context:
        module.operation.attributes["sym_name"] = ir.StringAttr.get("main")
        for op in module.body.operations:
            for name in ("arg_attrs", "res_attrs"):
                if name in op.operation.attributes:
                    del op.operation.attributes[name]
        asm: str = module.operation.get_asm(enable_debug_info=False)
    return asm


def check_targets(text: str) -> bool:
    """Refuse custom calls that are not known to be harmless; a Python callback is not.

    Returns:
        Whether the program calls LAPACK.

    Raises:
        ValueError: a custom call has another target; names it.
    """
    targets: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "stablehlo.custom_call":
            targets.add(ir.StringAttr(op.attributes["call_target_name"]).value)
        return ir.WalkResult.ADVANCE

    _parse(text).operation.walk(visit)
    refused = sorted(target for target in targets if not _ALLOWED_TARGETS.fullmatch(target))
    if refused:
        raise ValueError(
            f"the code calls {', '.join(refused)}, which is not among the calls that are "
            "allowed (LAPACK, erf, top_k); Python callbacks cannot run at a party"
        )
    return any(target.startswith("lapack_") for target in targets)


def _parse(text: str | bytes) -> ir.Module:
    context = jax_mlir.make_ir_context()
    with context:
        return ir.Module.parse(text)
