"""Section ``sink`` of a worker's configuration: where programs leave results that stay."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mplang_analysis import Label, StorageUse, Stored

from mplang_core.ext import AdmissionError
from mplang_data.questions import Ask
from mplang_data.stored.client import SinkClient
from mplang_data.stored.entry import Held, StoreError, read_entries
from mplang_data.stored.expiry import RULE, stored_in
from mplang_data.stored.run import decode_versions, resolve_loads
from mplang_data.stored.server import SinkServer
from mplang_data.stored.sink import Sink
from mplang_data.stored.sink_config import read_sink


class SinkSection:
    """Sink of a party, as a worker and a coordinator read it.

    It is a ``mplang_worker.ext.StoreSection``, and the entry point ``sink`` of ``mplang.sections``.
    """

    def read(self, fields: Any, folder: str) -> dict[str, Any]:
        """Return the fields of a :class:`SinkConfig`, with absolute paths.

        Args:
            fields: the section.
            folder: the folder that paths are relative to.

        Raises:
            ConfigError: a field is invalid.

        Example:
            >>> SECTION.read("results", "/srv")["folder"]
            '/srv/results'
        """
        return read_sink(fields, folder).model_dump(mode="json")

    def front(self, fields: Any, worker: Mapping[str, Any]) -> SinkServer:
        """Return what serves the sink to engines.

        Args:
            fields: the section, as :meth:`read` returns it.
            worker: the worker's configuration, as plain data.

        Raises:
            ConfigError: the folder cannot be written or is in use, or the key cannot be read.
        """
        return SinkServer(Sink(read_sink(fields, "/")))

    def engine(self, ask: Ask) -> SinkClient:
        """Return the storage of an engine's coordinator.

        Args:
            ask: asks the front.
        """
        return SinkClient(ask)

    def retention(self, fields: Mapping[str, object]) -> dict[str, str]:
        """Return the rule by which stored values expire, by its name.

        Args:
            fields: the section, as :meth:`read` returns it.

        Example:
            >>> SECTION.retention({"folder": "/srv/results", "retention": {"stored": "90d"}})
            {'sink.retention.stored': '90d'}
        """
        keeps = read_sink(fields, "/").retention.stored
        return {} if keeps is None else {RULE: keeps}

    def expiring(self, fields: Mapping[str, object]) -> Iterator[tuple[str, str, float]]:
        """Yield what will expire: the rule, what, and when.

        Args:
            fields: the section, as :meth:`read` returns it.
        """
        config = read_sink(fields, "/")
        keeps = config.retention.seconds
        if keeps is not None:
            for each in stored_in(Path(config.folder)):
                yield RULE, each.name, each.time + keeps

    def resolve(
        self,
        loads: Sequence[StorageUse],
        names: Sequence[str],
        stored: Mapping[int, Mapping[str, Any]],
    ) -> tuple[Mapping[StorageUse, str], Stored]:
        """Return the versions that a run loads, and their labels, the same at all parties.

        Args:
            loads: what it loads.
            names: names of the parties, by rank.
            stored: by rank and name the versions that the parties tell; untrusted.

        Raises:
            AdmissionError: what it loads is not there, or not of one run at all members.
            WireError: what a party tells is malformed.
        """
        held = {
            rank: {name: decode_versions(versions) for name, versions in each.items()}
            for rank, each in stored.items()
        }
        try:
            return resolve_loads(loads, names, held)
        except StoreError as error:
            raise AdmissionError(str(error), code="A006") from error

    def labels(
        self,
        loads: Sequence[StorageUse],
        names: Sequence[str],
        stored: Mapping[int, Mapping[str, Any]],
    ) -> Stored:
        """Return the labels of what a program loads; what the parties do not tell is left out.

        Args:
            loads: what it loads.
            names: names of the parties, by rank.
            stored: by rank and name the entries that the parties tell; untrusted.
        """
        held = {
            rank: {name: [Held(entry.card(), True)] for name, entry in read_entries(each).items()}
            for rank, each in stored.items()
        }
        found: dict[str, dict[int, Label]] = {}
        for load in loads:
            with contextlib.suppress(StoreError):  # the workers say so, and by name
                for name, labels in resolve_loads([load], names, held)[1].items():
                    found.setdefault(name, {}).update(labels)
        return found


SECTION = SinkSection()
