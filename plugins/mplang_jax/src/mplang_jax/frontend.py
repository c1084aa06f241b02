"""Compiler ``jax.compile``: from a Python function and a signature to a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mplang_cache import compiled_once, packages_of

from mplang_core import BaseType, FeProgram, FeSignature, MPLangError, PFunction, TensorType, feop
from mplang_core.ext import (
    Caching,
    Capabilities,
    Location,
    PrecisionWarning,
    TraceError,
    at,
    checks_determinism,
    fe_process_state,
    flatten,
    pack,
    unflatten,
    warn,
)

if TYPE_CHECKING:  # it imports JAX
    from mplang_jax.tracing import TracedFunction


def _understands(fn: Callable[..., Any], types: tuple[BaseType, ...]) -> bool | None:
    """Return ``True`` for a function that names JAX; JAX may take any other."""
    return not packages_of(fn).isdisjoint({"jax", "jaxlib"}) or None


@feop(
    name="jax.compile",
    op_kind="compiler",
    dialects=("stablehlo",),
    execution_model="single_rank",
    inputs=({"kind": "Tensor"},),
    outputs=({"kind": "Tensor"},),
    understands=_understands,
    state_scope="process",
    capabilities=Capabilities(caching=Caching(scope="process")),
)
def jax_compile(fn: Callable[..., Any], signature: FeSignature) -> FeProgram:
    """Compile a function of arrays to StableHLO, without its data.

    The same function and signature give the same bytes in every process. Arrays that the function
    captures, also in its jitted functions, become operands (``consts``), so the code holds no data.
    If an operand, a captured array or a NumPy scalar has 64 bits, or a number would be lost
    otherwise, the whole function is compiled with 64-bit types; only Python numbers are narrowed,
    to the type of the other operand.

    A function is compiled once per signature, and again after something that it reads has changed.

    Args:
        fn: a function that JAX can trace.
        signature: its arguments; a :class:`TensorType` stands for an array.

    Returns:
        A program of the op ``jax.run``.

    Raises:
        TraceError: JAX cannot trace it, or an operand is not a tensor.

    Example:
        >>> from mplang_core import FeSignature, TensorType
        >>> program = jax_compile(lambda x: x.sum(), FeSignature((TensorType("f32", (3,)),)))
        >>> print(program.pfunc.fn_type, *program.pfunc.outs_info)
        jax.run f32[]
    """
    from mplang_stablehlo.ext import is_fixed, jax_settings

    made = compiled_once(
        jax_compile,
        fn,
        signature,
        lambda: _compile(fn, signature),
        depends_on=jax_settings(),
        is_fixed=is_fixed,
    )
    for file, line, text in made.meta.get("precision", ()):
        warn(text, PrecisionWarning, Location(file, line))
    return made


def _compile(fn: Callable[..., Any], signature: FeSignature) -> FeProgram:
    from mplang_stablehlo.ext import record_lines

    from mplang_jax import exact_bits, trace_errors, tracing

    operands = _tensors(signature.operands)
    try:
        traced = tracing.TracedFunction(fn, signature, operands)
        code, located = _lowered_once(traced)
        record_lines(code, located, tracer=tracing.__file__)
    except MPLangError:
        raise
    except Exception as error:
        raise trace_errors.told(error, fn, operands) from error
    meta: dict[str, Any] = {"name": "jax.compile", "dialect": "stablehlo", "version": "1"}
    if traced.warned:
        meta["precision"] = traced.warned
    made = FeProgram(
        _op(traced, code),
        in_tree=flatten(signature.args)[1],
        out_tree=traced.out_tree,
        consts=traced.consts,
        meta=meta,
    )
    if not exact_bits.has_bits(traced.jaxpr.jaxpr):
        return made
    return _SeparableProgram(**_fields(made), traced=traced)


@dataclass(frozen=True, slots=True)
class _SeparableProgram(FeProgram):
    """Program that draws or hashes; see :class:`mplang_stablehlo.SeparatesPublicPart`."""

    traced: TracedFunction | None = None

    def public_part(
        self, secret: Sequence[bool]
    ) -> tuple[PFunction | None, Sequence[int], FeProgram] | None:
        """Take the public part out; see :class:`mplang_stablehlo.SeparatesPublicPart`."""
        from mplang_jax import public_part, tracing

        assert self.traced is not None
        found = public_part.public_part(self.traced, secret)
        if found is None:
            return None
        made_of = partial(_recorded_op, tracer=tracing.__file__)
        public = None if found.public is None else made_of(found.public)
        rest = {**_fields(self), "pfunc": made_of(found.rest), "consts": found.consts}
        return public, found.takes, FeProgram(**rest)


def _fields(made: FeProgram) -> dict[str, Any]:
    return {each.name: getattr(made, each.name) for each in fields(FeProgram)}


def _op(traced: TracedFunction, code: bytes) -> PFunction:
    import jax
    from mplang_stablehlo import signature_of
    from mplang_stablehlo.ext import STABLEHLO_VERSION

    attrs = {
        "code": code,
        "x64": traced.x64,
        "jax": jax.__version__,
        "stablehlo": STABLEHLO_VERSION,
    }
    return PFunction("jax.run", *signature_of(code), attrs)


def _recorded_op(traced: TracedFunction, tracer: str) -> PFunction:
    from mplang_stablehlo.ext import record_lines

    code, located = _lowered(traced)
    record_lines(code, located, tracer=tracer)
    return _op(traced, code)


def _lowered_once(traced: TracedFunction) -> tuple[bytes, bytes]:
    """Return the code of a traced function, and the artifact with its source lines.

    A function that has no key is traced each time, and lowered once.
    """
    from mplang_stablehlo.ext import jax_settings

    key = None if checks_determinism() else traced.key
    if key is None:
        return _lowered(traced)
    state = fe_process_state("jax.compile, lowered")
    kept: tuple[bytes, bytes] = state.get_or_make((key, jax_settings()), lambda: _lowered(traced))
    return kept


def _lowered(traced: TracedFunction) -> tuple[bytes, bytes]:
    from mplang_stablehlo import read
    from mplang_stablehlo.ext import artifact, canonical_of

    from mplang_jax import admission
    from mplang_jax.hints import without_hints

    located = artifact(without_hints(traced.lower()))
    code = pack(canonical_of(located))
    admission.XLA.admit(read(code))
    return code, located


def _tensors(types: tuple[BaseType, ...]) -> list[TensorType]:
    tensors = [kind for kind in types if isinstance(kind, TensorType)]
    if len(tensors) != len(types):
        shown = ", ".join(map(str, types))
        raise TraceError(f"{at()}JAX works on tensors, got operands of ({shown})", code="T013")
    return tensors


def jax_compile_from_data(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> FeProgram:
    """Compile a function for arguments like the given ones; a convenience around ``jax.compile``.

    A feop made of JAX functions is one line: it returns the result of this for its operands, and
    names the dialect ``"stablehlo"``, so that it runs wherever that can be compiled.

    Args:
        fn: a function that JAX can trace.
        *args: arrays, from which the signature is derived, in any nest; multi-party values, which
            become the program's inputs; other literals are compiled in.
        **kwargs: literals.

    Returns:
        A program of the op ``jax.run``.

    Example:
        >>> import numpy as np
        >>> program = jax_compile_from_data(lambda x, y: x @ y, np.eye(2), np.ones(2))
        >>> print(*program.pfunc.ins_info)
        f64[2, 2] f64[2]
    """
    leaves, spec = flatten(args)
    values = tuple(leaf for leaf in leaves if hasattr(leaf, "base_type"))
    abstract = [_abstract(leaf) for leaf in leaves]
    made = jax_compile(fn, FeSignature(tuple(unflatten(spec, abstract)), kwargs))
    return replace(made, inputs=values)


def _abstract(leaf: Any) -> Any:
    if hasattr(leaf, "base_type"):
        return leaf.base_type
    return TensorType.of(leaf) if hasattr(leaf, "dtype") else leaf
