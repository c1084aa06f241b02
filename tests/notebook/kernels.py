"""Kernel of a notebook for tests: cells are run in a process of its own, as Jupyter runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from jupyter_client.manager import KernelManager
from mplang_testing.waiting import DEADLINE


class Outputs(NamedTuple):
    """Outputs of a cell.

    Attributes:
        text: what was printed, warnings included.
        result: the representations of its last expression by MIME type.
        error: the class and the message of the error that ended it; empty for none.
        traceback: as it is shown, without colours.
    """

    text: str
    result: dict[str, Any]
    error: tuple[str, str] | tuple[()]
    traceback: str


class Kernel:
    """A running kernel.

    Args:
        manager: its manager.
        client: a connection to it.
    """

    def __init__(self, manager: KernelManager, client: Any) -> None:
        self._manager, self._client = manager, client

    def start(self, code: str) -> str:
        """Send a cell, and return the name of the request."""
        return str(self._client.execute(code))

    def interrupt(self) -> None:
        """Do what the stop button does."""
        self._manager.interrupt_kernel()

    def outputs(self, request: str) -> Outputs:
        """Return what a cell has given once it has ended."""
        text, result, error, trace = "", {}, (), ""
        while True:
            message = self._client.get_iopub_msg(timeout=DEADLINE)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                text += content["text"]
            elif kind == "execute_result":
                result = content["data"]
            elif kind == "error":
                error = content["ename"], content["evalue"]
                trace = plain("\n".join(content["traceback"]))
            elif kind == "status" and content["execution_state"] == "idle":
                return Outputs(text, result, error, trace)

    def wait_for(self, request: str, text: str) -> None:
        """Wait until a cell has printed a text."""
        seen = ""
        while text not in seen:
            message = self._client.get_iopub_msg(timeout=DEADLINE)
            if (
                message["parent_header"].get("msg_id") == request
                and message["msg_type"] == "stream"
            ):
                seen += message["content"]["text"]

    def run(self, code: str) -> Outputs:
        """Run a cell to its end."""
        return self.outputs(self.start(code))


def plain(text: str) -> str:
    """Return a text without escape sequences of a terminal."""
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def sockets_in(folder: str) -> dict[str, str]:
    """Return options of a kernel manager: others that start at the same time have other sockets."""
    return {"kernel_name": "python3", "transport": "ipc", "ip": f"{folder}/kernel"}


@contextmanager
def kernel() -> Iterator[Kernel]:
    """Start a kernel, and end it."""
    with TemporaryDirectory() as folder:
        manager = KernelManager(**sockets_in(folder))
        manager.start_kernel()
        client = manager.blocking_client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=DEADLINE)
            yield Kernel(manager, client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
