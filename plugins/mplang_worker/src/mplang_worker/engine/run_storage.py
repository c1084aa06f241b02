"""Storage in one run: what the parties load, which they agree on before it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mplang_analysis import Followed, StorageUse, Stored, storage_of

from mplang_core import Program
from mplang_core.ext import AdmissionError
from mplang_worker.base.sections import NO_STORE, store_section
from mplang_worker.link.comm import HttpCommunicator
from mplang_worker.wire.opening import Opening

if TYPE_CHECKING:
    from mplang_worker.engine.data import EngineData


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
    stored = {rank: opening.read_stored() for rank, opening in openings.items()}
    return store_section().resolve(loads, names, stored)


class RunStorage:
    """Storage of one run of a program.

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
        told = {}
        for name in sorted({use.name for use in self._loads}):
            try:  # also of what others load: whoever stored it, too, tells whose data it is
                if self._storage is None:
                    raise AdmissionError(f"what this party stores: {NO_STORE}", code="A006")
                told[name] = self._storage.versions(name)
            except AdmissionError:
                if any(name == use.name and self._comm.rank in use.parties for use in self._loads):
                    raise
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
        """Set the versions that the ops of the run load, and the labels that they store with.

        Args:
            run: the name of the run.
            followed: what it does with labels.
        """
        if not self._is_used or self._storage is None:
            return
        digest, names = self._program.digest, self._comm.names
        self._storage.begin_run(run, digest, names, self._versions, followed.stores)

    def end(self) -> None:
        """Release the versions that the run might have loaded."""
        if self._loads and self._storage is not None:
            self._storage.end_run()
