"""Simulator backend: all parties in this process, one thread each.

What other backends build on is here, too: the mailbox of a communicator, the outcome of a run,
and what others may know of a failure.
"""

from mplang_simulator.failure import Failure
from mplang_simulator.host import Simulator
from mplang_simulator.mailbox import CommunicatorBase
from mplang_simulator.results import outcome_of
from mplang_simulator.threads import PartyThread, ThreadCommunicator

__all__ = [
    "CommunicatorBase",
    "Failure",
    "PartyThread",
    "Simulator",
    "ThreadCommunicator",
    "outcome_of",
]
