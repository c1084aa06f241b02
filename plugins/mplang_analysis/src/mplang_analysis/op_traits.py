"""Traits of ops that the taint analysis asks for, beyond types and interfaces.

If a plugin declares nothing, the answer is the one that hides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core import BaseType, Form, MPType, registry
from mplang_core.ext import AnyType, FeMeta, Operation

PROTECTED = (Form.SHARE, Form.CIPHERTEXT, Form.HANDLE)


def base_of(kind: AnyType) -> BaseType:
    """Return what each holder has."""
    return kind.base if isinstance(kind, MPType) else kind


def acts_together(op: Operation) -> bool:
    """Tell whether the parties that run an op may learn of each other's operands by it.

    They do where it takes shares, and where its feop is not ``single_rank``. An op that has
    no feop of its own name (``jax.run``, which ``jax.compile`` emits) is judged by its family.
    Of an op among parties, or one with regions, that is no op of the core, nothing is known.
    """
    values = (*op.inputs, *op.outputs)
    if op.regions or any(isinstance(value.type, MPType) for value in values):
        return True
    if any(base_of(value.type).form is Form.SHARE for value in op.inputs):
        return True
    metas = _metas(op)
    return not metas or any(meta.execution_model != "single_rank" for meta in metas)


def opens(op: Operation, output: BaseType) -> bool:
    """Tell whether an output is less protected than an operand: decrypted, or put together."""
    forms = {base_of(value.type).form for value in op.inputs}
    if output.form is Form.PLAIN:
        return not forms.isdisjoint(PROTECTED)
    return output.form is Form.SHARE and not forms.isdisjoint((Form.CIPHERTEXT, Form.HANDLE))


def reads_own_data(op: Operation, output: int) -> bool:
    """Tell whether an output may hold data of the party that runs the op, not of an operand.

    An op without operands must get its outputs from somewhere: a data set, say. They are not
    private only if they are keys, or are declared ``PUBLIC``, or come of compiled code.
    """
    if op.inputs or base_of(op.outputs[output].type).form is Form.KEY:
        return False
    own = registry.feops.get(op.opcode)
    if own is not None:
        declared = own.__feop_meta__.outputs
        if output < len(declared) and "PUBLIC" in declared[output].visibility:
            return False
    return not any(meta.op_kind == "compiler" for meta in _metas(op))


def _metas(op: Operation) -> Sequence[FeMeta]:
    """Return the metadata of the op's feop, or else of all feops of its family."""
    own = registry.feops.get(op.opcode)
    if own is not None:
        return [own.__feop_meta__]
    family = [feop.__feop_meta__ for _, feop in registry.feops]
    return [meta for meta in family if meta.family == op.dialect]
