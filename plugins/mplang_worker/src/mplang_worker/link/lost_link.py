"""Reasons why links between workers end, as the parties of a run are told."""

from __future__ import annotations

from enum import StrEnum


class LostLink(StrEnum):
    """Reason why a link has ended: a closed list, as an MPC process can tell no other text."""

    ABSENT = "there is none"
    CONNECTED_ANEW = "the peer connected anew"
    ENDED = "the connection ended"
    HAS_ANOTHER_KEY = "the peer has another key"
    INTERRUPTED = "the reading was interrupted"
    IS_SILENT = "it does not answer"
    IS_WRONG = "it sent an unexpected message"
    MISTAKE = "a mistake here"
    READS_NOTHING = "it does not read what is sent to it"
    SHUTDOWN = "the worker ends"
