"""Traits of ops that the taint analysis asks for, beyond types and interfaces.

If a plugin declares nothing, the answer is the one that hides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core import BaseType, Form, Mask, MPType, TableType, TensorType, registry
from mplang_core.ext import AnyType, Effects, FeMeta, Operation, Value, op_defs

PROTECTED = frozenset([Form.SHARE, Form.CIPHERTEXT, Form.HANDLE])


def base_of(kind: AnyType) -> BaseType:
    """Return what each holder has."""
    return kind.base if isinstance(kind, MPType) else kind


def certain(kind: AnyType) -> Mask | tuple[()]:
    """Return the parties that hold a value for certain, by its type."""
    return () if not isinstance(kind, MPType) or kind.pmask is None else kind.pmask


def forms(values: Sequence[Value]) -> Sequence[Form]:
    """Return the forms of operands or outputs."""
    return [base_of(value.type).form for value in values]


def takes_shares(op: Operation) -> bool:
    """Return whether an operand is a share."""
    return Form.SHARE in forms(op.inputs)


def acts_together(op: Operation) -> bool:
    """Return whether the parties that run an op may learn of each other's operands by it.

    They do where it takes shares, and where its feop is not ``single_rank``. An op that has
    no feop of its own name (``jax.run``, which ``jax.compile`` emits) is judged by its family.
    Of an op among parties, or one with regions, that is not an op of the core, nothing is known.
    """
    values = (*op.inputs, *op.outputs)
    if op.regions or any(isinstance(value.type, MPType) for value in values):
        return True
    return takes_shares(op) or is_joint(op)


def is_joint(op: Operation) -> bool:
    """Return whether the kernels of the parties that run an op may send each other messages.

    They do not where its feop, or all feops of its family, are ``single_rank``.
    """
    metas = _metas(op)
    return not metas or any(meta.execution_model != "single_rank" for meta in metas)


def is_declared(op: Operation) -> bool:
    """Return whether a feop says how an op is run; of others, parties may get all by it."""
    return not op.regions and bool(_metas(op))


def has_keys(kind: BaseType) -> bool:
    """Return whether values of a type have keys: keys, public ones, and ciphertexts under them.

    A public key is plain, and of a type of its own. A tensor or a table may be the bytes of one,
    but nobody can tell of which.
    """
    if kind.form is Form.PLAIN:
        return not isinstance(kind, TensorType | TableType)
    return kind.form in (Form.KEY, Form.CIPHERTEXT)


def contents(op: Operation) -> Sequence[int]:
    """Return the positions of the plain operands that the op encrypts under other ones."""
    outs = (base_of(value.type) for value in op.outputs)
    inner = {each for out in outs if out.form is Form.CIPHERTEXT for each in out.params()}
    kinds = [base_of(value.type) for value in op.inputs]
    if not any(has_keys(kind) and kind not in inner for kind in kinds):
        return ()  # one of them may be the key
    return [i for i, kind in enumerate(kinds) if kind.form is Form.PLAIN and kind in inner]


def opens(takes: Sequence[Form], output: BaseType) -> bool:
    """Return whether an output is less protected than an operand: decrypted, or put together.

    Args:
        takes: the forms of the operands.
        output: the type of the output.
    """
    if output.form is Form.PLAIN:
        return not PROTECTED.isdisjoint(takes)
    return output.form is Form.SHARE and (Form.CIPHERTEXT in takes or Form.HANDLE in takes)


def reads(op: Operation) -> Sequence[str]:
    """Return the names of what an op may read of its party's data beside its operands.

    An op that does not declare what it reads may read everything.
    """
    op_def = op_defs.get(op.opcode)
    declared = None if op_def is None else op_def.reads
    if callable(declared):
        return declared(op)
    return (op.opcode,) if declared is None else declared


def makes_fresh(op: Operation) -> bool:
    """Return whether its keys are new and random, not made of operands or read somewhere."""
    op_def = op_defs.get(op.opcode)
    return op_def is not None and op_def.effects is Effects.FRESH


def may_fail(op: Operation) -> bool:
    """Return whether an op may fail because of the values of its operands."""
    op_def = op_defs.get(op.opcode)
    return op_def is None or op_def.may_fail(op)


def _metas(op: Operation) -> Sequence[FeMeta]:
    """Return the metadata of the op's feop, or else of all feops of its family."""
    own = registry.feops.get(op.opcode)
    if own is not None:
        return [own.__feop_meta__]
    family = [feop.__feop_meta__ for _, feop in registry.feops]
    return [meta for meta in family if meta.family == op.dialect]
