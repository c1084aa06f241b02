"""Worker configuration: TLS files, limits and timeouts."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import yaml
from mplang_confinement import set_limits
from packaging.utils import canonicalize_name
from pydantic import Field, field_validator, model_validator

import mplang_core  # noqa: F401  (so that plugins are found by name)
from mplang_core.ext import ConfigError, StrictModel
from mplang_http.base import plugin_versions

if TYPE_CHECKING:
    from mplang_data import DataSet

NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
"""What a party is called."""

LOCAL = "local"
"""What the coordinator of a worker without certificates is called."""

MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
"""Bytes of the machine's memory, of which limits are shares."""

WorkerMode: TypeAlias = Literal["production", "development"]


class TlsFiles(StrictModel):
    """Paths of the PEM files of one party.

    Attributes:
        cert: certificate; its common name is the name of the party.
        key: private key of the certificate.
        ca: certificate of the authority that signed those of all parties.
        crl: revocation lists of the authorities, one of each; nothing is revoked if ``None``.
    """

    cert: str
    key: str
    ca: str
    crl: str | None = None

    @classmethod
    def of(cls, given: TlsFiles | Mapping[str, str] | str | None) -> TlsFiles | None:
        """Return the TLS files that a path stands for, in the layout of mplang keygen.

        Example:
            >>> TlsFiles.of("certs/alice").key
            'certs/alice.key'
        """
        if given is None or isinstance(given, TlsFiles):
            return given
        if isinstance(given, str):
            folder = Path(given).parent
            return cls(cert=f"{given}.pem", key=f"{given}.key", ca=str(folder / "ca.pem"))
        return cls(**given)


STACKS = 64 << 20  # bytes reserved for stacks of threads that serve requests, and hardly used


class Limits(StrictModel):
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


class Quotas(StrictModel):
    """What one coordinator may use of a worker, so that others can, too.

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


class Timeouts(StrictModel):
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


class PluginConfig(StrictModel):
    """A plugin that a worker imports.

    Attributes:
        version: the version that has to be installed.
        settings: the plugin's own section, which it checks.
    """

    version: str
    settings: dict[str, Any] = Field(default_factory=dict)


class EngineConfig(StrictModel):
    """What the engines of a worker know of its configuration: nothing of keys and peers.

    Attributes:
        name: name of the party, as in the cluster's nodes and in its certificate.
        plugins: the plugins that are imported, by distribution, each with its version or a
            :class:`PluginConfig`; no other is. All that are installed if ``None``.
        dialects: dialects whose ops may stand in a program, whichever party runs them; those of
            all plugins by default.
        admission: checks of plugins that may refuse a program, by name, each with its fields.
        insecure: whether protocols for debugging may run, and links of libspu that are not
            encrypted; for these, MPC processes may use the network, and engines may not.
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
            takes ``json`` where stderr is no terminal.
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
        data: the data sets that programs may name, each with the fields of
            :class:`mplang_data.DataSet`; in YAML, places are relative to the file.
        sink: where programs leave results that stay, with the fields of a
            :class:`mplang_data.stored.SinkConfig`; nowhere if ``None``.
        gate: how the owner decides what runs, with the fields of a
            :class:`mplang_policy.GateConfig`; whatever its readers ask for if ``None``.
        authorities: PEM file of the authority of some of the peers and coordinators, by name.
            It can name nobody else, and no other can name them; ``tls.ca`` names the rest.

    See :class:`EngineConfig` for the other fields.

    Example:
        >>> WorkerConfig(name="alice", port=9000).host
        '127.0.0.1'
    """

    secret = frozenset({"data", "sink"})

    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65535)
    tls: TlsFiles | None = None
    coordinators: tuple[str, ...] = ()
    peers: dict[str, str] | None = None
    data: dict[str, dict[str, Any]] = Field(default_factory=dict)
    sink: dict[str, Any] | None = None
    gate: dict[str, Any] | None = None
    authorities: dict[str, str] = Field(default_factory=dict)

    @property
    def engine(self) -> EngineConfig:
        """The part of it that engines know."""
        return EngineConfig(**{name: getattr(self, name) for name in EngineConfig.model_fields})

    def data_sets(self) -> dict[str, DataSet]:
        """Return its data sets by name.

        Raises:
            ConfigError: one is invalid, or ``mplang-data`` is not installed.
        """
        return _data_sets(self.data, os.sep)

    @field_validator("sink")
    @classmethod
    def _check_sink(cls, sink: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            return None if sink is None else _sink(sink, os.sep)
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @field_validator("gate")
    @classmethod
    def _check_gate(cls, gate: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            return None if gate is None else _gate(gate, os.sep)
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @field_validator("data")
    @classmethod
    def _check_data(cls, data: dict[str, Any]) -> dict[str, Any]:
        try:
            _data_sets(data, os.sep)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return data

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
            raise ValueError("authorities name those who have certificates; without tls nobody has")
        unknown = self.authorities.keys() - {self.name, *(self.peers or ()), *self.coordinators}
        if unknown:
            raise ValueError(
                f"authorities names {', '.join(sorted(unknown))}, who is no peer and no coordinator"
            )
        if self.tls is not None and self.plugins is None:
            raise ValueError(
                "with tls, plugins names those that are imported, with their versions; installed "
                "are {" + ", ".join(f"{k}: '{v}'" for k, v in installed_plugins().items()) + "}"
            )
        uses_data = bool(self.data) or self.sink is not None
        if uses_data and self.plugins is not None and "mplang-data" not in self.plugins:
            raise ValueError("plugins has to name mplang-data, which has `data` and `sink`")
        return self

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str], **overrides: Any) -> WorkerConfig:
        """Read a configuration file; paths in it are relative to the file.

        Args:
            path: path of the YAML file.
            **overrides: fields that replace those of the file.

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
            files = {key: str(folder / str(file)) for key, file in tls.items() if file is not None}
            fields["tls"] = files
        if fields.get("data"):
            found = _data_sets(fields["data"], str(folder))
            fields["data"] = {name: each.model_dump(mode="json") for name, each in found.items()}
        if fields.get("sink") is not None:
            fields["sink"] = _sink(fields["sink"], str(folder))
        if fields.get("gate") is not None:
            fields["gate"] = _gate(fields["gate"], str(folder))
        named = fields.get("authorities")
        if isinstance(named, dict):
            fields["authorities"] = {key: str(folder / str(file)) for key, file in named.items()}
        return cls(**(fields | overrides))


def _data_sets(fields: Mapping[str, Any], folder: str) -> dict[str, DataSet]:
    if not fields:
        return {}
    try:
        from mplang_data.ext import read_data_sets
    except ModuleNotFoundError:
        raise ConfigError(f"field 'data': {_NO_DATA}") from None
    return read_data_sets(fields, folder)


def _sink(fields: Any, folder: str) -> dict[str, Any]:
    try:
        from mplang_data.ext import read_sink
    except ModuleNotFoundError:
        raise ConfigError(f"field 'sink': {_NO_DATA}") from None
    return read_sink(fields, folder).model_dump(mode="json")


def _gate(fields: Any, folder: str) -> dict[str, Any]:
    try:
        from mplang_policy import GateConfig
    except ModuleNotFoundError:
        raise ConfigError(
            "field 'gate': rules come with a package of their own; try: pip install mplang-policy"
        ) from None
    if not isinstance(fields, Mapping):
        raise ConfigError(f"field 'gate': expected fields, got {type(fields).__name__}")
    return GateConfig(**fields).at(folder).model_dump(mode="json")


_NO_DATA = "data sets and sinks come with a package of their own; try: pip install mplang-data"


def installed_plugins() -> dict[str, str]:
    """Return the versions of the packages whose plugins a worker could import."""
    return dict(sorted(plugin_versions.installed(plugin_versions.IMPORTED).items()))


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
