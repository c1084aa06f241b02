"""What a worker is told by the one who runs it."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, model_validator

from mplang_core.errors import ConfigError
from mplang_core.strict import StrictModel

__all__ = ["Limits", "Timeouts", "TlsFiles", "WorkerConfig"]

NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
"""What a party is called."""


class TlsFiles(StrictModel):
    """PEM files: who this one is, and whom it believes.

    Attributes:
        cert: its certificate; the common name is the name of the party.
        key: the certificate's private key.
        ca: the authority that signed the certificates of all parties.
    """

    cert: str
    key: str
    ca: str

    @classmethod
    def of(cls, given: TlsFiles | Mapping[str, str] | str | None) -> TlsFiles | None:
        """Return the files of who is named by a path, as mplang keygen lays them out.

        Example:
            >>> TlsFiles.of("certs/alice")
            TlsFiles(cert='certs/alice.pem', key='certs/alice.key', ca='certs/ca.pem')
        """
        if given is None or isinstance(given, TlsFiles):
            return given
        if isinstance(given, str):
            folder = Path(given).parent
            return cls(cert=f"{given}.pem", key=f"{given}.key", ca=str(folder / "ca.pem"))
        return cls(**given)


class Limits(StrictModel):
    """How much a worker takes in. Each is checked before anything is read or parsed.

    Attributes:
        head: bytes of the head of an HTTP request.
        program: bytes of a program.
        programs: bytes of all programs that are kept.
        items: how many names, numbers and lists a program is written with.
        ops: how many ops a program has, those of nested regions included.
        value: bytes of a value, put or sent by a peer, and of a tensor within a program.
        request: bytes of any other request.
        bodies: bytes of all requests that come in at once.
        waiting: bytes of messages that a peer has sent and no program has asked for yet.
        values: how many values a session holds.
        held: bytes of all values that a session holds.
        connections: how many connections are open at once.
        links: how many workers are linked at once.
        sessions: how many sessions are open at once.
        jobs: how many jobs of a session are remembered.
    """

    head: int = Field(default=64 << 10, gt=0)
    program: int = Field(default=64 << 20, gt=0)
    programs: int = Field(default=256 << 20, gt=0)
    items: int = Field(default=4_000_000, gt=0)
    ops: int = Field(default=200_000, gt=0)
    value: int = Field(default=8 << 30, gt=0)
    request: int = Field(default=1 << 20, gt=0)
    bodies: int = Field(default=16 << 30, gt=0)
    waiting: int = Field(default=16 << 30, gt=0)
    values: int = Field(default=100_000, gt=0)
    held: int = Field(default=64 << 30, gt=0)
    connections: int = Field(default=256, gt=0)
    links: int = Field(default=64, gt=0)
    sessions: int = Field(default=64, gt=0)
    jobs: int = Field(default=1000, gt=0)


class Timeouts(StrictModel):
    """How long, in seconds, a worker waits.

    Attributes:
        connect: for a link to another worker.
        message: for a message of another worker.
        head: for the head of a request.
        body: for the next piece of a request's body, or for a response to be read on.
        engine: for a sign of life of its engine, which is ended then.
        lease: for a sign of life of a coordinator, whose values are freed then.
    """

    connect: float = Field(default=10.0, gt=0)
    message: float = Field(default=60.0, gt=0)
    head: float = Field(default=10.0, gt=0)
    body: float = Field(default=30.0, gt=0)
    engine: float = Field(default=60.0, gt=0)
    lease: float = Field(default=60.0, gt=0)


class WorkerConfig(StrictModel):
    """One party's worker.

    Attributes:
        name: the party, as in the cluster's nodes and in its certificate.
        host: the address to bind to; without certificates a loopback address.
        port: the one port; 0 for any that is free.
        tls: certificates; in YAML also ``certs/alice`` for the files of mplang keygen.
            Without, nobody can be told apart, so only loopback is served.
        coordinators: the common names of those who may submit programs; with certificates.
            They may not link, unless ``peers`` names them too.
        peers: the workers that may take part in a program, name to address. Without it a
            program's coordinator says where they are; their certificates say who they are.
        dialects: whose ops may run; those of all plugins that are installed by default.
        insecure: whether protocols that are for debugging only may run.
        imports: modules to import first, as those with ops of one's own.
        limits: how much it takes in.
        timeouts: how long it waits.
        log_format: ``text`` for people, ``json`` for programs: one object a line.
        log_level: from where on things are logged; ``info`` tells of each session and job.

    Example:
        >>> WorkerConfig(name="alice", port=9000).host
        '127.0.0.1'
    """

    name: str = Field(pattern=f"^{NAME}$")
    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65535)
    tls: TlsFiles | None = None
    coordinators: tuple[str, ...] = ()
    peers: dict[str, str] | None = None
    dialects: tuple[str, ...] | None = None
    insecure: bool = False
    imports: tuple[str, ...] = ()
    limits: Limits = Field(default_factory=Limits)
    timeouts: Timeouts = Field(default_factory=Timeouts)
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _check(self) -> WorkerConfig:
        if self.tls is None and not is_loopback(self.host):
            raise ValueError(
                f"without tls a worker binds to loopback only, not to {self.host}; "
                "mplang keygen makes certificates for a test"
            )
        if self.tls is not None and not self.coordinators:
            raise ValueError("with tls, coordinators names those who may submit programs")
        return self

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str], **overrides: Any) -> WorkerConfig:
        """Read a configuration; paths in it are relative to it.

        Args:
            path: the file.
            **instead: fields that are given in place of those in the file.

        Raises:
            ConfigError: the file cannot be read, is no YAML, or has a wrong field.
        """
        try:
            fields: Any = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"WorkerConfig: cannot read {os.fspath(path)}: {error}") from error
        if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
            raise ConfigError(f"WorkerConfig: {os.fspath(path)} holds no fields")
        folder, tls = Path(path).parent, fields.get("tls")
        if isinstance(tls, str):
            fields["tls"] = TlsFiles.of(str(folder / tls))
        elif isinstance(tls, dict):
            fields["tls"] = {key: str(folder / str(file)) for key, file in tls.items()}
        return cls(**(fields | overrides))


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
