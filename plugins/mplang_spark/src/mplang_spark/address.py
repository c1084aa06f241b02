"""Addresses of Spark Connect servers. Imports no gRPC."""

from __future__ import annotations

import os
from typing import NamedTuple
from urllib.parse import urlsplit

PORT = 15002  # of Spark Connect
_PARAMETERS = ("use_ssl", "ca_file", "token_file", "user_id")


class Address(NamedTuple):
    """Address of a server, as in ``sc://host:port/;use_ssl=true;token_file=/etc/bank/token``.

    Attributes:
        host: name or address.
        port: of TCP.
        tls: whether the connection is encrypted.
        ca_file: file with the certificates that sign the server's; empty for those of gRPC.
        token_file: file with the token by which the server knows its client; empty if it asks for
            none.
        user: name by which the server knows its client.
    """

    host: str
    port: int = PORT
    tls: bool = False
    ca_file: str = ""
    token_file: str = ""
    user: str = "mplang"

    @property
    def files(self) -> list[str]:
        """Files that whoever connects reads."""
        return [each for each in (self.ca_file, self.token_file) if each]

    def metadata(self) -> list[tuple[str, str]]:
        """Return what is sent with each call; reads the token.

        Raises:
            OSError: there is no such file.
        """
        if not self.token_file:
            return []
        with open(self.token_file, encoding="utf-8") as file:
            return [("authorization", f"Bearer {file.read().strip()}")]


def parse_address(text: str) -> Address:
    """Return the address that a text stands for.

    Raises:
        ValueError: it is none; says what is wrong.

    Example:
        >>> parse_address("sc://spark.bank.example:15002").host
        'spark.bank.example'
    """
    parts = urlsplit(text)
    if parts.scheme != "sc" or not parts.hostname or parts.query or "@" in parts.netloc:
        raise ValueError("its place is sc://host:port#table")
    path, *listed = parts.path.split(";")
    fields = dict(each.partition("=")[::2] for each in listed if each)
    unknown = [name for name in fields if name not in _PARAMETERS]
    if path not in ("", "/") or unknown:
        raise ValueError(
            f"its place has {(unknown or [path])[0]!r}; after the port there may be "
            "/;use_ssl=true;ca_file=PATH;token_file=PATH;user_id=NAME"
        )
    tls, token = fields.get("use_ssl", "false"), fields.get("token_file", "")
    if tls not in ("true", "false"):
        raise ValueError("use_ssl is true or false")
    if token and tls == "false":
        raise ValueError("a token is sent over TLS only: use_ssl=true")
    made = Address(
        parts.hostname, parts.port or PORT, tls == "true", fields.get("ca_file", ""), token,
        fields.get("user_id", "mplang"),
    )  # fmt: skip
    if not all(map(os.path.isabs, made.files)):
        raise ValueError("token_file and ca_file are absolute paths")
    return made
