"""Kernels of the dialect ``spu``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mplang_core import FeSignature, Mask, registry
from mplang_core.ext import AdmissionError, Diagnostic, KernelContext, RunError
from mplang_spu import public_part, reconstruction
from mplang_spu.config import admit_protocol
from mplang_spu.held_shares import native_spu
from mplang_spu.oblivious_transfer import comparisons_of
from mplang_spu.share_type import ShareType
from mplang_spu.shares import SpuShare
from mplang_spu.target import Target

if TYPE_CHECKING:
    from mplang_spu.engine import Compiled

Array = np.ndarray[Any, Any]


def make_shares(ctx: KernelContext, x: Array, *, share: ShareType) -> tuple[SpuShare, ...]:
    """Split a tensor into one share per party.

    Args:
        ctx: of the op.
        x: a tensor of bools, integers or floats.
        share: the type of the shares.

    Returns:
        One share per member, in the order of ranks.

    Raises:
        RunError: a number exceeds the range of the ring, or is NaN.
        AdmissionError: the protocol is for debugging, and this worker is not ``insecure``.
    """
    from mplang_spu import blocks, engine

    admit_protocol(share.protocol, ctx.interpreter.insecure)
    _check_range(x, share)
    if ctx.interpreter.checks is not None:
        _check_size(ctx, x, share)
    io = engine.io(len(share.parties), share.protocol, share.field, share.fxp)
    return blocks.make_shares(io, x, share)


def _check_range(x: Array, share: ShareType) -> None:
    """Refuse numbers out of range: libspu saturates them without an error."""
    if not x.size or x.dtype.kind == "b":
        return
    target = share.target
    if x.dtype.kind != "f":
        if not (-target.integers <= int(x.min()) and int(x.max()) < target.integers):
            raise RunError(
                f"an integer is not below 2^{target.bits - 2} in size, which is what "
                f"{share.field} can hold; take a larger field",
                code="R007",
            )
        return
    if not _largest(x) < target.limit:  # also where it is NaN
        power = target.bits - 2 - target.fxp
        raise RunError(
            f"a number is NaN, or not below 2^{power} in size, which is what {share.field} with "
            f"{share.fxp} fraction bits can hold; replace NaNs, scale the data down, or take a "
            "larger field",
            code="R007",
        )


def _largest(x: Array) -> float:
    """Return the size of the largest float, NaN if there is one, without a copy of the tensor."""
    return max(-float(x.min()), float(x.max())) if x.size else 0.0


def _check_size(ctx: KernelContext, x: Array, share: ShareType) -> None:
    """Report a tensor whose numbers are all below the smallest step; in simulators only."""
    largest = _largest(x) if x.dtype.kind == "f" else 0.0
    if 0 < largest < 2.0**-share.fxp:
        text = (
            f"SPU's shares of {share.plain} stand for 0: its largest number, {largest:.7g}, is "
            f"below the smallest step, 2^-{share.fxp}. Take more fxp_fraction_bits, or scale the "
            "data up; check_numbers=False skips this check."
        )
        ctx.interpreter.checks.tell(Diagnostic(text, ctx.op.location, "shares"))


def reconstruct(ctx: KernelContext, *shares: SpuShare) -> Array:
    """Reconstruct a tensor from the shares of all parties.

    Args:
        ctx: of the op.
        *shares: one share per member, in the order of ranks.

    Returns:
        The tensor, with the shape and element type of the plain type.

    Raises:
        RunError: the shares do not belong together.
    """
    return reconstruction.reconstruct(shares)


def run_jax(
    ctx: KernelContext,
    *args: SpuShare | Array,
    program: Mapping[str, Any],
    parties: Mask,
    config: Mapping[str, Any],
    public: Mapping[str, Any] | None = None,
) -> Any:
    """Run a StableHLO program jointly with the other members.

    Args:
        ctx: of the op.
        *args: shares of secret operands, and arrays that all members know.
        program: the attributes of ``jax.run``; ``code`` is the compressed StableHLO.
        parties: the members.
        config: protocol, field and precision of the device.
        public: what each member computes before; see :mod:`mplang_spu.public_part`.

    Returns:
        This member's share of each result; a tuple unless there is exactly one.

    Raises:
        RunError: other parties run it than the members, the members' settings differ, or a result
            is of another type than is declared.
        AdmissionError: the code, the protocol or the link is not allowed.
    """
    from mplang_spu import engine

    if ctx.parties != parties:
        raise RunError(
            f"the program is for the parties {parties}, but {ctx.parties} run it", code="R015"
        )
    admit_protocol(config["protocol"], ctx.interpreter.insecure)
    args = (*args, *public_part.compute(ctx, public, args))
    secret = tuple(isinstance(arg, SpuShare) for arg in args)
    try:
        compiled = engine.compile_code(program["code"], secret, Target.of(config), _unreduced(args))
    except ValueError as error:
        raise AdmissionError(f"spu.run_jax: {error}", code="A005") from error
    apart = native_spu(ctx)
    if apart is None:
        results = _run_here(ctx, args, compiled, parties, config, program["code"])
    else:
        results = apart.run(ctx, parties, config, compiled, args)
    results = [
        replace(share, unreduced=True) if i in compiled.unreduced else share
        for i, share in enumerate(results)
    ]
    return results[0] if len(results) == 1 else tuple(results)


def run_function(
    ctx: KernelContext,
    fn: Callable[..., Any],
    args: Sequence[SpuShare],
    parties: Mask,
    config: Mapping[str, Any],
) -> Any:
    """Run a function of arrays jointly with the other members, each of which compiles it itself.

    So an op may be what its attributes say, whoever wrote the program.

    Args:
        ctx: of the op, whose operands are shares.
        fn: a function that JAX can trace, the same at all members.
        args: this member's share of each operand.
        parties: the members.
        config: protocol, field and precision of the device.

    Returns:
        This member's share of each result; a tuple unless there is exactly one.

    Raises:
        RunError: other parties run it than the members, the members' settings or code differ, or a
            result is of another type than is declared.
    """
    from mplang_spu import engine

    types = [cast(ShareType, value.type).plain for value in ctx.op.inputs]
    with engine.spu_tracing(Target.of(config)):
        made = registry.get("jax.compile")(fn, FeSignature(tuple(types)))
    program = dict(made.pfunc.attrs)
    return run_jax(ctx, *args, *made.consts, program=program, parties=parties, config=config)


def _unreduced(args: Sequence[SpuShare | Array]) -> frozenset[int]:
    """Return the numbers of the shares whose integers may be beyond their type."""
    return frozenset(i for i, x in enumerate(args) if isinstance(x, SpuShare) and x.unreduced)


def _computed(args: Sequence[SpuShare | Array]) -> frozenset[int]:
    """Return the numbers of the shares that an earlier run gave, as far as a simulator knows."""
    return frozenset(i for i, x in enumerate(args) if isinstance(x, SpuShare) and x.computed)


def _run_here(
    ctx: KernelContext,
    args: Sequence[SpuShare | Array],
    compiled: Compiled,
    parties: Mask,
    config: Mapping[str, Any],
    code: bytes,
) -> list[SpuShare]:
    """Run a compiled program in this process, which is that of all parties."""
    from mplang_spu import conversion
    from mplang_spu.engine_pool import Job, acquire_engine

    storages = [arg.storage if isinstance(arg, SpuShare) else None for arg in args]
    public = [np.asarray(arg) for arg in args if not isinstance(arg, SpuShare)]
    comparisons = comparisons_of(compiled.code, config)
    job = Job(ctx.key, parties, config, compiled.digest, storages, public, comparisons)
    with acquire_engine(ctx.interpreter, job) as runtime:
        operands = (_load(ctx, arg, parties, config) for arg in (*args, *compiled.operands))
        begin = time.perf_counter()
        pieces = runtime.run(compiled.code, operands, len(ctx.step.outs))
        seconds = time.perf_counter() - begin
    if ctx.interpreter.checks is not None:
        given = [_load(ctx, arg, parties, config) for arg in args]
        _check(ctx, args, given, pieces, code, config, seconds)
    return [
        replace(conversion.from_libspu(piece, cast(ShareType, kind)), computed=True)
        for kind, piece in zip(ctx.step.checks, pieces, strict=True)
    ]


def _check(
    ctx: KernelContext,
    args: Sequence[SpuShare | Array],
    given: Sequence[Any],
    made: Sequence[Any],
    code: bytes,
    config: Mapping[str, Any],
    seconds: float,
) -> None:
    """Compare the results with float64 in a simulator.

    All members contribute their operands and results; one of them runs the comparison.
    """
    from mplang_spu.reference_check.check import Job, check
    from mplang_spu.reference_check.rerun import Setting

    checks, members = ctx.interpreter.checks, list(ctx.parties)
    public = {i: arg for i, arg in enumerate(args) if not isinstance(arg, SpuShare)}
    secret = tuple(isinstance(arg, SpuShare) for arg in args)

    def compare(brought: Mapping[int, Any]) -> Diagnostic | None:
        of_members = [brought[rank] for rank in members]
        job = Job(
            code,
            ctx.op.location,
            Setting(config, len(members), secret, _unreduced(args), _computed(args)),
            public,
            [operands for operands, _ in of_members],
            [results for _, results in of_members],
            seconds,
        )
        return check(job, checks.told if checks.mode == "warn" else set(), checks.budget)

    checks.meet(ctx.key, ctx.interpreter.rank, len(members), (given, made), compare)


def _load(
    ctx: KernelContext, arg: SpuShare | Array, parties: Mask, config: Mapping[str, Any]
) -> Any:
    from mplang_spu import conversion
    from mplang_spu.public import public_share

    if isinstance(arg, SpuShare):
        return conversion.to_libspu(arg)
    return public_share(arg, parties, config, ctx.interpreter.rank)
