"""Simulator backend: all parties in this process, one thread each.

What other backends build on is here, too: hosts and workers that may be watched, the mailbox of a
communicator, the outcome of a run, what others may know of a failure, and number checks.
"""

from mplang_simulator.checks import Finding, Meetings
from mplang_simulator.failure import DamagedProcessError, Failure
from mplang_simulator.host import Simulator
from mplang_simulator.mailbox import CommunicatorBase
from mplang_simulator.native import NativeCalls, NativeParty, NativeService
from mplang_simulator.observed import ObservedHost, ObservedWorker, op_of
from mplang_simulator.progress import PartyState, Traffic
from mplang_simulator.recorder import Recorder
from mplang_simulator.results import outcome_of, wait_for_outcome
from mplang_simulator.threads import PartyThread, ThreadCommunicator
from mplang_simulator.waiting import Waiter

__all__ = [
    "CommunicatorBase",
    "DamagedProcessError",
    "Failure",
    "Finding",
    "Meetings",
    "NativeCalls",
    "NativeParty",
    "NativeService",
    "ObservedHost",
    "ObservedWorker",
    "PartyState",
    "PartyThread",
    "Recorder",
    "Simulator",
    "ThreadCommunicator",
    "Traffic",
    "Waiter",
    "op_of",
    "outcome_of",
    "wait_for_outcome",
]
