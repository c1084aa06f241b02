"""Clients of a worker's control commands: at its socket, or, with a certificate, at its port."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote, urlencode

import msgspec

from mplang_core.ext import ConfigError, RunError, printable
from mplang_http.coordinator.client import WorkerClient
from mplang_http.tls.contexts import client_context
from mplang_http.tls.files import TlsFiles

MAX_ANSWER = 64 << 20  # bytes
PATIENCE = 30.0  # seconds

Row: TypeAlias = dict[str, str | int | float | bool | list[str] | None]


class _Error(msgspec.Struct):
    text: str
    code: str = ""


class _Refused(msgspec.Struct):
    error: _Error


_ROWS = msgspec.json.Decoder(list[Row])
_REFUSED = msgspec.json.Decoder(_Refused)


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Control(Protocol):
    """Client of the commands by which owner and operators look at a worker, and stop what runs."""

    @property
    def is_at_hand(self) -> bool:
        """Whether a worker answers."""

    def request(self, method: str, *path: str, **query: str | None) -> list[Row]:
        """Send a request, and return the rows of its response.

        Args:
            method: HTTP method.
            *path: segments of the path.
            **query: query parameters; ``None`` for none.

        Raises:
            RunError: no worker answers, or it refuses.
        """


class ControlClient:
    """Client of the control socket of a worker on this machine.

    Args:
        path: path of the socket.

    Example:
        >>> ControlClient("/no/such/socket").request("GET", "jobs")
        Traceback (most recent call last):
        mplang_core.errors.RunError: no worker answers at /no/such/socket: No such file or ...
    """

    def __init__(self, path: str) -> None:
        self._path = path

    @classmethod
    def of(cls, config: str, path: str | None) -> ControlClient:
        """Return the client of a worker.

        Args:
            config: path of the worker's file, of which nothing else is read.
            path: path of the socket, in place of that in the file.

        Raises:
            ConfigError: the file cannot be read, or names no socket.
        """
        if path is not None:
            return cls(path)
        import yaml

        try:
            fields = yaml.safe_load(Path(config).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(
                f"cannot read {config}: {error}; --socket names a socket", code="C014"
            ) from None
        control = fields.get("control") if isinstance(fields, dict) else None
        if not isinstance(control, dict) or not isinstance(control.get("path"), str):
            raise ConfigError(
                f"{config} has no control socket; write `control: {{path: control/socket}}` into "
                "it, and restart the worker, or name one by --socket",
                code="C014",
            )
        return cls(str(Path(config).parent / control["path"]))

    @property
    def is_at_hand(self) -> bool:
        """Whether a worker listens at the socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(PATIENCE)
            return sock.connect_ex(self._path) == 0

    def request(self, method: str, *path: str, **query: str | None) -> list[Row]:
        """Send a request, and return the rows of its response; see :class:`Control`."""
        url = "/v1/" + "/".join(quote(part, safe="") for part in path)
        asked = {name: value for name, value in query.items() if value is not None}
        connection = _Connection(self._path)
        try:
            connection.request(method, f"{url}?{urlencode(asked)}" if asked else url)
            response = connection.getresponse()
            data = response.read(MAX_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise RunError(
                f"no worker answers at {self._path}: {why}; start the worker, or name its socket "
                "by --socket",
                code="C014",
            ) from None
        finally:
            connection.close()
        try:
            if response.status == 200:
                return _ROWS.decode(data)
            refused = _REFUSED.decode(data).error
        except (msgspec.DecodeError, RecursionError):
            raise RunError(
                f"{self._path} returned a response that this version cannot read", code="C014"
            ) from None
        raise RunError(f"the worker refuses it: {printable(refused.text)}", code="C014")


class RemoteControl:
    """Client of a worker elsewhere, whose owner has listed the certificate of this user.

    Args:
        worker: its name and address, such as ``bank=https://bank.example:9000``.
        tls: certificate of the user: ``certs/anna``, as mplang keygen makes it.

    Raises:
        ConfigError: there is no certificate, or no name.
    """

    def __init__(self, worker: str, tls: str | None) -> None:
        name, equals, address = worker.partition("=")
        files = TlsFiles.of(tls)
        if not equals or files is None:
            raise ConfigError(
                "a worker elsewhere is named with its address, and asked with your certificate: "
                "--at bank=https://bank.example:9000 --tls certs/anna",
                code="C010",
            )
        context = client_context(files, "http/1.1")
        self._client = WorkerClient(name, address, context, PATIENCE)

    @property
    def is_at_hand(self) -> bool:
        """Whether it was named, as it is asked in any case."""
        return True

    def request(self, method: str, *path: str, **query: str | None) -> list[Row]:
        """Send a request, and return the rows of its response; see :class:`Control`."""
        asked: dict[str, Any] = {name: each for name, each in query.items() if each is not None}
        try:
            rows = self._client.request(method, "control", "v1", *path, **asked)
            return msgspec.convert(rows, list[Row])
        except (msgspec.ValidationError, RecursionError):
            raise RunError(
                f"{self._client.name} returned a response that this version cannot read",
                code="C014",
            ) from None
        finally:
            self._client.close()


def control_client(
    config: str, path: str | None, at: str | None = None, tls: str | None = None
) -> Control:
    """Return the client of a worker.

    Args:
        config: path of the worker's file, of which nothing but its socket is read.
        path: path of the socket, in place of that in the file.
        at: name and address of a worker elsewhere, which is asked instead.
        tls: certificate of the user, for that.

    Raises:
        ConfigError: the file cannot be read, or names no socket, or there is no certificate.
    """
    if at is None:
        return ControlClient.of(config, path)
    if path is not None:
        raise ConfigError(
            "--socket is of a worker on this machine, --at of one elsewhere", code="C006"
        )
    return RemoteControl(at, tls)
