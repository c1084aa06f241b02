"""Simulator backend: all parties in this process, one thread each; its number checks."""

from mplang_simulator.checks import Meetings
from mplang_simulator.host import Simulator
from mplang_simulator.threads import PartyThread, ThreadCommunicator

__all__ = ["Meetings", "PartyThread", "Simulator", "ThreadCommunicator"]
