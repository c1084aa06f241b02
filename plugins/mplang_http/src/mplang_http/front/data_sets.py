"""Data sets of a worker, as the front holds them: checked at the start, opened for engines.

Engines have no path and no password. One asks for a data set by its name, and is given open files
if its coordinator is among the readers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from mplang_core import BaseType
from mplang_core.ext import ConfigError
from mplang_http.base.config import WorkerConfig
from mplang_http.front.threads import in_thread

log = logging.getLogger("mplang.http.front")


class FrontDataSets:
    """Data sets of a worker, for the engines of coordinators that may read them.

    Args:
        config: configuration of the worker.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self._sets = config.data_sets()

    def told(self, coordinator: str) -> dict[str, Any]:
        """Return descriptions of the data sets that a coordinator may read, by name."""
        return {
            name: each.public() for name, each in self._sets.items() if coordinator in each.readers
        }

    async def answer(
        self, coordinator: str, name: str, kind: BaseType
    ) -> tuple[dict[str, Any], Sequence[int]]:
        """Return what an engine is told of a data set, and its open files.

        Args:
            coordinator: whose engine asks.
            name: the name of the data set.
            kind: the type that is read.
        """
        if not self._sets:
            return {"unknown": True}, []
        from mplang_data import NoDataSetError, NotOfferedError, SourceError
        from mplang_data.ext import open_for

        try:
            opened = await in_thread(open_for, self._sets, name, kind, coordinator)
        except NoDataSetError:
            log.warning("%s is no reader of a data set %r", coordinator, name)
            return {"unknown": True}, []
        except NotOfferedError as error:
            return {"refused": str(error)}, []
        except SourceError as error:
            log.error("data set %s cannot be read: %s: %s", name, error, error.__cause__)
            return {"failed": str(error)}, []
        except Exception as error:  # of a plugin; its text may have a password
            log.error("data set %s cannot be read: %s", name, type(error).__name__)
            return {"failed": "its source cannot be opened"}, []
        log.info("%s reads data set %s", coordinator, name)
        found = self._sets[name]
        return {"kind": found.kind, "description": found.public()}, opened.files


def columns_of(name: str, kind: BaseType) -> frozenset[str]:
    """Return what is read of a data set, as disclosure tables name it."""
    from mplang_data import columns_read

    return frozenset(columns_read(name, kind))


def check_data(config: WorkerConfig) -> None:
    """Compare the data sets of a worker with their sources, in confined processes.

    Raises:
        ConfigError: a source is not there, or does not hold what the configuration says.
    """
    if not config.data:
        return
    from mplang_data.ext import check_data_sets

    found = check_data_sets(config.data_sets(), whole=False)
    wrong = [
        f"field 'data.{name}': {told['error']}" for name, told in found.items() if told["error"]
    ]
    if wrong:
        raise ConfigError("\n".join(wrong))
