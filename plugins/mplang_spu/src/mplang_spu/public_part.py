"""Public part of an ``spu.run_jax``: integers and bits that each member computes in plain.

libspu's integers do not wrap around within a function, and it has no bits of floats; random draws
and hashes need both. So the op has an attribute ``public``: a program of ``jax.run`` that each
member runs on public operands, before libspu runs the rest. Members compare its results, as they
compare public operands. Imports neither libspu nor JAX.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from mplang_stablehlo import SeparatesPublicPart

from mplang_core import BaseType, FeProgram, Mask, TensorType
from mplang_core.ext import KernelContext, Operation, RunError, Value, op_defs


def take_out(
    made: FeProgram, secret: Sequence[bool]
) -> tuple[FeProgram, Mapping[str, Any] | None, Sequence[TensorType]]:
    """Take the public part out of a compiled function.

    Args:
        made: a program of ``jax.run``.
        secret: whether each operand is secret, without the program's constants.

    Returns:
        The program without it; the attribute ``public``, ``None`` if there is none; the types of
        its results, which the program takes after its operands and constants.
    """
    found = made.public_part(secret) if isinstance(made, SeparatesPublicPart) else None
    if found is None:
        return made, None, ()
    public, takes, rest = found
    if public is None:
        return rest, None, ()
    outs = cast(Sequence[TensorType], public.outs_info)
    return rest, {"takes": tuple(takes), "program": dict(public.attrs)}, outs


def results_of(public: Mapping[str, Any] | None, types: Sequence[Any]) -> Sequence[TensorType]:
    """Return the types of the results of the public part.

    Args:
        public: the attribute.
        types: of the op's operands.

    Raises:
        TypeError: it takes an operand that is not public, or is not an attribute of that kind.
    """
    if public is None:
        return ()
    if set(public) != {"program", "takes"} or not isinstance(public["program"], Mapping):
        raise TypeError("attribute 'public' has a program of jax.run and the operands it takes")
    numbers = public["takes"]
    for number in numbers:
        if type(number) is not int or not 0 <= number < len(types):
            raise TypeError(f"the public part takes operand {number!r} of {len(types)}")
        if not isinstance(types[number], TensorType):
            raise TypeError(f"the public part takes operand {number}, which is {types[number]}")
    return plain_outputs([types[number] for number in numbers], public["program"])


def plain_outputs(plain: Sequence[BaseType], program: Mapping[str, Any]) -> Sequence[TensorType]:
    """Return the result types of the StableHLO, as ``jax.run`` infers them.

    Args:
        plain: the types of its operands.
        program: the attributes of ``jax.run``.

    Raises:
        TypeError: they do not fit.
    """
    jax_run = op_defs.get("jax.run")
    if jax_run is None:
        raise TypeError("the code is StableHLO, which needs: pip install mplang-jax")
    jax_run.check_attrs(program)
    inputs = tuple(Value(kind) for kind in plain)
    found = jax_run.infer(Operation("jax.run", inputs, (), program), Mask())
    return [cast(TensorType, kind) for kind in found]


def compute(
    ctx: KernelContext, public: Mapping[str, Any] | None, args: Sequence[Any]
) -> Sequence[np.ndarray[Any, Any]]:
    """Run the public part at one member.

    Args:
        ctx: of the op.
        public: the attribute.
        args: the op's operands.

    Returns:
        Its results.

    Raises:
        RunError: no kernel of ``jax.run`` is installed.
        AdmissionError: XLA may not run its code.
    """
    if public is None:
        return ()
    run = ctx.step.kernels.get("jax.run")
    if run is None:
        raise RunError(
            "the public part of a function runs on XLA: pip install mplang-jax", code="P002"
        )
    found = run(ctx, *(args[number] for number in public["takes"]), **public["program"])
    return found if isinstance(found, tuple) else (found,)
