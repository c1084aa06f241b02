"""Rules that follow their files: parsed once, and again when a file changes."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from mplang_core.ext import ConfigError
from mplang_policy.names import ANY, Names
from mplang_policy.rules import Rules, cedar_files

log = logging.getLogger("mplang.policy")


class LiveRules:
    """The rules of a file or folder, as they are now. Safe for threads.

    Args:
        path: the file, or the folder of files ``*.cedar``.
        names: what the rules may name.
    """

    def __init__(self, path: str | Path, names: Names = ANY) -> None:
        self._path = Path(path)
        self._names = names
        self._seen: object = None
        self._rules: Rules | ConfigError | None = None
        self._lock = threading.Lock()

    def current(self) -> Rules:
        """Return the rules.

        Raises:
            ConfigError: they are gone, or wrong since they were changed; those of before do not
                count any more.
        """
        with self._lock:
            seen = self._look()
            if seen != self._seen or seen is None:
                self._read()
                self._seen = seen
            if isinstance(self._rules, Rules):
                return self._rules
            raise ConfigError(str(self._rules), code="C012")

    def _read(self) -> None:
        before = self._rules
        try:
            self._rules = Rules.read(self._path, self._names)
        except ConfigError as error:
            self._rules = error
            if not isinstance(before, ConfigError) or str(before) != str(error):
                log.error("nothing runs: there are no valid rules: %s", error)
            return
        if before is not None:
            log.warning("the rules of %s have changed, and are read", self._path)

    def _look(self) -> object:
        """Return what changes whenever a file does; ``None`` if they cannot be looked at."""
        try:
            found = [(file, file.stat()) for file in cedar_files(self._path)]
        except OSError:
            return None
        return [
            (file.name, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns) for file, at in found
        ]
