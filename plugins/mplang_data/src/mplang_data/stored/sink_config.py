"""Configuration of a sink: its folder, its key, and how much it takes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator, model_validator

from mplang_core.ext import DAY, ConfigError, Days, StrictModel, count_days
from mplang_data.description import check_name
from mplang_data.stored.seal import MIN_KEY

DATABASES = ("postgresql", "duckdb")
DUCKDB = "duckdb:"
KEY_TIMEOUT = 60.0  # seconds


class SinkRetention(StrictModel):
    """Retention of stored values in a sink.

    Attributes:
        stored: days since a value was stored, such as ``90d``; for good if ``None``.

    Example:
        >>> SinkRetention(stored="2d").seconds
        172800.0
    """

    stored: Days | None = None

    @property
    def seconds(self) -> float | None:
        """Return the days in seconds."""
        return None if self.stored is None else count_days(self.stored) * DAY


class SinkConfig(StrictModel):
    """Folder where a worker stores programs' results, and the key of encrypted ones.

    Attributes:
        folder: the folder; it is made if it is not there.
        key_file: file with the key, at least 32 random bytes, outside of the folder.
        key_command: command that prints the key, such as that of a key store; run once when the
            worker starts, without a shell.
        size: bytes of all that one coordinator stores.
        tables: tables of databases that take the rows of what is stored, by coordinator and name,
            as in ``{analyst/scores: "postgresql://writer@db.example/bank#scores"}``.
        retention: how long values are kept; for good by default.
    """

    secret = frozenset({"tables"})

    folder: str
    key_file: str | None = None
    key_command: tuple[str, ...] | None = Field(default=None, min_length=1)
    size: int = Field(default=64 << 30, gt=0)
    tables: dict[str, str] = Field(default_factory=dict)
    retention: SinkRetention = Field(default_factory=SinkRetention)

    @field_validator("tables")
    @classmethod
    def _are_tables(cls, tables: dict[str, str]) -> dict[str, str]:
        for key, place in tables.items():
            owner, _, name = key.rpartition("/")
            if not owner:
                raise ValueError(f"{key!r} is not a coordinator and a name, such as analyst/scores")
            check_name(name)
            url, _, table = place.rpartition("#")
            if url.partition(":")[0] not in DATABASES or not table:
                raise ValueError(
                    f"{key}: a table of {' or '.join(DATABASES)}, such as duckdb:bank.duckdb#t"
                )
        return tables

    @model_validator(mode="after")
    def _one_key(self) -> SinkConfig:
        if self.key_file is not None and self.key_command is not None:
            raise ValueError("the key is in key_file, or printed by key_command, not both")
        if self.key_file is not None:
            folder, file = os.path.realpath(self.folder), os.path.realpath(self.key_file)
            if os.path.commonpath([folder, file]) == folder:
                raise ValueError(
                    "key_file must be outside of the folder, so that its thief has no key"
                )
        return self

    def at(self, folder: str) -> SinkConfig:
        """Return it with paths that do not depend on the working directory.

        Args:
            folder: the folder of the file that names it.
        """
        base = os.path.abspath(folder)
        paths: dict[str, Any] = {"folder": os.path.join(base, self.folder)}
        if self.key_file is not None:
            paths["key_file"] = os.path.join(base, self.key_file)
        paths["tables"] = {
            key: f"{DUCKDB}{os.path.join(base, place.removeprefix(DUCKDB))}"
            if place.startswith(DUCKDB)
            else place
            for key, place in self.tables.items()
        }
        return SinkConfig(**(self.model_dump() | paths))

    def key(self) -> bytes | None:
        """Return the key; ``None`` if there is none, and shares and keys cannot be stored.

        Raises:
            ConfigError: it cannot be read, or is too short.
        """
        if self.key_file is not None:
            try:
                found = Path(self.key_file).read_bytes()
            except OSError as error:
                raise ConfigError(f"field 'sink.key_file': {error.strerror}", code="C003") from None
        elif self.key_command is not None:
            try:
                found = subprocess.run(
                    self.key_command, stdin=subprocess.DEVNULL, capture_output=True,
                    timeout=KEY_TIMEOUT, check=True,
                ).stdout  # fmt: skip
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                raise ConfigError(
                    f"field 'sink.key_command': it does not print a key: {type(error).__name__}",
                    code="C003",
                ) from None
        else:
            return None
        if len(found) < MIN_KEY:
            raise ConfigError(
                f"field 'sink': its key has {len(found)} bytes, of {MIN_KEY} or more", code="C003"
            )
        return found


def read_sink(fields: Any, folder: str) -> SinkConfig:
    """Return the sink of a configuration.

    Args:
        fields: the fields of a :class:`SinkConfig`, or a path of its folder.
        folder: the folder that paths are relative to.

    Raises:
        ConfigError: a field is invalid.
    """
    if isinstance(fields, SinkConfig):
        return fields.at(folder)
    if isinstance(fields, str):
        fields = {"folder": fields}
    if not isinstance(fields, Mapping):
        raise ConfigError("field 'sink': expected a folder, or its fields", code="C003")
    try:
        return SinkConfig(**fields).at(folder)
    except ValidationError as error:
        raise ConfigError(
            f"field 'sink': {SinkConfig.explain(error, dict(fields))}", code="C003"
        ) from None
    except (ConfigError, TypeError, ValueError) as error:
        raise ConfigError(f"field 'sink': {error}", code="C003") from None
