"""Messages with data over a pipe between a party of a simulator and its matcher's process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]


class PipeEndedError(Exception):
    """The other end of a pipe has gone.

    It is not an ``OSError``: a :class:`mplang_core.errors.CommError` is one, too, and is not the
    end of the pipe over which the messages of a party's links go.
    """


class Pipe:
    """One end of a pipe; several threads may send, and one receives.

    Args:
        connection: the pipe.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def send(self, message: Message, data: bytes | memoryview = b"") -> None:
        """Send a message.

        Raises:
            PipeEndedError: the other end has gone.
        """
        with self._sending, _ending():
            self._connection.send_bytes(json.dumps(message).encode())
            self._connection.send_bytes(data)

    def receive(self) -> tuple[Message, bytes]:
        """Wait for a message.

        Raises:
            PipeEndedError: the other end has gone.
        """
        with _ending():
            message = json.loads(self._connection.recv_bytes())
            return message, self._connection.recv_bytes()

    def close(self) -> None:
        """Close this end."""
        self._connection.close()


@contextmanager
def _ending() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        raise PipeEndedError from error
