"""Reasons why the shares of a program have to be of FM128: what FM64 is not certain to get right.

FM64 computes integers modulo 2^64, as NumPy's int64 does, and compares those from -2^62 to 2^62. So
a program is right in it if it has no fractions, each of its ops is exact on integers, and each
integer of 64 bits that is shared or looked at, as by a comparison, is within these bounds: by its
declared range and the rules of the interval analysis. Narrower ones wrap around as their types do,
in both fields. Imports JAX only where a program has such code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mplang_analysis import Interval, OpRanges
from mplang_analysis.ext import Given, Numbers, of_type

from mplang_core import Program, TensorType
from mplang_core.ext import Diagnostic, Forwards, Location, Operation, control_of, interface_of
from mplang_spu.fm64 import ADVICE, FRACTIONS, beyond, holds
from mplang_spu.ranges import line_in, with_public_part
from mplang_spu.share_type import Sharing, share_of

SHARE, RUN, RECONSTRUCT = "spu.make_shares", "spu.run_jax", "spu.reconstruct"

COMES = "shares come from elsewhere, and field: auto has those in FM128"
LEAVES = "shares leave the program, and field: auto keeps those in FM128"


def reasons_against(program: Program, like: Sharing) -> list[Diagnostic]:
    """Return why shares of a program are not certain to be right in FM64.

    Args:
        program: a valid program.
        like: which shares.

    Returns:
        The reasons in the order of the program, each once with the user's line; none if there is
        nothing against FM64. What follows from ranges is looked at if nothing else is known.
    """
    reasons = dict.fromkeys(_by_types(program, like))
    try:
        return list(reasons or _Ranges(program, like).reasons)
    except Exception as error:  # of rules of ops of any plugin
        return [Diagnostic(f"ranges cannot be followed: {type(error).__name__}: {error}")]


def _by_types(program: Program, like: Sharing) -> Iterator[Diagnostic]:
    if any(_is_like(value.type, like) for value in program.graph.inputs):
        yield Diagnostic(COMES)
    for op in program.graph.walk():
        shares = [value.type for value in (*op.inputs, *op.outputs) if _is_like(value.type, like)]
        if op.opcode == RUN and shares:
            yield from _of_code(op)
        elif op.opcode == SHARE and any(map(_has_fractions, shares)):
            yield Diagnostic(f"what is shared {FRACTIONS}", op.location)
        elif shares and not _is_known(op):
            text = f"{op.opcode} takes or makes shares, and may need FM128"
            yield Diagnostic(text, op.location)
    makers = {value: op for op in program.graph.ops for value in op.outputs}
    for value in program.graph.outputs:
        if _is_like(value.type, like) and value in makers:
            yield Diagnostic(LEAVES, makers[value].location)


def _is_like(kind: object, like: Sharing) -> bool:
    share = share_of(kind)
    return share is not None and Sharing.of(share) == like


def _has_fractions(kind: object) -> bool:
    share = share_of(kind)
    return share is not None and share.plain.dtype.value.startswith("f")


def _is_known(op: Operation) -> bool:
    """Return whether an op shares, reconstructs, moves shares, or runs its regions."""
    moves = control_of(op) is not None or interface_of(op, Forwards) is not None
    return moves or op.opcode in (SHARE, RECONSTRUCT)


def _of_code(op: Operation) -> Iterator[Diagnostic]:
    from mplang_spu import exact_integers

    inexact = exact_integers.inexact_op(op.attrs["program"]["code"])
    if inexact is not None:
        yield Diagnostic(inexact[1], _line(op, inexact[0]))


def _line(op: Operation, number: int) -> Location | None:
    return line_in(op, number) or op.location


class _Ranges(Numbers):
    """A run of a program on intervals that finds integers which FM64 may not compare.

    Attributes:
        reasons: them, each once.
    """

    def __init__(self, program: Program, like: Sharing) -> None:
        self.reasons: dict[Diagnostic, None] = {}
        self._like = like
        super().__init__(program, [Given(of_type(each.type)) for each in program.graph.inputs])

    def _apply(self, op: Operation, ins: Sequence[Given], line: Location | None) -> Sequence[Given]:
        if op.opcode in (SHARE, RUN) and self._is_mine(op):
            for value, each in zip(op.inputs, ins, strict=True):
                self._check(value.type, each.interval, line)
        return super()._apply(op, ins, line)

    def _is_mine(self, op: Operation) -> bool:
        return any(_is_like(value.type, self._like) for value in op.outputs)

    def _check(self, kind: object, x: Interval, line: Location | None) -> None:
        """Check what is shared, or public to a function; shares were checked where made."""
        is_wide = isinstance(kind, TensorType) and kind.dtype.is_integer and kind.dtype.is_64bit
        if is_wide and not holds(x):
            self.reasons[Diagnostic(f"{beyond('what is shared', x)}; {ADVICE}", line)] = None

    def _ask(self, op: Operation, ins: Sequence[Given]) -> OpRanges:
        if op.opcode != RUN or not self._is_mine(op):
            return super()._ask(op, ins)
        from mplang_spu import exact_integers

        operands = with_public_part(op, [each.interval for each in ins])
        results, lost = exact_integers.bounds(op.attrs["program"]["code"], operands)
        for number, text in lost:
            self.reasons[Diagnostic(text, _line(op, number))] = None
        return OpRanges(results)
