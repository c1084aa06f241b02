"""Storage in one run: what the parties load, which they agree on before it begins."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mplang_analysis import Followed, StorageUse, Stored, storage_of

from mplang_core import Program
from mplang_core.ext import AdmissionError
from mplang_http.link.comm import HttpCommunicator
from mplang_http.wire.opening import Opening

if TYPE_CHECKING:
    from mplang_http.engine.data import EngineData


def loads_of(program: Program) -> Sequence[StorageUse]:
    """Return what a program loads."""
    return [use for use in storage_of(program) if use.action == "load"]


def resolve_loads(
    loads: Sequence[StorageUse], names: Sequence[str], openings: Mapping[int, Opening]
) -> tuple[Mapping[StorageUse, str], Stored]:
    """Return the versions that a run loads, and their labels; all parties come to the same.

    Args:
        loads: what it loads.
        names: names of the parties, by rank.
        openings: the openings of the parties by rank.

    Raises:
        AdmissionError: what it loads is not there, or not of one run at all members.
        WireError: what a party tells is malformed.
    """
    if not loads:
        return {}, {}
    from mplang_data.ext import StoreError, decode_versions, resolve_loads

    held = {
        rank: {name: decode_versions(each) for name, each in opening.read_stored().items()}
        for rank, opening in openings.items()
    }
    try:
        return resolve_loads(loads, names, held)
    except StoreError as error:
        raise AdmissionError(str(error)) from error


class RunStorage:
    """What one run of a program does with storage.

    Args:
        program: the program.
        comm: communicator of the session.
        data: the data and the storage of this party; ``None`` if it has none.

    Attributes:
        labels: of what it loads, once that is known.
    """

    def __init__(self, program: Program, comm: HttpCommunicator, data: EngineData | None) -> None:
        self._program = program
        self._comm = comm
        self._storage = None if data is None else data.stored
        self._is_used = bool(storage_of(program))
        self._loads = loads_of(program)
        self._versions: Mapping[StorageUse, str] = {}
        self.labels: Stored = {}

    @property
    def changes(self) -> Sequence[str]:
        """Names of what the run stores or removes."""
        uses = storage_of(self._program)
        return sorted({use.name for use in uses if use.action != "load"})

    def told(self) -> dict[str, Any]:
        """Return by name the versions that this party holds of what the run loads.

        Raises:
            AdmissionError: this party stores nothing, or what it stores is damaged.
        """
        if not self._loads or self._storage is None:
            return {}
        from mplang_data.ext import StoreError, encode_versions

        told = {}
        for name in sorted({use.name for use in self._loads}):
            try:  # also of what others load: whoever stored it, too, tells whose data it is
                told[name] = encode_versions(self._storage.held(name))
            except StoreError as error:
                mine = any(
                    name == use.name and self._comm.rank in use.parties for use in self._loads
                )
                if mine:
                    raise AdmissionError(f"what this party stores: {error}") from error
        return told

    def resolve(self, openings: Mapping[int, Opening]) -> None:
        """Agree on the versions that the run loads; all parties come to the same.

        Args:
            openings: the openings of the parties by rank.

        Raises:
            AdmissionError: what it loads is not there, or not of one run at all members.
            WireError: what a party tells is malformed.
        """
        self._versions, self.labels = resolve_loads(self._loads, self._comm.names, openings)

    def begin(self, run: str, followed: Followed) -> None:
        """Have the ops of the run load those versions, and store with their labels.

        Args:
            run: the name of the run.
            followed: what it does with labels.
        """
        if not self._is_used or self._storage is None:
            return
        from mplang_data.ext import StoreRun

        digest, names = self._program.digest, self._comm.names
        self._storage.run = StoreRun(run, digest, names, self._versions, followed.stores)

    def end(self) -> None:
        """Let go of what the run might have loaded."""
        if not self._loads or self._storage is None:
            return
        from mplang_data.ext import StoreError

        with contextlib.suppress(StoreError):  # there is no sink
            self._storage.end()
