"""Budgets of differential privacy: what programs may learn of a data set, all together.

Epsilons and deltas of results add up (sequential composition; Dwork and Roth, "The Algorithmic
Foundations of Differential Privacy", 2014, theorem 3.16). Amounts are integers, so that sums are
exact: epsilon in millionths, delta in units of 1e-12.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

from mplang_analysis import DELTA, EPSILON, Spend
from pydantic import Field

from mplang_core.ext import StrictModel


class Amount(NamedTuple):
    """Amount of a budget that is used.

    Attributes:
        epsilon: in millionths.
        delta: in units of 1e-12.
    """

    epsilon: int = 0
    delta: int = 0

    def plus(self, other: Amount) -> Amount:
        """Return both together."""
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta)

    def __str__(self) -> str:
        delta = f", delta {float(self.delta * DELTA):g}" if self.delta else ""
        return f"epsilon {(self.epsilon * EPSILON).normalize():f}{delta}"


class Budget(StrictModel):
    """Budget of a data set.

    Attributes:
        epsilon: what all programs of all coordinators may use up together.
        per_coordinator: what those of one coordinator may; all of it by default.
        delta: the same of delta, all together; none by default, so noise is of Laplace.

    Example:
        >>> Budget(epsilon=3.0, per_coordinator=1.0).cap(by_one=True)
        Amount(epsilon=1000000, delta=0)
    """

    epsilon: float = Field(gt=0, le=1000)
    per_coordinator: float | None = Field(default=None, gt=0, le=1000)
    delta: float = Field(default=0.0, ge=0, lt=1)

    def cap(self, *, by_one: bool) -> Amount:
        """Return what may be used up, by one coordinator or by all of them."""
        epsilon = self.per_coordinator if by_one and self.per_coordinator else self.epsilon
        parts = int(Decimal(repr(epsilon)) / EPSILON), int(Decimal(repr(self.delta)) / DELTA)
        return Amount(*parts)


def charges(spends: Iterable[Spend], party: int) -> dict[str, Amount]:
    """Return what a program uses up of the data sets of a party."""
    found: dict[str, Amount] = {}
    for each in spends:
        if each.party == party:
            before = found.get(each.data_set, Amount())
            found[each.data_set] = before.plus(Amount(each.epsilon, each.delta))
    return found


def over_budget(
    wanted: Mapping[str, Amount],
    spent: Mapping[tuple[str, str], Amount],
    coordinator: str,
    budgets: Mapping[str, Budget],
) -> str:
    """Return why a program is more than what is left of a budget; nothing if it is not.

    Args:
        wanted: what it would use up, by data set.
        spent: what was used up, by data set and coordinator.
        coordinator: who would run it.
        budgets: the budgets of the data sets.
    """
    for data_set, amount in wanted.items():
        budget = budgets.get(data_set)
        if budget is None:
            return f"data set {data_set} has no budget of epsilon"
        mine = spent.get((data_set, coordinator), Amount())
        cap = budget.cap(by_one=True)
        if _is_more(mine.plus(amount), cap):
            return (
                f"it asks for {amount} of data set {data_set}; {coordinator} has used up {mine} "
                f"of {cap}"
            )
        total = amount
        for (name, _), each in spent.items():
            if name == data_set:
                total = total.plus(each)
        if _is_more(total, budget.cap(by_one=False)):
            return (
                f"it asks for {amount} of data set {data_set}, which is more than all "
                "coordinators together have left"
            )
    return ""


def _is_more(amount: Amount, cap: Amount) -> bool:
    return amount.epsilon > cap.epsilon or amount.delta > cap.delta
