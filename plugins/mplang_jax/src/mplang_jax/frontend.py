"""``jax.compile``: from a Python function and a signature to a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mplang_core import FeProgram, FeSignature, PFunction, TensorType, feop
from mplang_core.edsl.source import at
from mplang_core.errors import MPLangError, TraceError
from mplang_core.feop import Caching, Capabilities, flatten, unflatten
from mplang_core.ir.code import pack
from mplang_core.types import BaseType

__all__ = ["jax_compile", "jax_compile_from_data"]


@feop(
    name="jax.compile",
    op_kind="compiler",
    dialects=("stablehlo",),
    execution_model="single_rank",
    inputs=({"kind": "Tensor"},),
    outputs=({"kind": "Tensor"},),
    targets=("PPU", "TEE"),
    capabilities=Capabilities(caching=Caching(scope="process")),
)
def jax_compile(fn: Callable[..., Any], signature: FeSignature) -> FeProgram:
    """Compile a function of arrays to StableHLO, without its data.

    The same function and signature give the same bytes in every process. Arrays that the
    function closes over become operands (``consts``), so no data is in the code. If an
    operand has 64 bits, the whole function is compiled with 64-bit types; nothing is
    narrowed.

    Args:
        fn: a function that JAX can trace.
        signature: its arguments; a :class:`TensorType` stands for an array.

    Returns:
        A program of the op ``jax.run``.

    Raises:
        TraceError: JAX cannot trace it, or an operand is no tensor.

    Example:
        >>> from mplang_core import FeSignature, TensorType
        >>> program = jax_compile(lambda x: x.sum(), FeSignature((TensorType("f32", (3,)),)))
        >>> print(program.pfunc.fn_type, *program.pfunc.outs_info)
        jax.run f32[]
    """
    import jax
    import numpy as np
    from jax import enable_x64

    from mplang_jax import ops, stablehlo

    operands = _tensors(signature.operands)
    x64 = any(kind.dtype.is_64bit for kind in operands) or bool(jax.config.read("jax_enable_x64"))
    out_trees: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        outs, tree = flatten(fn(*signature.fill(leaves), **signature.kwargs))
        out_trees.append(tree)
        return outs

    with enable_x64(x64):
        avals = [jax.ShapeDtypeStruct(kind.shape, kind.dtype.numpy) for kind in operands]
        try:
            closed = jax.make_jaxpr(flat)(*avals)
        except MPLangError:
            raise
        except Exception as error:
            name = getattr(fn, "__name__", type(fn).__name__)
            reason = str(error).split("\n", 1)[0]
            raise TraceError(
                f"{at()}JAX cannot trace {name}({', '.join(map(str, operands))}): "
                f"{type(error).__name__}: {reason}"
            ) from error
        consts = tuple(np.asarray(const) for const in closed.consts)

        def with_consts(*args: Any) -> list[Any]:
            values = args[len(operands) :]
            outs: list[Any] = jax.core.eval_jaxpr(closed.jaxpr, values, *args[: len(operands)])
            return outs

        const_avals = [jax.ShapeDtypeStruct(c.shape, c.dtype) for c in consts]
        lowered = jax.jit(with_consts, keep_unused=True).lower(*avals, *const_avals)
        code = pack(stablehlo.canonical(lowered.as_text()))
    takes, gives = ops.signature(code)
    attrs = {
        "code": code,
        "x64": x64,
        "jax": jax.__version__,
        "stablehlo": stablehlo.VERSION,
    }
    return FeProgram(
        PFunction("jax.run", takes, gives, attrs),
        in_tree=flatten(signature.args)[1],
        out_tree=out_trees[0],
        consts=consts,
        meta={"name": "jax.compile", "dialect": "stablehlo", "version": "1"},
    )


def _tensors(types: tuple[BaseType, ...]) -> list[TensorType]:
    tensors = [kind for kind in types if isinstance(kind, TensorType)]
    if len(tensors) != len(types):
        shown = ", ".join(map(str, types))
        raise TraceError(f"{at()}JAX works on tensors, got operands of ({shown})")
    return tensors


def jax_compile_from_data(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> FeProgram:
    """Compile a function for arguments like these; a convenience around ``jax.compile``.

    Args:
        fn: a function that JAX can trace.
        *args: arrays, from which the signature is derived, nested in any way; other
            literals are compiled in.
        **kwargs: literals.

    Example:
        >>> import numpy as np
        >>> program = jax_compile_from_data(lambda x, y: x @ y, np.eye(2), np.ones(2))
        >>> print(*program.pfunc.ins_info)
        f64[2, 2] f64[2]
    """
    leaves, spec = flatten(args)
    abstract = [TensorType.of(leaf) if hasattr(leaf, "dtype") else leaf for leaf in leaves]
    return jax_compile(fn, FeSignature(tuple(unflatten(spec, abstract)), kwargs))
