"""Cells of documents: Python, files that are written, and commands of a shell.

They do what they do in a notebook, and stricter: each command of a shell has to succeed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SHELL, FILE = "%%bash\n", "%%writefile "
COMMANDS = ("mplang", "pip", "pytest")


def environment(folder: Path) -> Mapping[str, str]:
    """Make an environment for commands: what is installed here, and what they install.

    Args:
        folder: where to make it; it may be there.

    Returns:
        Variables of processes that are in it.
    """
    venv.create(folder, clear=True)
    below = sysconfig.get_path("purelib")
    above = sysconfig.get_path("purelib", vars={"base": str(folder)})
    Path(above, "below.pth").write_text(f"import site; site.addsitedir({below!r})\n")
    ours, theirs = Path(sys.executable).parent, folder / "bin"
    for name in COMMANDS:
        text = (ours / name).read_text().replace(str(ours), str(theirs), 1)
        (theirs / name).write_text(text)
        (theirs / name).chmod(0o755)
    path = f"{theirs}{os.pathsep}{os.environ['PATH']}"
    # pip reads the last one the other way round: nothing is fetched to build with.
    return {"PATH": path, "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}


class Cells:
    """Runs cells in one namespace, in the working directory.

    Args:
        folder: for the environment of commands.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment: Mapping[str, str] | None = None
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
            *append, name = head.removeprefix(FILE).split()
            with open(name, "a" if append == ["-a"] else "w", encoding="utf-8") as file:
                file.write(body)
        else:
            exec(compile("\n" * line + cell, document, "exec"), self._namespace)

    def _commands(self, script: str) -> None:
        if self._environment is None:
            self._environment = {**os.environ, **environment(self._folder)}
        command = ["bash", "-euo", "pipefail", "-c", script]
        with subprocess.Popen(command, env=self._environment, start_new_session=True) as shell:
            self._groups.append(shell.pid)
        if shell.returncode:
            raise subprocess.CalledProcessError(shell.returncode, script)

    def close(self) -> None:
        """End what commands have left running."""
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)


@contextmanager
def cells(folder: Path) -> Iterator[Cells]:
    """Run cells, and end what they leave running.

    Args:
        folder: for the environment of commands.
    """
    made = Cells(folder)
    try:
        yield made
    finally:
        made.close()
