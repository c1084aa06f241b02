"""Fields of settings of providers: digests, and the contents of files that are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

MAX_FILE = 1 << 20


def _hex_of(size: int) -> Callable[[str], str]:
    def check(text: str) -> str:
        if len(text) != 2 * size or set(text) - set("0123456789abcdef"):
            raise ValueError(f"{2 * size} hexadecimal digits in lower case")
        return text

    return check


def _content(value: object) -> bytes:
    """Return the content of a file that is named; processes that come later may read no file."""
    if not isinstance(value, str | Path):
        raise ValueError("the name of a file")
    try:
        with Path(value).open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise ValueError(f"a file that can be read: {error.strerror}") from None
    if not data or len(data) > MAX_FILE:
        raise ValueError(f"a file of 1 to {MAX_FILE} bytes")
    return data


Sha256Text = Annotated[str, AfterValidator(_hex_of(32))]
"""SHA-256 in hexadecimal digits."""

Sha384Text = Annotated[str, AfterValidator(_hex_of(48))]
"""SHA-384 in hexadecimal digits."""

AnyOf384 = Annotated[tuple[Sha384Text, ...], Field(min_length=1)]
AnyOf256 = Annotated[tuple[Sha256Text, ...], Field(min_length=1)]
"""One of some digests."""

FileContent = Annotated[bytes, BeforeValidator(_content)]
"""Content of a file, which the configuration names."""
