"""Storage of a party in an engine, which asks the front of its worker."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from mplang_analysis import StorageUse, Stored

from mplang_core.ext import AdmissionError
from mplang_data.questions import Ask
from mplang_data.stored.entry import Entry, Held, StoreError
from mplang_data.stored.run import StoreRun, decode_versions


class SinkClient:
    """Storage of a party for the engine's coordinator; see :class:`Storage`.

    Args:
        ask: asks the front.

    Attributes:
        run: the run that uses it now; ``None`` between runs.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask_front = ask
        self.run: StoreRun | None = None

    # -- for the engine

    def versions(self, name: str) -> list[Any]:
        """Return the versions that are here, as the party tells them to the others.

        Raises:
            AdmissionError: what is stored cannot be read.
        """
        try:
            found: list[Any] = self._ask("held", {"name": name})[0]["held"]
        except StoreError as error:
            raise AdmissionError(f"what this party stores: {error}", code="A006") from error
        return found

    def begin_run(
        self,
        run: str,
        program: str,
        parties: Sequence[str],
        loads: Mapping[StorageUse, str],
        stores: Stored,
    ) -> None:
        """Open the storage for the ops of a run.

        Args:
            run: the name of the run.
            program: the digest of its program.
            parties: names of the parties, by rank.
            loads: the versions that it loads, by the use.
            stores: the labels of what it stores.
        """
        self.run = StoreRun(run, program, parties, loads, stores)

    def end_run(self) -> None:
        """Release the versions that the run might have loaded."""
        self.run = None
        with contextlib.suppress(StoreError):  # the front releases them with the session
            self._ask("done", {})

    # -- for kernels

    def held(self, name: str) -> Sequence[Held]:
        """Return the versions that are here, whole."""
        answer, _ = self._ask("held", {"name": name})
        return decode_versions(answer["held"])

    def begin(self, name: str, members: Sequence[int]) -> None:
        """Begin to store."""
        self._ask("begin", {"name": name, "members": list(members)})

    def stage(self, entry: Entry, files: Sequence[int]) -> None:
        """Write a version whole, beside the current one."""
        self._ask("stage", {"entry": entry.model_dump(mode="json")}, files)

    def commit(self, name: str, version: str) -> None:
        """Make a version the current one."""
        self._ask("commit", {"name": name, "version": version})

    def settle(self, name: str, version: str) -> None:
        """Remove all other versions."""
        self._ask("settle", {"name": name, "version": version})

    def abandon(self, name: str, version: str, *, told: bool) -> None:
        """Release the lock of a name."""
        self._ask("abandon", {"name": name, "version": version, "told": told})

    def open(self, name: str, version: str) -> tuple[Entry, Sequence[int]]:
        """Return a version and its open files."""
        answer, files = self._ask("open", {"name": name, "version": version})
        return Entry(**answer["entry"]), files

    def remove(self, name: str, members: Sequence[int]) -> None:
        """Remove all versions."""
        self._ask("remove", {"name": name, "members": list(members)})

    def _ask(
        self, method: str, args: Mapping[str, Any], files: Sequence[int] = ()
    ) -> tuple[Mapping[str, Any], Sequence[int]]:
        try:
            answer, opened = self._ask_front(method, args, files)
        except OSError as error:
            raise StoreError(str(error)) from error
        if "refused" in answer:
            raise StoreError(answer["refused"])
        return answer, opened
