"""Section of this plugin in a worker's configuration: what is an enclave, for whom."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import Field, field_validator, model_validator

from mplang_core.ext import ConfigError, KernelError, StrictModel
from mplang_tee import quoting
from mplang_tee.measurement import is_swapping, measure
from mplang_tee.provider import REPORT_BYTES, Expectations, find_provider


class ExpectedEnclave(StrictModel):
    """What an owner takes for the enclave of a party.

    Attributes:
        files: SHA-256 of its configuration and of what is installed there, in hexadecimal digits,
            as ``mplang measure`` prints it; any of these.
        accepts: by provider the registers that are expected.
    """

    files: tuple[str, ...] = Field(min_length=1)
    accepts: dict[str, dict[str, Any]] = Field(min_length=1)

    @field_validator("files")
    @classmethod
    def _are_digests(cls, files: tuple[str, ...]) -> tuple[str, ...]:
        for each in files:
            if len(each) != 64 or set(each) - set("0123456789abcdef"):
                raise ValueError(f"a SHA-256 has 64 hexadecimal digits in lower case, got {each!r}")
        return files

    @model_validator(mode="after")
    def _are_known(self) -> ExpectedEnclave:
        self.accepted  # noqa: B018 (reads files, which later processes may not)
        return self

    @cached_property
    def accepted(self) -> dict[str, Expectations]:
        """What is expected, by provider."""
        return {
            name: find_provider(name).expects(**fields) for name, fields in self.accepts.items()
        }


class OwnEnclave(StrictModel):
    """That a worker is an enclave.

    Attributes:
        provider: who attests it.
        maker: what making quotes needs, as the provider says.
        files: files of its configuration, which are measured beside what is installed.
        swap: ``none``, or ``encrypted`` by a key that is lost when the machine stops.
    """

    provider: str
    maker: dict[str, Any] = Field(default_factory=dict)
    files: tuple[str, ...] = Field(min_length=1)
    swap: str = Field(default="none", pattern="^(none|encrypted)$")


class TeeSettings(StrictModel):
    """Settings of enclaves.

    Attributes:
        enclaves: what this party takes for the enclave of another one, by its name.
        enclave: that this worker is one.

    Example:
        >>> TeeSettings().enclave is None
        True
    """

    enclaves: dict[str, ExpectedEnclave] = Field(default_factory=dict)
    enclave: OwnEnclave | None = None


current = TeeSettings()
"""Settings of this process."""

files: bytes | None = None
"""SHA-256 of this worker's configuration and of what is installed here; ``None`` if it is none."""


def configure(section: Mapping[str, Any]) -> None:
    """Replace the settings of this process; where it is an enclave, measure files, and get ready.

    Raises:
        ConfigError: a field is invalid or unknown, a file cannot be read, the machine swaps, or
            gives no quote.
    """
    global current, files
    made = TeeSettings(**section)
    if made.enclave is not None:
        files = _measured(made.enclave)
        quoting.start(made.enclave.provider, made.enclave.maker)
        try:
            quoting.ask_for_quote(made.enclave.provider, bytes(REPORT_BYTES))
        except KernelError as error:
            raise ConfigError(f"enclave: {error}") from None
    current = made


def _measured(enclave: OwnEnclave) -> bytes:
    provider = find_provider(enclave.provider)
    if provider.makes is None:
        raise ConfigError(f"enclave.provider: {provider.name} makes no quotes, it verifies them")
    provider.makes(**enclave.maker)
    if enclave.swap == "none" and is_swapping():
        raise ConfigError(
            "enclave.swap: this machine swaps, by which what is plain in the enclave would come to "
            "a disk; turn it off, or say that it is encrypted"
        )
    try:
        return measure(enclave.files)
    except OSError as error:
        raise ConfigError(f"enclave.files: {error}") from None
