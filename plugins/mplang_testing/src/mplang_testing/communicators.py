"""What a communicator promises: every message arrives once, under its key, or an error does."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np

from mplang_core.ext import (
    AbortedError,
    CommError,
    Communicator,
    CommunicatorBase,
    RecvTimeoutError,
)
from mplang_testing.suite import Suite, complain
from mplang_testing.waiting import DEADLINE, NEVER, pause, wait_until

RUN = "kit-run"
T = TypeVar("T")


class CommunicatorSuite(Suite, kit=True):
    """Messages among parties arrive once and under their keys; waiting has an end.

    A subclass gives :meth:`make`.

    Attributes:
        slack: how many seconds an error may come late on a busy machine.
        big: bytes of the big message.

    Example:
        >>> from mplang_simulator import ThreadCommunicator
        >>> class TestThreads(CommunicatorSuite):
        ...     def make(self, parties, timeout):
        ...         return ThreadCommunicator.connected(parties, timeout)
    """

    slack: ClassVar[float] = DEADLINE
    big: ClassVar[int] = 16 << 20

    def make(self, parties: int, timeout: float) -> Sequence[Communicator]:
        """Return one communicator per party, connected; each ``recv`` waits so many seconds."""
        raise NotImplementedError("a CommunicatorSuite gives make(self, parties, timeout)")

    def finish(self, comms: Sequence[Communicator]) -> None:
        """Take down what :meth:`make` built."""

    def cases(self) -> Mapping[str, Mapping[str, Any]]:
        """Return how many parties talk, and what is sent."""
        return {
            "parties": {str(n): n for n in (1, 2, 3, 5)},
            "value": {
                "true": True,
                "false": False,
                "none": None,
                "scalar": np.array(7),
                "floats": np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4),
                "empty": np.zeros((0, 3), np.uint8),
                "bools": np.array([True, False]),
                "strided": np.arange(12)[::-2],
            },
        }

    # -- what arrives

    def test_each_knows_its_rank(self, parties: int) -> None:
        """There is one communicator per party, in the order of ranks."""
        with self._connected(parties) as comms:
            got = [(comm.rank, comm.world_size) for comm in comms]
            _expect(
                "the ranks and the number of parties", [(r, parties) for r in range(parties)], got
            )

    def test_everyone_reaches_everyone(self, parties: int) -> None:
        """A message goes from each party to each, itself included."""
        with self._connected(parties) as comms:
            for a in comms:
                for b in comms:
                    a.send(b.rank, f"{RUN}/0", np.array([a.rank, b.rank]))
            for b in comms:
                for a in comms:
                    _receive(b, a.rank, f"{RUN}/0", np.array([a.rank, b.rank]))

    def test_a_value_arrives_as_it_was_sent(self, value: Any) -> None:
        """Dtype, shape and elements stay; so do ``None`` and truth values."""
        with self._connected(2) as (a, b):
            a.send(1, f"{RUN}/0", value)
            _receive(b, 0, f"{RUN}/0", value)

    def test_big_values_arrive(self) -> None:
        """A message of some megabytes is one message."""
        with self._connected(2) as (a, b):
            value = np.random.default_rng(0).integers(0, 255, self.big, dtype=np.uint8)
            with ThreadPoolExecutor(1) as pool:
                sent = pool.submit(a.send, 1, f"{RUN}/0", value)
                _receive(b, 0, f"{RUN}/0", value)
                sent.result()

    def test_messages_are_found_by_key_not_by_order(self) -> None:
        """The receiver asks in its own order, and gets what was sent under the key."""
        with self._connected(2) as (a, b):
            for i in range(20):
                a.send(1, f"{RUN}/{i}", np.array(i))
            for i in [*range(19, 0, -2), *range(0, 20, 2)]:
                _receive(b, 0, f"{RUN}/{i}", np.array(i))

    def test_one_key_from_several_parties_is_several_messages(self) -> None:
        """A message is named by its sender and its key."""
        with self._connected(3) as comms:
            for comm in comms[1:]:
                comm.send(0, f"{RUN}/0", np.array(comm.rank))
            for rank in (2, 1):
                _receive(comms[0], rank, f"{RUN}/0", np.array(rank))

    def test_runs_are_apart(self) -> None:
        """The same place in two runs is two messages."""
        with self._connected(2) as (a, b):
            for comm in (a, b):
                comm.open("kit-other")
            a.send(1, "kit-other/0", np.array(2))
            a.send(1, f"{RUN}/0", np.array(1))
            _receive(b, 0, f"{RUN}/0", np.array(1))
            _receive(b, 0, "kit-other/0", np.array(2))

    def test_sending_does_not_wait_for_the_receiver(self) -> None:
        """Two parties send to each other before either receives."""
        with ThreadPoolExecutor(2) as pool, self._connected(2) as (a, b):
            value = np.zeros(1 << 20, np.uint8)
            sent = [pool.submit(x.send, y.rank, f"{RUN}/0", value) for x, y in ((a, b), (b, a))]
            for each in sent:
                _done(each, self.slack, "both parties send before one of them receives")
            _receive(a, 1, f"{RUN}/0", value)
            _receive(b, 0, f"{RUN}/0", value)

    def test_many_threads_and_many_messages(self) -> None:
        """Threads of one party send and receive at once, and none gets another's message."""
        count = 40
        with ThreadPoolExecutor(12) as pool, self._connected(3) as comms:

            def exchange(mine: int, other: int) -> None:
                for i in range(count):
                    comms[mine].send(other, f"{RUN}/{mine}.{other}.{i}", np.array([mine, other, i]))
                for i in reversed(range(count)):
                    expected = np.array([other, mine, i])
                    _receive(comms[mine], other, f"{RUN}/{other}.{mine}.{i}", expected)

            pairs = [(a, b) for a in range(3) for b in range(3)]
            for each in [pool.submit(exchange, *pair) for pair in pairs]:
                _done(each, DEADLINE, "all threads get their messages")

    def test_messages_are_counted(self) -> None:
        """Each party knows how much went between it and each other; to itself is not a link."""
        expected = "803 bytes in 3 messages, at both ends"
        fix = "derive from CommunicatorBase, and let _send return the bytes of the value"
        with self._connected(2) as (a, b):
            if not (isinstance(a, CommunicatorBase) and isinstance(b, CommunicatorBase)):
                complain(
                    "messages are not counted by link", expected=expected, got="no counts", fix=fix
                )
            before = a.traffic()[1], b.traffic()[0]
            for i, value in enumerate((np.zeros(100), np.zeros(3, np.uint8), True)):
                a.send(1, f"{RUN}/{i}", value)
                a.send(0, f"{RUN}/{i}", value)
                _receive(b, 0, f"{RUN}/{i}", value)
            sent, received = a.traffic()[1], b.traffic()[0]
        got = [
            sent.sent - before[0].sent,
            sent.sent_messages - before[0].sent_messages,
            received.received - before[1].received,
            received.received_messages - before[1].received_messages,
        ]
        if got != [803, 3, 803, 3]:
            complain(
                "messages are not counted by link",
                expected=expected,
                got=f"bytes and messages sent, then received: {got}",
                fix=fix,
            )

    # -- what does not

    def test_a_duplicate_is_dropped_or_refused(self) -> None:
        """The second message of a key is never read, also where the first one was."""
        with self._connected(2, timeout=0.3) as (a, b):
            _patiently(a.send, 1, f"{RUN}/0", np.array(1))
            with contextlib.suppress(CommError):
                a.send(1, f"{RUN}/0", np.array(2))
            _receive(b, 0, f"{RUN}/0", np.array(1), _patiently)
            with contextlib.suppress(CommError):
                a.send(1, f"{RUN}/0", np.array(3))
            self._times_out(b, 0, f"{RUN}/0", 0.3, "after the message was read")

    def test_a_message_of_no_run_is_refused(self) -> None:
        """Who is in no such run, not yet or no more, takes no message of it."""
        with self._connected(2, timeout=0.3) as (a, b):
            _refused("a message of a run that was never opened", a.send, 1, "kit-early/0", True)
            b.open("kit-early")
            self._times_out(b, 0, "kit-early/0", 0.3, "though it was opened after the message")
            b.close(RUN)
            _refused("a message of a run that was closed", a.send, 1, f"{RUN}/1", True)
            _refused("waiting in a run that was closed", b.recv, 0, f"{RUN}/1")

    def test_there_is_no_party_beyond_the_last(self) -> None:
        """A rank that is none is a CommError; it is not counted from the end."""
        with self._connected(2) as (a, _):
            for rank in (2, -1):
                _refused(f"a message to party {rank} of 2", a.send, rank, f"{RUN}/0", True)

    def test_waiting_ends_at_the_deadline(self) -> None:
        """Nothing came: RecvTimeoutError, neither early nor late, and it names the party."""
        with self._connected(3, timeout=0.5) as comms:
            told = self._times_out(comms[0], 2, f"{RUN}/0", 0.5, "with nothing sent")
            if "2" not in told:
                complain(
                    "the error of a message that did not come is not clear",
                    expected="the party that was waited for",
                    got=told,
                    fix="name both parties, and how long it was waited",
                )
            _patiently(comms[2].send, 0, f"{RUN}/1", True)
            _receive(comms[0], 2, f"{RUN}/1", True, _patiently)

    def test_an_abort_wakes_all_who_wait(self) -> None:
        """When one party fails, all that wait in the run end at once, and are told the reason.

        Its own threads wait, too, as those of kernels that talk to peers beside its interpreter.
        """
        with ThreadPoolExecutor(4) as pool, self._connected(3, timeout=NEVER) as comms:
            waiting = [pool.submit(comm.recv, 0, f"{RUN}/0") for comm in comms[1:]]
            waiting.append(pool.submit(comms[1].recv, 2, f"{RUN}/1"))
            waiting.append(pool.submit(comms[0].recv, 1, f"{RUN}/2"))
            pause(0.2, "until they wait; who comes later is told, too")
            comms[0].abort(RUN, "party 0 failed in kit")
            for each in waiting:
                error = _error(each, self.slack, "all that wait end when a party fails")
                if not isinstance(error, AbortedError) or "party 0 failed in kit" not in str(error):
                    complain(
                        "an abort does not tell what happened",
                        expected="AbortedError with the reason: party 0 failed in kit",
                        got=repr(error),
                        fix="raise AbortedError in every recv of the run, at every party",
                    )

    def test_an_abort_ends_one_run_only(self) -> None:
        """Other runs go on; and who asks later in the one that failed does not wait."""
        with ThreadPoolExecutor(1) as pool, self._connected(2, 2 * self.slack) as (a, b):
            for comm in (a, b):
                comm.open("kit-other")
            a.abort(RUN, "party 0 failed")
            a.send(1, "kit-other/0", True)
            _receive(b, 0, "kit-other/0", True)
            late = pool.submit(b.recv, 0, f"{RUN}/0")
            error = _error(late, self.slack, "who waits in a run that failed is told at once")
            _expect("the error of a run that failed", AbortedError, type(error))

    def test_closing_wakes_who_waits(self) -> None:
        """A run that is closed has nobody waiting in it."""
        with ThreadPoolExecutor(1) as pool, self._connected(2, timeout=NEVER) as (_, b):
            waiting = pool.submit(b.recv, 0, f"{RUN}/0")
            pause(0.2, "until it waits; who comes later gets an error, too")
            b.close(RUN)
            error = _error(waiting, self.slack, "who waits in a run that is closed ends")
            if not isinstance(error, CommError):
                complain(
                    "closing a run does not end the waiting in it",
                    expected="CommError",
                    got=repr(error),
                    fix="wake all that wait in close()",
                )

    def test_opening_and_closing_twice_is_once(self) -> None:
        """``open`` of an open run keeps its messages, ``close`` of a closed one does nothing."""
        with self._connected(2) as (a, b):
            a.send(1, f"{RUN}/0", True)
            b.open(RUN)
            _receive(b, 0, f"{RUN}/0", True)
            for _ in range(2):
                a.close(RUN)

    # --

    @contextlib.contextmanager
    def _connected(
        self, parties: int, timeout: float = DEADLINE
    ) -> Iterator[Sequence[Communicator]]:
        comms = self.make(parties, timeout)
        try:
            for comm in comms:
                comm.open(RUN)
            yield comms
        finally:
            for comm in comms:
                comm.close(RUN)  # so that no test leaves a thread waiting
            self.finish(comms)

    def _times_out(self, comm: Communicator, rank: int, key: str, timeout: float, when: str) -> str:
        late = False

        def end() -> None:
            nonlocal late
            late = True
            comm.close(key.partition("/")[0])

        timer = threading.Timer(timeout + self.slack, end)
        timer.start()
        begin = time.monotonic()
        try:
            got: Any = comm.recv(rank, key)
        except RecvTimeoutError as error:
            took = time.monotonic() - begin
            if not took >= 0.9 * timeout:
                _at_a_wrong_time(when, timeout, f"after {took:.2f} seconds")
            return str(error)
        except Exception as error:
            if late:
                _at_a_wrong_time(when, timeout, f"it goes on {self.slack:g} seconds later")
            got = f"{type(error).__name__}: {error}"
        finally:
            timer.cancel()
        return complain(
            f"a message that nobody sent does not end in RecvTimeoutError ({when})",
            expected="RecvTimeoutError",
            got=got,
            fix="keep messages by sender and key, hand each out once, and raise at the deadline",
        )


def _receive(
    comm: Communicator,
    rank: int,
    key: str,
    expected: Any,
    call: Callable[..., Any] = lambda recv, *args: recv(*args),
) -> None:
    what = f"the message {key} from party {rank} at party {comm.rank}"
    try:
        got = call(comm.recv, rank, key)
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
    _expect(what, expected, got)


def _patiently(call: Callable[..., T], *args: Any) -> T:
    """Return what a call gives, also where the communicator's short timeout ends it some times."""
    errors: list[CommError] = []

    def attempt() -> list[T]:
        try:
            return [call(*args)]
        except CommError as error:
            errors.append(error)
            return []

    try:
        (found,) = wait_until(attempt)
    except AssertionError:
        raise errors[-1] from None
    return found


def _at_a_wrong_time(when: str, timeout: float, got: str) -> NoReturn:
    complain(
        f"a message that did not come is given up at a wrong time ({when})",
        expected=f"after {timeout} seconds",
        got=got,
        fix="wait for the timeout that the communicator was made with",
    )


def _expect(what: str, expected: Any, got: Any) -> None:
    if isinstance(expected, np.ndarray):
        same = (
            isinstance(got, np.ndarray)
            and (got.dtype, got.shape) == (expected.dtype, expected.shape)
            and np.array_equal(got, expected)
        )
    else:
        same = type(got) is type(expected) and bool(got == expected)
    if not same:
        complain(
            f"{what} is not what it should be",
            expected=f"{expected!r:.200}",
            got=f"{got!r:.200}",
            fix="deliver every message once, under its sender and key, as it was sent",
        )


def _refused(what: str, call: Callable[..., Any], *args: Any) -> None:
    try:
        got: Any = call(*args)
    except CommError:
        return
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
    complain(f"{what} is not refused", expected="CommError", got=got, fix="raise CommError")


def _done(future: Future[Any], seconds: float, what: str) -> None:
    """Check that something ends, and well."""
    error = _error(future, seconds, what)
    if error is not None:
        raise error


def _error(future: Future[Any], seconds: float, what: str) -> BaseException | None:
    """Return the error of something that must end."""
    try:
        return future.exception(seconds)
    except TimeoutError:
        complain(
            what,
            expected=f"within {seconds:g} seconds",
            got=f"still waiting, in {threading.active_count()} threads",
            fix="notify all waiters; let send put into a buffer",
        )
