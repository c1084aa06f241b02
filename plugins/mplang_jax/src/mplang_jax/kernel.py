"""Kernel of ``jax.run``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mplang_stablehlo import parts_of, read, signature_of

from mplang_core.ext import AdmissionError, KernelContext, KernelError, Operation
from mplang_jax.frontend import jax_compile

MAX_SHOWN = 8  # lines of a module that was linked


def run(ctx: KernelContext, *args: Any, code: bytes, x64: bool, jax: str, stablehlo: str) -> Any:
    """Run StableHLO on arrays; the executable is compiled once per process.

    Args:
        ctx: of the op.
        *args: the operands.
        code: the compressed StableHLO.
        x64: whether 64-bit types are enabled.
        jax: the version of JAX that made the code; unused.
        stablehlo: the version of StableHLO; unused.

    Returns:
        The results; a tuple unless there is exactly one.

    Raises:
        AdmissionError: the code has an op that is not allowed.
        KernelError: XLA fails at a module that was linked from several; it names their lines.
    """
    step = ctx.step
    try:
        call = step.cache
        if call is None:
            call = step.cache = _bound(code, x64)
        return call(args)
    except Exception as error:
        _name_lines(ctx.op, code, error)
        raise


def _bound(code: bytes, x64: bool) -> Callable[[Sequence[Any]], Any]:
    """Return what a call of the op does: all that is the same for each one is done here."""
    import numpy as np
    from jax import enable_x64

    with enable_x64(x64):
        made = executable(code, x64)

    def call(args: Sequence[Any]) -> Any:
        with enable_x64(x64):
            outs = tuple(map(np.asarray, made(*args)))
        return outs[0] if len(outs) == 1 else outs

    return call


def call(code: bytes, x64: bool, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of a code on arrays.

    Args:
        code: the compressed StableHLO.
        x64: whether 64-bit types are enabled.
        args: the operands.

    Raises:
        AdmissionError: the code has an op that is not allowed.
    """
    outs = _bound(code, x64)(args)
    return outs if isinstance(outs, tuple) else (outs,)


def _name_lines(op: Operation, code: bytes, error: Exception) -> None:
    """Raise an error that names the lines of a linked module; do nothing if it is not one.

    XLA does not say which op fails. If it fails to compile a part alone, that is the one.
    """
    parts = parts_of(code, op.location)
    culprits = [line for line, part in parts if not _compiles(part)] or [line for line, _ in parts]
    if culprits:
        failure = KernelError(f"{type(error).__name__} in the kernel of {op.opcode}")
        lines = list(dict.fromkeys(map(str, culprits)))
        shown = ", ".join(lines[:MAX_SHOWN]) + (", …" if len(lines) > MAX_SHOWN else "")
        failure.op, failure.location = op.opcode, shown  # type: ignore[attr-defined]
        raise failure from error


def _compiles(code: bytes) -> bool:
    from jax import enable_x64

    try:
        with enable_x64(True):
            executable(code, True)
    except Exception:
        return False
    return True


def executable(code: bytes, x64: bool) -> Callable[..., Any]:
    """Return the executable of a code, compiling it at the first use.

    Concurrent callers wait for the one that compiles.

    Args:
        code: the compressed StableHLO.
        x64: whether 64-bit types are enabled.

    Returns:
        A function of arrays that returns a list of arrays.

    Raises:
        AdmissionError: the code has an op that is not allowed.
    """
    state = jax_compile.__get_state__()
    made: Callable[..., Any] = state.get_or_make((code, x64), lambda: _compile(code, x64))
    return made


def _compile(code: bytes, x64: bool) -> Callable[..., Any]:
    from mplang_stablehlo.ext import compile_for_xla, target_of, text_of, walk

    from mplang_jax import admission

    takes, gives = signature_of(code)
    try:
        checked = admission.XLA.admit(read(code))
    except ValueError as error:
        raise AdmissionError(f"jax.run: {error}", code="A005") from error
    if any((target_of(op) or "").startswith("lapack_") for op in walk(checked.operation)):
        _initialize_lapack()
    return compile_for_xla(text_of(checked), takes, gives)


def _initialize_lapack() -> None:
    from jaxlib.lapack import _lapack  # type: ignore[attr-defined]

    _lapack.initialize()
