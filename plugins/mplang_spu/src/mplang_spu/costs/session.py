"""Work of SPU members once in a session, and in batches."""

from __future__ import annotations

import numpy as np

from mplang_spu.costs.expense import Expense, expense_of
from mplang_spu.costs.members import Members
from mplang_spu.costs.pphlo import Tensor, module_of

PRODUCTS, MATRICES = "products", "matrix products"
FEW, MANY = 16, 4000  # the last is more than one core takes


class SessionWork:
    """Work of members once in a session, and in batches, beside single ops.

    Args:
        members: who have run nothing yet.
        protocol: theirs.

    Attributes:
        set_ups: what they do once, by what uses it: a link of that name, or products. All of them
            use "".
        batch: what 4,096 prepared products take, see :mod:`mplang_spu.costs.multipliers`.
        idle: seconds that an op takes which does nothing.
    """

    def __init__(self, members: Members, protocol: str) -> None:
        self._members, self._protocol = members, protocol
        self.set_ups = {"": expense_of(members.set_up)}
        self.idle = min(self._run("negate %0", FEW).seconds for _ in range(8))
        self.batch = Expense()
        if protocol == "CHEETAH":
            self._begin()

    def _begin(self) -> None:
        less = "less %0, %0"
        for link, size in (("root-1", FEW), ("root-2", MANY)):
            first, again = (self._run(less, size, gives="i1") for _ in range(2))
            self.set_ups[link] = first.without(again)
        times = "multiply %0, %0"
        first, again = self._run(times, FEW), self._run(times, FEW)
        usual, with_batch = self._run(times, MANY), self._run(times, MANY)
        self.batch = with_batch.without(usual)
        self.set_ups[PRODUCTS] = first.without(again).without(self.batch)

    def multiply_matrices(self) -> None:
        """Set up what the first matrix product of a session does."""
        if self._protocol == "CHEETAH" and MATRICES not in self.set_ups:
            first, again = (self._run("dot %0, %0", 2, 2) for _ in range(2))
            self.set_ups[MATRICES] = first.without(again)

    def _run(self, op: str, *shape: int, gives: str = "f32") -> Expense:
        takes, made = Tensor(shape, "f32", True), Tensor(shape, gives, True)
        self._members.put("made", np.ones(shape, "f4"), secret=True)
        line = f"%1 = pphlo.{op} : ({', '.join([str(takes)] * op.count('%'))}) -> {made}"
        code = module_of([f"%0: {takes}"], [line], {"%1": made})
        return expense_of(self._members.run(code, ["made"], ["made"]))
