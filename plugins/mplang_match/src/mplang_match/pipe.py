"""Messages with data over a pipe between a party of a simulator and its matcher's process."""

from __future__ import annotations

import json
import threading
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]


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
            OSError: the other end has gone.
        """
        with self._sending:
            self._connection.send_bytes(json.dumps(message).encode())
            self._connection.send_bytes(data)

    def receive(self) -> tuple[Message, bytes]:
        """Wait for a message.

        Raises:
            EOFError: the other end has gone.
            OSError: likewise.
        """
        message = json.loads(self._connection.recv_bytes())
        return message, self._connection.recv_bytes()

    def close(self) -> None:
        """Close this end."""
        self._connection.close()
