"""Section ``gate`` of a worker's configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from mplang_core.ext import ConfigError
from mplang_policy.expiry import expiring, rule_of
from mplang_policy.gate import Gate
from mplang_policy.gate_config import GateConfig
from mplang_policy.ledger import Ledger
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
            raise ConfigError(
                f"field 'gate': expected fields, got {type(fields).__name__}", code="C003"
            )
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

    def retention(self, fields: Mapping[str, object]) -> dict[str, str]:
        """Return the rules by which the log expires: by the name of each the days.

        Args:
            fields: the section, as :meth:`read` returns it.

        Example:
            >>> fields = {"policy": "/p", "log": "/l", "retention": {"entries": "365d"}}
            >>> SECTION.retention(fields)["gate.retention.entries"]
            '365d'
        """
        days = GateConfig.model_validate(fields).retention.days
        return {rule_of(what): f"{each}d" for what, each in days.items()}

    def expiring(self, fields: Mapping[str, object]) -> Iterator[tuple[str, str, float]]:
        """Yield what of the log will expire: the rule, what, and when.

        Args:
            fields: the section, as :meth:`read` returns it.
        """
        config = GateConfig.model_validate(fields)
        if Path(config.log).exists():
            with closing(Ledger(config.log, read_only=True)) as ledger:
                for what, of, when in expiring(ledger, config.retention):
                    yield rule_of(what), of, when

    def engine(self, ask: object) -> None:
        """Return nothing: engines do not know the gate."""


SECTION = GateSection()
