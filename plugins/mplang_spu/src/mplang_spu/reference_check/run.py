"""Executions of functions, of which inner values are asked for: on SPU again, and in floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mplang_spu.reference_check import reference
from mplang_spu.reference_check.flat_function import FlatFunction
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.rerun import Setting, rerun


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a function on SPU.

    Attributes:
        function: its flat form.
        shares: libspu's share of each operand, per member.
        operands: the operands in plain.
        setting: the configuration of the run.
    """

    function: FlatFunction
    shares: Sequence[Sequence[Any]]
    operands: Sequence[Array]
    setting: Setting

    def on_spu(self, shown: Sequence[int]) -> dict[int, Array]:
        """Run the function again on SPU; return the values with the given ascending numbers."""
        variant = self.function.with_outputs(shown)
        return dict(zip(shown, rerun(variant, self.shares, self.setting), strict=True))

    def in_floats(
        self,
        shown: Sequence[int],
        given: Mapping[int, Array],
        operands: Mapping[int, Array] | None = None,
        width: int = 64,
    ) -> dict[int, Array]:
        """Run the function with floats of one width.

        Args:
            shown: the numbers of the values to return, in ascending order.
            given: replacements of values wherever they are used, by ascending number.
            operands: other operands than its own, by number.
            width: 64 or 32 bits.

        Returns:
            The values by number.
        """
        variant = self.function.with_outputs(shown, given, width)
        data = self.operands if operands is None else operands.values()
        values = reference.run(variant, [*data, *given.values()])
        return dict(zip(shown, values, strict=True))
