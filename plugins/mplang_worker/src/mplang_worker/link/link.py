"""Link: a connection to another worker, shared by all jobs."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

import numpy as np
from mplang_http.ext import MAX_HEAD, Buffer, Head, Packed, aligned_bytes, read_head

from mplang_core import MPLangError
from mplang_core.ext import Waiter, WireError
from mplang_worker.link.connection import Connection
from mplang_worker.link.frames import CHUNK, MAX_KEY, PREFIX, Input, Kind, frame
from mplang_worker.link.lost_link import LostLink
from mplang_worker.link.reading import SharedReading
from mplang_worker.wire.opening import Opening

MAX_RUNS = 10_000  # open runs of a peer
MAX_RUN_NAME = 1024  # characters of a run's name
MAX_ENDED = 256  # runs of a peer that ended last, for workers that are late
MAX_SIGNED = 64 << 10  # bytes of what a gate signs of its log
MAX_STREAMS = 256  # large messages that are being received
MESSAGE_OVERHEAD = 1024  # bytes of memory beside the message's own, with a small head
SMALL_HEAD = 256  # bytes
HEAD_WEIGHT = 64  # bytes of memory that a byte of a larger head may take: an empty map has one
COPY_LIMIT = 64 << 10  # bytes up to which a body is copied from the read buffer
log = logging.getLogger("mplang.http.link")


class LinkListener(Protocol):
    """Receiver of a link's events. Its methods run in threads that read, so they must not block.

    ``run`` is the name of a run on links, ``key`` begins with it.

    Attributes:
        agreed: whether the peer opens runs before it sends.
    """

    agreed: bool

    def message(self, link: Link, key: str, packed: Packed) -> None:
        """Handle a value.

        Args:
            link: the link.
            key: key of the message.
            packed: the encoded value.
        """

    def opened(self, link: Link, run: str, opening: Opening | None) -> None:
        """Handle that the peer has opened a run.

        Args:
            link: the link.
            run: name of the run.
            opening: what the peer was shown of it, if it tells.
        """

    def headed(self, link: Link, run: str, name: str, head: bytes) -> None:
        """Handle that the peer permits a run.

        Args:
            link: the link.
            run: key of the run.
            name: its name at all parties.
            head: what its gate tells of its log; nothing before the run is on record there.
        """

    def closed(self, link: Link, run: str) -> bool:
        """Handle that the peer has closed a run.

        Args:
            link: the link.
            run: name of the run.

        Returns:
            Whether the peer waits for an answer.
        """

    def acknowledged(self, link: Link, run: str) -> None:
        """Handle that the peer knows that this worker has closed a run.

        Args:
            link: the link.
            run: name of the run.
        """

    def aborted(self, link: Link, run: str, reason: str) -> None:
        """Handle that a run has failed at the peer.

        Args:
            link: the link.
            run: name of the run.
            reason: text of the peer.
        """

    def lost(self, link: Link, reason: LostLink) -> None:
        """Handle the end of the link.

        Args:
            link: the link.
            reason: why it ended.
        """


class Link:
    """Connection to another worker: multiplexes the messages of all runs.

    Args:
        connection: the connection after the handshake.
        peer: name of the other worker.
        listener: receiver of the link's events.
        max_message: maximum size of a message in bytes.
        max_waiting: maximum size in bytes of all messages that no program has received yet.

    Attributes:
        peer: name of the other worker.
        certificate: SHA-256 of its certificate, in hex; empty without TLS.
        runs: runs that the peer has opened, with what it was shown of each.
        ended: by their names, what the peer was shown of the runs that it has closed last, and why
            it ended them, if it has told.
    """

    def __init__(
        self,
        connection: Connection,
        peer: str,
        listener: LinkListener,
        max_message: int,
        max_waiting: int,
    ) -> None:
        self.peer = peer
        self.certificate = connection.certificate
        self.runs: dict[str, Opening | None] = {}
        self.ended: OrderedDict[str, tuple[Opening, str]] = OrderedDict()
        self._reasons: dict[str, str] = {}  # of runs that have failed at the peer
        self._openings: dict[str, int] = {}  # bytes
        self._headed: dict[str, set[bool]] = {}  # by run, whether with a head and without
        self._connection = connection
        self._listener = listener
        self._max_message = max_message
        self._budget = max_waiting
        # reentrant: a value may be freed while another one is counted
        self._budget_lock = threading.RLock()
        self._input = Input(connection)
        self._frames = self._read_frames()
        self._reading = SharedReading(self._read, connection.interrupt)
        self._write_lock = threading.Lock()
        self._streams = itertools.count(1)
        self._incoming: dict[int, tuple[str, Packed, int]] = {}
        self._queued: deque[bytes] = deque()  # control frames that go ahead of what is sent next
        self._to_write = threading.Semaphore(0)  # released once for each of them, and at the end
        self._close_lock = threading.Lock()
        self._closed = False

    def start(self) -> None:
        """Start the threads that read while nobody waits, and write queued control frames."""
        for work in (self._reading.stand_by, self._write_queued):
            threading.Thread(target=work, name=f"mplang-link-{self.peer}", daemon=True).start()

    def wait(self, waiter: Waiter, deadline: float) -> None:
        """Read what comes until a waiter is woken, or ``time.monotonic()`` is ``deadline``.

        Args:
            waiter: it waits for something of the peer; another thread may read in its place.
            deadline: when the waiting ends.
        """
        self._reading.wait(waiter, deadline)

    def send(self, key: str, head: bytes, buffers: Sequence[Buffer]) -> int:
        """Send a value in the calling thread.

        Args:
            key: key of the message.
            head: head of the value.
            buffers: buffers of the value.

        Returns:
            The size of the buffers in bytes.

        Raises:
            OSError: the link is lost.
            WireError: the value exceeds the maximum size of a message.
        """
        size = sum(map(len, buffers))
        if size > self._max_message:
            raise WireError(
                f"a message has at most {self._max_message} bytes, got {size}; limits.value of "
                "the workers sets it",
                code="L001",
            )
        if size <= CHUNK:
            self._write([frame(Kind.MESSAGE, key.encode(), head, size), *buffers])
        else:
            self._reading.summon()  # the peer may be writing as much
            stream = next(self._streams) & 0xFFFFFFFF
            self._write([frame(Kind.MESSAGE, key.encode(), head, size, stream)])
            for chunk in _chunks(buffers):
                self._write([frame(Kind.CHUNK, size=len(chunk), stream=stream), chunk])
        return size

    def send_control(self, kind: Kind, run: str, head: bytes = b"") -> None:
        """Send a control frame of a run.

        Args:
            kind: kind of the frame.
            run: name of the run.
            head: opening of the run, or reason of an abort.

        Raises:
            OSError: the link is lost.
        """
        self._write([frame(kind, run.encode(), head)])

    def queue_control(self, kind: Kind, run: str, text: str = "") -> None:
        """Queue a control frame of a run, without blocking. What is sent later comes later.

        Args:
            kind: kind of the frame.
            run: name of the run.
            text: reason of an abort.
        """
        self._queue(frame(kind, run.encode(), text.encode()[:MAX_KEY]))

    def close(self, reason: LostLink) -> None:
        """Close the link, and notify the listener. Idempotent."""
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
        self._listener.lost(self, reason)  # before the peer could begin a run on another link
        self._reading.end()
        self._connection.close()
        self._to_write.release()

    def _write(self, parts: list[Buffer]) -> None:
        with self._write_lock:
            try:
                while self._queued:
                    self._connection.write([self._queued.popleft()])
                if parts:
                    self._connection.write(parts)
                return
            except OSError as error:
                failure = error
        self.close(_close_reason(failure))
        raise failure

    def _queue(self, data: bytes) -> None:
        self._queued.append(data)
        self._to_write.release()

    def _write_queued(self) -> None:
        while self._to_write.acquire() and not self._closed:
            try:
                self._write([])
            except OSError:
                return

    def _read(self, deadline: float | None = None) -> None:
        """Wait for bytes, and take in the frames that they complete; end the link if it fails."""
        try:
            if self._input.receive(deadline):
                next(self._frames)
            return
        except (OSError, EOFError) as error:
            reason = _close_reason(error)
        except (MPLangError, ValueError, LookupError, MemoryError) as error:
            log.warning("the link to %s is ended: %s", self.peer, error)
            reason = LostLink.IS_WRONG
        except Exception:
            log.exception("the link to %s is ended", self.peer)
            reason = LostLink.MISTAKE
        except BaseException:  # the thread is interrupted amid a frame
            self.close(LostLink.INTERRUPTED)
            raise
        self._incoming.clear()
        self.close(reason)

    def _read_frames(self) -> Generator[None, None, None]:
        """Take in frames without end; stop where bytes are missing."""
        take, exactly, max_message = self._input.take, self._input.exactly, self._max_message
        while True:
            prefix = self._input.prefix()
            if prefix is None:
                prefix = PREFIX.unpack((yield from exactly(PREFIX.size)))
            code, stream, key_size, head_size, size = prefix
            if key_size > MAX_KEY or head_size > MAX_HEAD or size > max_message:
                raise WireError(f"a frame of {key_size}, {head_size} and {size} bytes", code="L005")
            both = key_size + head_size
            small = size if code == Kind.MESSAGE and size <= COPY_LIMIT else 0
            data = take(both + small) or (yield from exactly(both + small))
            key, head = data[:key_size].decode(), data[key_size:both]
            if code == Kind.MESSAGE:
                admitted, release = self._admit(key, head, size)
                if size <= COPY_LIMIT:
                    packed = Packed(admitted, data[both:], release)
                    self._listener.message(self, key, packed)
                else:
                    packed = Packed(admitted, aligned_bytes(size), release)
                    yield from self._read_body(key, packed, size, stream)
            elif code == Kind.CHUNK:
                yield from self._read_chunk(stream, size)
            else:
                self._read_control(Kind(code), key, head)

    def _admit(self, key: str, data: bytes, size: int) -> tuple[Head, Callable[[int], None]]:
        """Return the head of a message for which there is room, and what gives that back."""
        weight = 0 if len(data) <= SMALL_HEAD else HEAD_WEIGHT * len(data)
        self._reserve(size + weight)
        head = read_head(data)
        if sum(head.sizes) != size:
            raise WireError("a message whose head names another size", code="L005")
        if self._listener.agreed and key.partition("/")[0] not in self.runs:
            raise WireError("a message for a run that the peer is not in", code="L005")
        return head, (lambda n: self._release(n + weight)) if weight else self._release

    def _read_body(
        self, key: str, packed: Packed, size: int, stream: int
    ) -> Generator[None, None, None]:
        if size <= CHUNK:
            assert isinstance(packed.body, np.ndarray)
            yield from self._input.fill(packed.body.data)
            self._deliver(key, packed)
            return
        if len(self._incoming) >= MAX_STREAMS or stream in self._incoming:
            raise WireError("too many large messages at once", code="L005")
        self._incoming[stream] = (key, packed, 0)

    def _reserve(self, size: int) -> None:
        with self._budget_lock:
            self._budget -= size + MESSAGE_OVERHEAD
            if self._budget < 0:
                raise WireError(
                    "more messages than are kept until a program asks for them", code="L005"
                )

    def _release(self, size: int) -> None:
        with self._budget_lock:
            self._budget += size + MESSAGE_OVERHEAD

    def _read_chunk(self, stream: int, size: int) -> Generator[None, None, None]:
        key, packed, begin = self._incoming[stream]
        assert isinstance(packed.body, np.ndarray)
        end = begin + size
        if not 0 < size <= CHUNK or end > packed.body.nbytes:
            raise WireError("a frame is longer than a link takes", code="L005")
        yield from self._input.fill(packed.body.data[begin:end])
        if end < packed.body.nbytes:
            self._incoming[stream] = (key, packed, end)
            return
        del self._incoming[stream]
        self._deliver(key, packed)

    def _deliver(self, key: str, packed: Packed) -> None:
        assert isinstance(packed.body, np.ndarray)
        packed.body.flags.writeable = False
        self._listener.message(self, key, packed)

    def _read_control(self, kind: Kind, run: str, head: bytes) -> None:
        if not self._listener.agreed and kind in (Kind.OPEN, Kind.ABORT, Kind.HEAD):
            raise WireError("runs are opened and aborted on the links of engines", code="L005")
        if kind is Kind.OPEN:
            if len(self.runs) >= MAX_RUNS or len(run) > MAX_RUN_NAME:
                raise WireError("too many runs at once, or one with too long a name", code="L005")
            opening = Opening.read(head) if head else None
            if run in self.runs or (opening is not None and opening.key != run):
                raise WireError("a run is opened once, under the hash of what it is", code="L005")
            self._reserve(len(head))
            self.runs[run], self._openings[run] = opening, len(head)
            self._listener.opened(self, run, opening)
        elif kind is Kind.CLOSE:
            if run in self.runs:
                self._end(run)
            awaits = self._listener.closed(self, run)
            if len(self._queued) > MAX_RUNS:
                raise WireError("it asks, but does not read the answers", code="L005")
            if awaits:
                self._queue(frame(Kind.CLOSED, run.encode()))
        elif kind is Kind.HEAD:
            opening = self.runs.get(run)
            before = self._headed.setdefault(run, set()) if opening is not None else {True, False}
            if opening is None or bool(head) in before or len(head) > MAX_SIGNED:
                raise WireError(
                    "a run is permitted once, and its head told once, by who is in it", code="L005"
                )
            before.add(bool(head))
            self._listener.headed(self, run, opening.run, head)
        elif kind is Kind.CLOSED:
            self._listener.acknowledged(self, run)
        else:
            reason = head[:MAX_KEY].decode(errors="replace")
            if run in self.runs:
                self._reasons.setdefault(run, reason)
            self._listener.aborted(self, run, reason)

    def _end(self, run: str) -> None:
        opening, reason = self.runs.pop(run), self._reasons.pop(run, "")
        self._release(self._openings.pop(run))
        self._headed.pop(run, None)
        if opening is not None:
            self.ended[opening.run] = opening.told("", []), reason
            if len(self.ended) > MAX_ENDED:
                self.ended.popitem(last=False)

    def __repr__(self) -> str:
        return f"<Link to {self.peer}>"


def _chunks(buffers: Sequence[Buffer]) -> list[memoryview]:
    views = [memoryview(buffer) for buffer in buffers]
    return [view[i : i + CHUNK] for view in views for i in range(0, len(view), CHUNK)]


def _close_reason(error: BaseException) -> LostLink:
    if isinstance(error, BlockingIOError | TimeoutError):
        return LostLink.READS_NOTHING
    return LostLink.ENDED
