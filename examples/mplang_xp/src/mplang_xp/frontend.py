"""The compiler ``xp.compile``: from a Python function and a signature to a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mplang_cache import compiled_once, packages_of
from mplang_core import BaseType, FeProgram, FeSignature, PFunction, TensorType, feop
from mplang_core.ext import (
    Caching,
    Capabilities,
    TraceError,
    flatten,
    raised,
)


def _understands(fn: Callable[..., Any], types: tuple[BaseType, ...]) -> bool:
    """Return whether a function names ``mplang_xp.xp``."""
    return "mplang_xp" in packages_of(fn)


@feop(
    name="xp.compile",
    op_kind="compiler",
    dialects=("xp",),
    inputs=({"kind": "Tensor"},),
    outputs=({"kind": "Tensor"},),
    understands=_understands,
    state_scope="process",
    capabilities=Capabilities(caching=Caching(scope="process")),
)
def xp_compile(fn: Callable[..., Any], signature: FeSignature) -> FeProgram:
    """Compile a function of arrays, written with the array API standard, for NumPy.

    Args:
        fn: calls functions of ``mplang_xp.xp``, or of ``x.__array_namespace__()``.
        signature: its arguments; a :class:`TensorType` stands for an array.

    Returns:
        A program of the op ``xp.run``.

    Raises:
        TraceError: the function does something else than such calls.

    Example:
        >>> from mplang_core import FeSignature, TensorType
        >>> from mplang_xp import xp
        >>> program = xp_compile(lambda x: xp.sum(x), FeSignature((TensorType("f32", (3,)),)))
        >>> print(program.pfunc.fn_type, *program.pfunc.outs_info)
        xp.run f32[]
    """
    from mplang_xp.namespace import Namespace

    def make() -> FeProgram:
        return _compile(fn, signature)

    def is_fixed(value: object) -> bool:
        return isinstance(value, Namespace)  # it does not change, though it is not a function

    return compiled_once(xp_compile, fn, signature, make, is_fixed=is_fixed)


def _compile(fn: Callable[..., Any], signature: FeSignature) -> FeProgram:
    from mplang_xp.namespace import Recorder, recorder

    takes = [kind for kind in signature.operands if isinstance(kind, TensorType)]
    record = Recorder([(kind.shape, kind.dtype.numpy) for kind in takes])
    token = recorder.set(record)
    try:
        result = fn(*signature.fill(record.inputs), **signature.kwargs)
        outputs, out_tree = flatten(result)
        code = record.code(outputs)
    except Exception as error:
        name = getattr(fn, "__name__", type(fn).__name__)
        raise TraceError(
            f"{raised(error)}the array API cannot trace {name}({', '.join(map(str, takes))}): "
            f"{type(error).__name__}: {error}"
        ) from error
    finally:
        recorder.reset(token)
    gives = tuple(TensorType.of(array.sample) for array in outputs)
    consts = tuple(const.sample for const in record.consts)
    ins = (*takes, *map(TensorType.of, consts))
    return FeProgram(
        PFunction("xp.run", ins, gives, {"code": code, "gives": gives}),
        in_tree=flatten(signature.args)[1],
        out_tree=out_tree,
        consts=consts,
        meta={"name": "xp.compile", "dialect": "xp", "version": "1"},
    )
