"""Section of this plugin in a worker's configuration: what is an enclave, for whom."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from mplang_core.ext import ConfigError, KernelError, RunError, StrictModel
from mplang_tee import quoting
from mplang_tee.fields import Sha256Text
from mplang_tee.measurement import is_swapping, measure
from mplang_tee.provider import REPORT_BYTES, AttestationProvider, Expectations, find_provider

WORKER_FILE = "MPLANG_WORKER_FILE"
"""Variable by which a worker tells the file that it was started with."""


class ExpectedEnclave(StrictModel):
    """Expected enclave of a party.

    Attributes:
        files: SHA-256 of its configuration and of what is installed there, in hexadecimal digits,
            as ``mplang measure`` prints it; any of these.
        accepts: by provider the registers that are expected.
    """

    files: tuple[Sha256Text, ...] = Field(min_length=1)
    accepts: dict[str, dict[str, Any]] = Field(min_length=1)

    @model_validator(mode="after")
    def _are_known(self) -> ExpectedEnclave:
        self.accepted  # noqa: B018 (reads files, which later processes may not)
        return self

    @cached_property
    def accepted(self) -> dict[str, Expectations]:
        """What is expected, by provider."""
        return {name: _expected(name, fields) for name, fields in self.accepts.items()}


class OwnEnclave(StrictModel):
    """Enclave settings of a worker.

    Attributes:
        provider: who attests it.
        maker: what making quotes needs, as the provider says.
        files: files that are measured beside the worker's configuration and what is installed.
        swap: ``none``, or ``encrypted`` by a key that is lost when the machine stops.
    """

    provider: str
    maker: dict[str, Any] = Field(default_factory=dict)
    files: tuple[str, ...] = ()
    swap: Literal["none", "encrypted"] = "none"


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
    measured = None if made.enclave is None else _begin(made.enclave)
    current, files = made, measured


def _begin(enclave: OwnEnclave) -> bytes:
    """Check that this machine can be an enclave, make a quote, and return what is measured."""
    _check(enclave)
    worker = os.environ.get(WORKER_FILE)
    if not worker:
        raise ConfigError(
            "enclave: the worker of an enclave is started with a file, mplang worker", code="C003"
        )
    try:
        measured = measure([worker, *enclave.files])
    except OSError as error:
        raise ConfigError(f"enclave.files: {error}", code="C003") from None
    quoting.start(enclave.provider, enclave.maker)
    try:
        quoting.ask_for_quote(enclave.provider, bytes(REPORT_BYTES))
    except KernelError as error:
        raise ConfigError(f"enclave: {error}", code="C003") from None
    return measured


def _check(enclave: OwnEnclave) -> None:
    provider = _known_provider(enclave.provider, "enclave.provider")
    if provider.makes is None:
        raise ConfigError(
            f"enclave.provider: there are no enclaves by {provider.name} here: {provider.doc}",
            code="C003",
        )
    provider.makes(**enclave.maker)
    if enclave.swap == "none" and is_swapping():
        raise ConfigError(
            "enclave.swap: this machine swaps, which would write plain data of the enclave to a "
            "disk; turn it off, or say that it is encrypted",
            code="C003",
        )


def _expected(provider: str, fields: Mapping[str, object]) -> Expectations:
    """Return what is expected of a provider; an error names the whole path to its field."""
    try:
        return _known_provider(provider, "accepts").expects(**fields)
    except ValidationError as error:
        details = [
            InitErrorDetails(
                type=each["type"],
                loc=("accepts", provider, *each["loc"]),
                input=each["input"],
                ctx=each.get("ctx", {}),
            )
            for each in error.errors(include_url=False)
        ]
        raise ValidationError.from_exception_data(error.title, details) from None


def _known_provider(name: str, where: str) -> AttestationProvider:
    try:
        return find_provider(name)
    except RunError as error:
        raise ConfigError(f"{where}: {error}", code="C003") from None
