"""Expenses: what ops take, all members of an SPU together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mplang_spu.costs.members import Ran


@dataclass(frozen=True, slots=True)
class Expense:
    """Cost of an op, all members together.

    Attributes:
        messages: how many.
        size: bytes of them.
        rounds: messages of which each waits for the one before.
        in_turn: bytes that go one after the other.
        seconds: of the CPU of a member.
        opened: of CHEETAH's products by prepared random ones: how many elements each takes.
        uses: what is set up once in a session, see :class:`mplang_spu.costs.session.SessionWork`.
        spread: share by which messages and bytes differ with the data, to both sides.
        exact: whether it ran at its own size, or sends so much for each element.
    """

    messages: float = 0
    size: float = 0
    rounds: float = 0
    in_turn: float = 0
    seconds: float = 0
    opened: tuple[int, ...] = ()
    uses: frozenset[str] = frozenset()
    spread: float = 0.0
    exact: bool = True

    def __add__(self, other: Expense) -> Expense:
        made = self._along(other, 1)
        differs = self.spread * self.size + other.spread * other.size
        return replace(made, spread=differs / made.size if made.size else 0.0)

    def times(self, turns: float) -> Expense:
        """Return what it takes so often."""
        return replace(Expense()._along(self, turns), opened=self.opened, spread=self.spread)

    def without(self, other: Expense) -> Expense:
        """Return what it takes beyond another one; its time is none at least."""
        rest = self._along(other, -1)
        least = {name: max(getattr(rest, name), 0.0) for name in ("seconds", "rounds", "in_turn")}
        return replace(rest, **least, uses=self.uses)

    def at(self, size: float, larger: Expense, larger_size: float, wanted: float) -> Expense:
        """Return what it takes at a third number of elements, on the line through two."""
        share = (wanted - size) / (larger_size - size)
        point = self._along(larger._along(self, -1), share)
        opened = zip(self.opened, larger.opened, strict=True)
        return replace(
            point,
            rounds=max(self.rounds, larger.rounds) if share > 0 else self.rounds,
            seconds=max(point.seconds, self.seconds * min(1.0, wanted / size)),
            opened=tuple(round(a + share * (b - a)) for a, b in opened),
        )

    def _along(self, other: Expense, share: float) -> Expense:
        return Expense(
            self.messages + share * other.messages,
            self.size + share * other.size,
            self.rounds + share * other.rounds,
            self.in_turn + share * other.in_turn,
            self.seconds + share * other.seconds,
            uses=self.uses | other.uses,
            exact=self.exact and other.exact,
        )


def expense_of(ran: Ran) -> Expense:
    """Return what a run took."""
    size = sum(each.size for each in ran.sent)
    return Expense(len(ran.sent), size, ran.rounds, ran.in_turn, ran.seconds)
