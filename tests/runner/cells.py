"""Cells of documents: Python, files that are written, and commands of a shell.

They do what they do in a notebook, and stricter: each command of a shell has to succeed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHELL, FILE = "%%bash\n", "%%writefile "


class Cells:
    """Runs cells in one namespace, in the working directory."""

    def __init__(self) -> None:
        self._namespace: dict[str, object] = {"__name__": "__main__"}
        self._groups: list[int] = []

    def run(self, cell: str, document: str, line: int) -> None:
        """Run a cell.

        Args:
            cell: its text.
            document: where it stands, for tracebacks.
            line: the line before its first one.

        Raises:
            CalledProcessError: a command of a shell fails.
        """
        head, _, body = cell.partition("\n")
        if cell.startswith(SHELL):
            self._commands(body)
        elif cell.startswith(FILE):
            Path(head.removeprefix(FILE)).write_text(body, encoding="utf-8")
        else:
            exec(compile("\n" * line + cell, document, "exec"), self._namespace)

    def _commands(self, script: str) -> None:
        ours = str(Path(sys.executable).parent)
        environment = {**os.environ, "PATH": f"{ours}{os.pathsep}{os.environ['PATH']}"}
        command = ["bash", "-euo", "pipefail", "-c", script]
        with subprocess.Popen(command, env=environment, start_new_session=True) as shell:
            self._groups.append(shell.pid)
        if shell.returncode:
            raise subprocess.CalledProcessError(shell.returncode, script)

    def close(self) -> None:
        """End what commands have left running."""
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)


@contextmanager
def cells() -> Iterator[Cells]:
    """Run cells, and end what they leave running."""
    made = Cells()
    try:
        yield made
    finally:
        made.close()
