"""Simulator backend: all parties in this process, one thread each."""

from mplang_simulator.host import Simulator
from mplang_simulator.threads import PartyThread, ThreadCommunicator

__all__ = ["PartyThread", "Simulator", "ThreadCommunicator"]
