"""Worker configuration: TLS files, limits and timeouts."""

from __future__ import annotations

import functools
import ipaddress
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from mplang_analysis import WorkerMode as WorkerMode
from mplang_confinement import set_limits
from mplang_http.ext import TlsFiles, installed
from packaging.utils import canonicalize_name
from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

import mplang_core  # noqa: F401  (so that plugins are found by name)
from mplang_core.ext import WORKERS, ConfigError, StrictModel
from mplang_worker.base.allowed_plugins import installed_plugins
from mplang_worker.base.control_config import ControlConfig, Role
from mplang_worker.base.retention_config import RetentionConfig
from mplang_worker.base.sections import (
    DATA,
    GATE,
    SINK,
    no_section,
    section_names,
    section_of,
    section_packages,
)

NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
"""What a party is called."""

LOCAL = "local"
"""What the coordinator of a worker without certificates is called."""

MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
"""Bytes of the machine's memory, of which limits are shares."""

RELOADED = frozenset({"coordinators", "peers", "authorities", "quotas", "retention", DATA, GATE})
"""Fields that may change while a worker runs; sections of other packages say so themselves."""

STACKS = 64 << 20  # bytes reserved for stacks of threads that serve requests, and hardly used


class ConfigModel(StrictModel):
    """Model whose JSON has infinite numbers, such as timeouts."""

    model_config = ConfigDict(ser_json_inf_nan="constants")


class Limits(ConfigModel):
    """Resource limits of a worker. Each is checked before anything is read or parsed.

    Attributes:
        head: bytes of the head of an HTTP request.
        program: bytes of a program.
        programs: bytes of all cached programs.
        items: MessagePack items of a program.
        ops: ops of a program, including those of nested regions.
        value: bytes of a value that is put or received, and of a tensor within a program.
        request: bytes of the body of any other request.
        bodies: bytes of all request bodies that are being received.
        waiting: bytes of messages from one peer that no program has received yet.
        values: values of a session.
        held: bytes of all values of a session.
        connections: open connections.
        unknown: connections whose client is not known yet; each address has a share of them.
        parties: parties of a session.
        sessions: open sessions.
        jobs: jobs of a session whose status is kept.
        failures: runs of one coordinator in which an op may fail at this worker, over all its
            sessions since the worker started; further runs are refused. Reading a 32-bit number
            bit by bit through failures takes 16 of them on average.
        memory: bytes of private memory of a session's processes together; half of the machine's by
            default.
        cpu: seconds of CPU time of each process of a session; any by default.
        threads: threads of a session's engine and MPC process together.
        files: open files of each process of a session.
    """

    head: int = Field(default=64 << 10, gt=0)
    program: int = Field(default=64 << 20, gt=0)
    programs: int = Field(default=256 << 20, gt=0)
    items: int = Field(default=4_000_000, gt=0)
    ops: int = Field(default=200_000, gt=0)
    value: int = Field(default=min(8 << 30, MEMORY // 4), gt=0)
    request: int = Field(default=1 << 20, gt=0)
    bodies: int = Field(default=MEMORY // 2, gt=0)
    waiting: int = Field(default=MEMORY // 4, gt=0)
    values: int = Field(default=100_000, gt=0)
    held: int = Field(default=MEMORY // 2, gt=0)
    connections: int = Field(default=512, gt=0)
    unknown: int = Field(default=128, gt=0)
    parties: int = Field(default=64, gt=0)
    sessions: int = Field(default=64, gt=0)
    jobs: int = Field(default=1000, gt=0)
    failures: int = Field(default=10, gt=0)
    memory: int = Field(default=MEMORY // 2, gt=0)
    cpu: int | None = Field(default=None, gt=0)
    threads: int = Field(default=1000, gt=0)
    files: int = Field(default=500, gt=0)

    def apply(self, cores: Sequence[int]) -> None:
        """Limit this process, which is an engine.

        Args:
            cores: the cores that it may use; all if there are none.
        """
        # what is used of it is held to the limit by the front, and the kernel's cgroup
        set_limits(memory=self.memory + STACKS, files=self.files, cpu=self.cpu, cores=cores)


class Quotas(ConfigModel):
    """Quotas of one coordinator at a worker.

    Attributes:
        sessions: open sessions.
        opens: sessions that are being opened or linked.
        jobs: jobs of all its sessions that have not ended.
        bodies: bytes of request bodies that are being received.
        connections: open connections.
        memory: bytes of private memory of the engines of its sessions; half of the machine's by
            default.
        cores: cores that the engines of its sessions share; all by default.
        log: bytes of the worker's own log that it causes in a day, UTC; the rest is left out.
    """

    sessions: int = Field(default=32, gt=0)
    opens: int = Field(default=16, gt=0)
    jobs: int = Field(default=500, gt=0)
    bodies: int = Field(default=MEMORY // 4, gt=0)
    connections: int = Field(default=128, gt=0)
    memory: int = Field(default=MEMORY // 2, gt=0)
    cores: int | None = Field(default=None, gt=0)
    log: int = Field(default=64 << 20, gt=0)


class Timeouts(ConfigModel):
    """Timeouts of a worker, in seconds.

    Attributes:
        connect: a link to another worker is established.
        message: a message of another worker arrives, or it is known to be at work.
        head: the head of a request arrives.
        body: the next chunk of a request's body arrives, or of a response is read.
        lease: the coordinator sends a request; else its session ends.
        job: a job ends; else its session's engine is ended.
        cancel: a job that was cancelled ends; else its session's engine is ended, and its MPC
            process after half of that.
        drain: the jobs that run end after SIGTERM; else they fail, and the worker ends.
    """

    connect: float = Field(default=10.0, gt=0)
    message: float = Field(default=60.0, gt=0)
    head: float = Field(default=10.0, gt=0)
    body: float = Field(default=30.0, gt=0)
    lease: float = Field(default=60.0, gt=0)
    job: float = Field(default=86_400.0, gt=0)
    cancel: float = Field(default=10.0, gt=0)
    drain: float = Field(default=30.0, gt=0)


class PluginConfig(ConfigModel):
    """A plugin that a worker imports.

    Attributes:
        version: the version that has to be installed.
        settings: the plugin's own section, which it checks.
    """

    version: str
    settings: dict[str, Any] = Field(default_factory=dict)


class EngineConfig(ConfigModel):
    """Configuration of a worker's engines: without keys and peers.

    Attributes:
        name: name of the party, as in the cluster's nodes and in its certificate.
        plugins: the plugins that are imported, by distribution, each with its version or a
            :class:`PluginConfig`; no other is. All that are installed if ``None``.
        dialects: dialects whose ops may stand in a program, whichever party runs them; those of
            all plugins by default.
        admission: checks of plugins that may refuse a program, by name, each with its fields.
        insecure: whether protocols for debugging may run, and links of native services that are
            not encrypted; for these, the MPC processes of services that declare them may use the
            network, and engines may not.
        mode: ``production``: whole programs only, which the owner can review. ``development``:
            also programs of one op, which are those of standard mode and of eager calls.
        observable: whether coordinators are told the ops under way, times and bytes of their runs,
            which may depend on private data; by default in development only.
        imports: modules to import first, such as those with custom ops.
        readable: files and folders that ops may read, beside those of Python and its packages.
        limits: resource limits.
        quotas: the part of some limits that is one coordinator's.
        timeouts: timeouts.
        log_format: ``text`` for people, ``json`` for one JSON object per line; ``mplang worker``
            takes ``json`` where stderr is not a terminal.
        log_level: minimum level; ``info`` has a line per session and job.
    """

    name: str = Field(pattern=f"^{NAME}$")
    plugins: dict[str, PluginConfig] | None = None
    dialects: tuple[str, ...] | None = None
    admission: dict[str, dict[str, Any]] = Field(default_factory=dict)
    insecure: bool = False
    mode: WorkerMode = "production"
    observable: bool | None = None
    imports: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    limits: Limits = Field(default_factory=Limits)
    quotas: Quotas = Field(default_factory=Quotas)
    timeouts: Timeouts = Field(default_factory=Timeouts)
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @classmethod
    def read(cls, data: bytes) -> EngineConfig:
        """Return what a front has made for its engines.

        Args:
            data: :attr:`WorkerConfig.for_engines`.
        """
        return cls.model_validate_json(data)

    @property
    def is_observable(self) -> bool:
        """Whether coordinators may watch their runs."""
        return self.mode == "development" if self.observable is None else self.observable

    @field_validator("plugins", mode="before")
    @classmethod
    def _expand(cls, plugins: Any) -> Any:
        if not isinstance(plugins, Mapping):
            return plugins
        installed = {canonicalize_name(name): name for name in installed_plugins()}
        return {
            installed.get(canonicalize_name(str(k)), k): {"version": v} if isinstance(v, str) else v
            for k, v in plugins.items()
        }


class WorkerConfig(EngineConfig):
    """Configuration of one party's worker.

    Attributes:
        host: address to bind to; without ``tls`` a loopback address.
        port: TCP port; 0 for any free one.
        tls: certificates; in YAML also ``certs/alice`` for the files of mplang keygen.
            Without, clients are not authenticated, so the worker binds to loopback only.
        coordinators: common names of those who may submit programs; required with ``tls``.
            They may not take part as workers, unless ``peers`` names them too.
        plugins: see :class:`EngineConfig`; required with ``tls``.
        peers: workers that may take part in a program, name to address; required with ``tls``.
            Without, the coordinator gives their addresses, on loopback.
        data: the data sets that programs may name, each with the fields of a ``DataSet`` of
            mplang-data; in YAML, places are relative to the file.
        sink: where programs leave results that stay, with the fields of a ``SinkConfig`` of
            mplang-data; nowhere if ``None``.
        gate: how the owner decides what runs, with the fields of a ``GateConfig`` of
            mplang-policy; whatever its readers ask for if ``None``.
        control: the socket of its owner and operators; none if ``None``.
        retention: how long sessions keep values in memory.
        sections: sections of other packages, by name; each is also a field of that name.
        authorities: PEM file of the authority of some of the peers and coordinators, by name.
            It can name nobody else, and no other can name them; ``tls.ca`` names the rest.

    See :class:`EngineConfig` for the other fields.

    Example:
        >>> WorkerConfig(name="alice", port=9000).host
        '127.0.0.1'
    """

    secret = frozenset({"data", "sink", "sections"})

    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65535)
    tls: TlsFiles | None = None
    coordinators: tuple[str, ...] = ()
    peers: dict[str, str] | None = None
    data: dict[str, dict[str, Any]] = Field(default_factory=dict)
    sink: dict[str, Any] | None = None
    gate: dict[str, Any] | None = None
    control: ControlConfig | None = None
    retention: RetentionConfig = Field(default_factory=RetentionConfig)
    sections: dict[str, Any] = Field(default_factory=dict)
    authorities: dict[str, str] = Field(default_factory=dict)

    @functools.cached_property
    def for_engines(self) -> bytes:
        """The part of it that engines know, an :class:`EngineConfig`, in JSON."""
        return self.model_dump_json(include=set(EngineConfig.model_fields)).encode()

    def adopt(self, after: WorkerConfig) -> None:
        """Apply, in place, the changes that a running worker may take.

        Args:
            after: the configuration that counts from now on.
        """
        for name in (*RELOADED, "sections"):
            self.__dict__[name] = getattr(after, name)  # which nothing but a reload changes
        self.__dict__.pop("for_engines", None)

    def section(self, name: str) -> Any:
        """Return a section, as its package has read it; ``None`` if it is not there.

        Args:
            name: its name.
        """
        return self._all_sections().get(name)

    @property
    def controllers(self) -> Mapping[str, Sequence[Role]]:
        """By the common name of their certificates the roles of those who control the worker."""
        return {} if self.control is None else self.control.certificates

    @property
    def asked_sections(self) -> list[str]:
        """Names of the sections that are there, and that engines ask about."""
        return sorted(self._all_sections().keys() - {GATE})

    def _all_sections(self) -> dict[str, Any]:
        named = {DATA: self.data, SINK: self.sink, GATE: self.gate, **self.sections}
        return {name: each for name, each in named.items() if not _is_absent(name, each)}

    @model_validator(mode="before")
    @classmethod
    def _find_sections(cls, fields: Any) -> Any:
        """Move what is or may be a section of another package into ``sections``."""
        if not isinstance(fields, dict) or not isinstance(fields.get("sections", {}), dict):
            return fields
        others = {
            name: each
            for name, each in fields.items()
            if name not in cls.model_fields and (name in section_names() or isinstance(each, dict))
        }
        kept = {name: each for name, each in fields.items() if name not in others}
        return {**kept, "sections": {**fields.get("sections", {}), **others}}

    @field_validator(DATA, SINK, GATE)
    @classmethod
    def _read_section(cls, fields: Any, info: ValidationInfo) -> Any:
        name = info.field_name or ""
        return fields if _is_absent(name, fields) else _read_section(name, fields, os.sep)

    @field_validator("sections")
    @classmethod
    def _read_sections(cls, sections: dict[str, Any]) -> dict[str, Any]:
        for name in sections.keys() & cls.model_fields.keys():
            raise ValueError(f"{name} is a field of its own")
        for name in sorted(sections.keys() - section_names()):
            raise ValueError(no_section(name, cls.model_fields))
        return {name: _read_section(name, each, os.sep) for name, each in sections.items()}

    @model_validator(mode="after")
    def _check(self) -> WorkerConfig:
        if self.tls is None and not is_loopback(self.host):
            raise ValueError(
                f"without tls a worker binds to loopback only, not to {self.host}; "
                "mplang keygen makes certificates for a test"
            )
        if self.tls is not None and not self.coordinators:
            raise ValueError("with tls, coordinators names those who may submit programs")
        if self.tls is not None and self.peers is None:
            raise ValueError(
                "with tls, peers names the workers that may take part in a program, with their "
                "addresses, such as {bob: 'https://bob.example:9000'}; {} for none"
            )
        if self.tls is None and self.authorities:
            raise ValueError("authorities needs tls: without tls no party has a certificate")
        if self.tls is None and self.controllers:
            raise ValueError(
                "control.certificates needs tls: without tls no client has a certificate"
            )
        known = {self.name, *(self.peers or ()), *self.coordinators, *self.controllers}
        unknown = self.authorities.keys() - known
        if unknown:
            raise ValueError(
                f"authorities: {', '.join(sorted(unknown))} is neither a peer nor a coordinator"
            )
        if self.tls is not None and self.plugins is None:
            raise ValueError(
                "with tls, plugins names those that are imported, with their versions; installed "
                "are {" + ", ".join(f"{k}: '{v}'" for k, v in installed_plugins().items()) + "}"
            )
        if self.plugins is not None:
            _check_named(self.plugins, self.asked_sections)
        return self

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str], **overrides: Any) -> WorkerConfig:
        """Read a configuration file; paths in it are relative to the file.

        Args:
            path: path of the YAML file.
            **overrides: fields that replace those of the file.

        Raises:
            ConfigError: the file cannot be read, is not YAML, or has a wrong field.
        """
        try:
            fields: Any = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(
                f"WorkerConfig: cannot read {os.fspath(path)}: {error}", code="C003"
            ) from error
        if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
            raise ConfigError(f"WorkerConfig: {os.fspath(path)} holds no fields", code="C003")
        folder, tls = Path(path).parent, fields.get("tls")
        if isinstance(tls, str):
            fields["tls"] = TlsFiles.of(str(folder / tls))
        elif isinstance(tls, dict):
            files = {key: str(folder / str(file)) for key, file in tls.items() if file is not None}
            fields["tls"] = files
        others = set(section_names()) - cls.model_fields.keys()
        wrong = []
        for name in sorted((others | {DATA, SINK, GATE}) & fields.keys()):
            if not _is_absent(name, fields[name]):
                try:
                    fields[name] = section_of(name).read(fields[name], str(folder))
                except ConfigError as error:
                    wrong.append(str(error))
                    del fields[name]
        control = fields.get("control")
        if isinstance(control, dict) and isinstance(control.get("path"), str):
            fields["control"] = {**control, "path": str(folder / control["path"])}
        named = fields.get("authorities")
        if isinstance(named, dict):
            fields["authorities"] = {key: str(folder / str(file)) for key, file in named.items()}
        try:
            made = cls(**(fields | overrides))
        except ConfigError as error:
            wrong.insert(0, str(error))
        if wrong:  # all at once, so that nobody mends one to hear of the next
            raise ConfigError("\n".join(wrong), code="C003")
        return made


def _is_absent(name: str, fields: Any) -> bool:
    """Return whether a configuration leaves a section out, or has no data set in it."""
    return fields is None or (name == DATA and not fields)


def _read_section(name: str, fields: Any, folder: str) -> Any:
    try:
        return section_of(name).read(fields, folder)
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _check_named(plugins: Mapping[str, PluginConfig], sections: Collection[str]) -> None:
    """Check that plugins name the packages of sections, and that of workers for its old name."""
    named = {str(canonicalize_name(name)) for name in plugins}
    if "mplang-http" in named and "mplang-worker" not in named:
        version = installed((WORKERS,))["mplang-worker"]
        raise ValueError(
            "plugins names mplang-http, which analysts install, and which has no worker any more; "
            f"add the line  mplang-worker: {version}"
        )
    packages = section_packages()
    for package in {packages[name]: None for name in sections}:
        if package not in plugins:
            brought = " and ".join(f"`{name}`" for name in packages if packages[name] == package)
            raise ValueError(f"plugins has to name {package}, which has {brought}")


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
