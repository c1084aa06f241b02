"""Leader and followers: the threads that wait for messages of a connection read it themselves."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from mplang_core.ext import Waiter

GRACE = 0.002  # seconds in which nobody reads, after which the standing reader does


class SharedReading:
    """Reader of a connection, shared by threads. A message that wakes no other thread costs half.

    One waiting thread leads: it reads, whoever the messages are for, until its own has come. Then
    it calls one of those that follow. While nobody waits, the standing reader leads. It lets the
    waiting threads lead when there are some, and it comes a little late, so that a thread that
    waits, computes and waits again reads all by itself.

    Args:
        read: waits for data until a time of ``time.monotonic()``, or for ever, and handles it; it
            raises nothing. One thread at a time calls it.
        interrupt: ends the waiting in ``read``.
    """

    def __init__(self, read: Callable[[float | None], None], interrupt: Callable[[], None]) -> None:
        self._read = read
        self._interrupt = interrupt
        self._role = threading.Lock()  # of the leader
        self._leader = 0  # thread
        self._turns = 0  # of waiting threads that led
        self._followers: dict[Waiter, None] = {}
        self._standing = Waiter()
        self._called = False  # the standing reader waits until nobody leads
        self._summoned = False  # it reads now, whoever led a moment ago
        self._ended = False

    def summon(self) -> None:
        """Wake the standby reader at once, as all others may write and wait for the peer."""
        self._summoned = True
        self._standing.nudge()

    def end(self) -> None:
        """Stop all readers."""
        self._ended = True
        self._standing.nudge()

    def wait(self, waiter: Waiter, deadline: float) -> None:
        """Return when a waiter is woken, or ``time.monotonic()`` is ``deadline``."""
        try:
            while not waiter.woken:
                if self._ended:
                    waiter.sleep(deadline)
                elif self._role.acquire(blocking=False):
                    self._lead(waiter, deadline)
                else:
                    self._follow(waiter, deadline)
                if not waiter.woken and time.monotonic() >= deadline:
                    break
        finally:
            if (self._followers or self._called) and not self._role.locked():
                self._call_next()  # this one was called perhaps, and has no need

    def _lead(self, waiter: Waiter, deadline: float) -> None:
        try:
            self._turns += 1
            self._leader = threading.get_ident()
            waiter.interrupt = self._interrupt_leader
            # a peer that sends without end does not move the deadline
            while not (waiter.woken or self._ended) and time.monotonic() < deadline:
                self._read(deadline)
        finally:
            waiter.interrupt = None
            self._leader = 0
            self._leave()

    def _interrupt_leader(self) -> None:
        if threading.get_ident() != self._leader:
            self._interrupt()

    def _follow(self, waiter: Waiter, deadline: float) -> None:
        self._followers[waiter] = None
        try:
            if self._role.locked():  # who leaves it from now on sees this follower
                waiter.sleep(deadline)
        finally:
            del self._followers[waiter]

    def _leave(self) -> None:
        self._role.release()
        if self._followers or self._called:
            self._call_next()

    def _call_next(self) -> None:
        for follower in list(self._followers):
            if not follower.woken:
                follower.nudge()
                return
        if self._called:
            self._called = False
            self._standing.nudge()

    def stand_by(self) -> None:
        """Read while nobody waits, until the end."""
        while not self._ended:
            turns = self._turns
            self._standing.sleep(time.monotonic() + GRACE)
            if turns != self._turns and not self._summoned:
                continue
            self._summoned = False
            if self._role.acquire(blocking=False):
                self._read_alone()
                continue
            self._called = True
            if self._role.locked():  # who leaves it from now on calls
                self._standing.sleep(math.inf)

    def _read_alone(self) -> None:
        try:
            while not (self._ended or self._followers):
                self._read(None)
        finally:
            self._leave()
