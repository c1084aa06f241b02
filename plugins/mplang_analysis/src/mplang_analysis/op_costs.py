"""Interface by which an op tells what its protocol takes, before a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mplang_analysis.network import Network
from mplang_core.ext import Location, Operation


@dataclass(frozen=True, slots=True)
class StepCost:
    """Cost of a step inside of an op, all parties together.

    Attributes:
        name: what it is: ``multiply``.
        line: the user's line of it; ``None`` if only that of the op is known.
        times: how often it stands there, with the turns of loops around it.
        turns_known: whether ``times`` has them; otherwise it is for one turn of each loop.
        known: whether its amounts are known; otherwise they are 0.
        messages: how many.
        bytes: of them.
        rounds: messages of which each waits for the one before.
        in_turn: bytes that go one after the other.
        seconds: that each party computes, on the machine where it was counted.
        spread: share by which messages and bytes may differ from run to run.
        exact: whether it was counted; otherwise it follows from what was.
    """

    name: str
    line: Location | None = None
    times: float = 1
    turns_known: bool = True
    known: bool = True
    messages: float = 0
    bytes: float = 0
    rounds: float = 0
    in_turn: float = 0
    seconds: float = 0
    spread: float = 0
    exact: bool = True


@dataclass(frozen=True, slots=True)
class OpCosts:
    """Costs of an op's protocol.

    Attributes:
        steps: those inside of it.
        set_up: what its parties set up for it, once in a session.
        way: how they do, if there are several.
    """

    steps: Sequence[StepCost]
    set_up: Sequence[StepCost] = ()
    way: str = ""

    @property
    def known(self) -> bool:
        """Whether all of it is known, for one run of the op."""
        return all(step.known and step.turns_known for step in self.steps)

    @property
    def bytes(self) -> float:
        """Bytes of all messages, without what is set up."""
        return sum(step.bytes for step in self.steps)

    def seconds(self, network: Network) -> float:
        """Return how long it takes, without what is set up.

        Args:
            network: between the parties.
        """
        rounds = sum(step.rounds for step in self.steps)
        in_turn = sum(step.in_turn for step in self.steps)
        return sum(step.seconds for step in self.steps) + network.seconds(rounds, in_turn)


@runtime_checkable
class HasCosts(Protocol):
    """An interface of ops: what their protocol takes follows from their types."""

    def costs(self, op: Operation, network: Network) -> OpCosts | None:
        """Return what an op's protocol takes; ``None`` if that is not known.

        Args:
            op: the op, verified.
            network: between its parties.
        """


@dataclass(frozen=True, slots=True)
class CostRule:
    """A function as the interface :class:`HasCosts`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op, network)``.
    """

    rule: Callable[[Operation, Network], OpCosts | None]

    def costs(self, op: Operation, network: Network) -> OpCosts | None:
        """Return what the function does."""
        return self.rule(op, network)
