"""Client of a worker's control socket."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote, urlencode

import msgspec

from mplang_core.ext import ConfigError, RunError, printable

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


class ControlClient:
    """Client of the control socket of a worker on this machine.

    Args:
        path: path of the socket.

    Example:
        >>> ControlClient("/no/such/socket").request("GET", "jobs")
        Traceback (most recent call last):
        mplang_core.errors.RunError: no worker answers at /no/such/socket: No such file or directory
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
            raise ConfigError(f"cannot read {config}: {error}; --socket names a socket") from None
        control = fields.get("control") if isinstance(fields, dict) else None
        if not isinstance(control, dict) or not isinstance(control.get("path"), str):
            raise ConfigError(
                f"{config} has no control socket; write `control: {{path: control/socket}}` into "
                "it, and restart the worker, or name one by --socket"
            )
        return cls(str(Path(config).parent / control["path"]))

    def request(self, method: str, *path: str, **query: str | None) -> list[Row]:
        """Send a request, and return the rows of its response.

        Args:
            method: HTTP method.
            *path: segments of the path.
            **query: query parameters; ``None`` for none.

        Raises:
            RunError: no worker answers, or it refuses.
        """
        url = "/v1/" + "/".join(quote(part, safe="") for part in path)
        asked = {name: value for name, value in query.items() if value is not None}
        connection = _Connection(self._path)
        try:
            connection.request(method, f"{url}?{urlencode(asked)}" if asked else url)
            response = connection.getresponse()
            data = response.read(MAX_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise RunError(f"no worker answers at {self._path}: {why}") from None
        finally:
            connection.close()
        try:
            if response.status == 200:
                return _ROWS.decode(data)
            refused = _REFUSED.decode(data).error
        except (msgspec.DecodeError, RecursionError):
            raise RunError(f"{self._path} answers as no worker of this version does") from None
        raise RunError(f"the worker refuses it: {printable(refused.text)}")
