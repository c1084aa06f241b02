"""Matchers that stop at a message of the shop, ``RR22:3`` at its third; imported by workers."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from mplang_match import ops, psi, service

MOMENTS = 20
PROTOCOLS = ("RR22", "KKRT", "ECDH")
SHOP = 1
log = logging.getLogger("mplang.match.stops")
_names, _find = ops.names, service.find_matcher


class Stopping:
    """Communicator that never comes back from a message.

    Args:
        communicator: sends the messages before.
        moment: the number of the message, from 1.
    """

    def __init__(self, communicator, moment):
        self._communicator, self._left = communicator, moment
        self._lock = threading.Lock()

    def __getattr__(self, name):
        return getattr(self._communicator, name)

    def send(self, to_rank, key, data):
        with self._lock:
            self._left -= 1
            stops = self._left == 0
        if stops:
            log.warning("MOMENT")
            threading.Event().wait()
        self._communicator.send(to_rank, key, data)


class StoppingMatcher:
    """Matcher of libpsi that stops at the shop.

    Args:
        protocol: the protocol.
        moment: at which message.
    """

    def __init__(self, protocol, moment):
        self._matcher, self._moment = psi.PsiMatcher(protocol), moment

    def match(self, link, tokens, *, learns):
        if link.communicator.rank == SHOP:
            link = replace(link, communicator=Stopping(link.communicator, self._moment))
        return self._matcher.match(link, tokens, learns=learns)


def _found(name):
    protocol, _, moment = name.partition(":")
    return StoppingMatcher(protocol, int(moment)) if moment else _find(name)


service.find_matcher = _found
ops.names = lambda: [*_names(), *(f"{p}:{n}" for p in PROTOCOLS for n in range(1, MOMENTS + 1))]
