"""Section ``gate`` of a worker's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mplang_core.ext import ConfigError
from mplang_policy.gate import Gate
from mplang_policy.gate_config import GateConfig
from mplang_policy.names import Names


class GateSection:
    """Rules and log of a worker's owner, as a worker reads them.

    It is a ``mplang_worker.ext.GateSection``, and the entry point ``gate`` of ``mplang.sections``.
    """

    def read(self, fields: Any, folder: str) -> dict[str, Any]:
        """Return the fields of a :class:`GateConfig`, with absolute paths.

        Args:
            fields: the section.
            folder: the folder that paths are relative to.

        Raises:
            ConfigError: a field is invalid.

        Example:
            >>> SECTION.read({"policy": "policy", "log": "gate.db"}, "/etc/mplang")["log"]
            '/etc/mplang/gate.db'
        """
        if not isinstance(fields, Mapping):
            raise ConfigError(f"field 'gate': expected fields, got {type(fields).__name__}")
        return GateConfig(**fields).at(folder).model_dump(mode="json")

    def front(self, fields: Any, worker: Mapping[str, Any]) -> Gate:
        """Return the gate of a worker.

        Args:
            fields: the section, as :meth:`read` returns it.
            worker: the worker's configuration, as plain data.

        Raises:
            ConfigError: the rules are wrong, or the log cannot be used.
        """
        gate = Gate(GateConfig(**fields), worker["name"], Names.of(worker))
        gate.start(worker)
        return gate

    def engine(self, ask: object) -> None:
        """Return nothing: engines do not know the gate."""


SECTION = GateSection()
