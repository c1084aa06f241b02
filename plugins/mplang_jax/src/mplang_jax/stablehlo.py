"""StableHLO in its one canonical form, and what of it may run here. Imports JAX."""

from __future__ import annotations

import re

from jax._src.interpreters import mlir as jax_mlir
from jaxlib import _jax
from jaxlib.mlir import ir

__all__ = ["VERSION", "artifact", "canonical", "check_ops"]

VERSION = "1.9.0"
"""Written in a version that both XLA and SPU read."""

_TARGETS = re.compile(r"lapack_[a-z]+_ffi|mhlo\.(erf|topk)|Sharding")
_TALKING = {"infeed", "outfeed", "send", "recv", "create_token", "after_all"}


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


def check_ops(text: str) -> bool:
    """Refuse ops that are not known to be harmless: a Python callback is not, nor an infeed.

    Returns:
        Whether the program calls LAPACK.

    Raises:
        ValueError: an op or a custom call is not among those that are allowed; names it.
    """
    found: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "stablehlo.custom_call":
            found.add("custom_call @" + ir.StringAttr(op.attributes["call_target_name"]).value)
        else:
            found.add(op.name)
        return ir.WalkResult.ADVANCE

    _parse(text).operation.walk(visit)
    refused = sorted(name for name in found if not _allowed(name))
    if refused:
        raise ValueError(
            f"{', '.join(refused)} is not allowed in the code of a party: a Python callback "
            "cannot run there, nor what talks to a host"
        )
    return any(name.startswith("custom_call @lapack_") for name in found)


def _allowed(name: str) -> bool:
    if name.startswith("custom_call @"):
        return _TARGETS.fullmatch(name.removeprefix("custom_call @")) is not None
    if name.startswith("stablehlo."):
        return name.removeprefix("stablehlo.") not in _TALKING
    return name in ("builtin.module", "func.func", "func.call", "func.return")


def _parse(text: str | bytes) -> ir.Module:
    context = jax_mlir.make_ir_context()
    with context:
        return ir.Module.parse(text)
