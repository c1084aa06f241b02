"""Types of the dialect ``kit`` that no host may fetch: shares and keys. Imports no pytest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mplang_core import BaseType, Form
from mplang_core.ext import Codec


@dataclass(frozen=True, slots=True)
class _Secret(BaseType):
    """Secret of 8 bytes."""

    def params(self) -> tuple[Any, ...]:
        """Return nothing: there is one such type."""
        return ()

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> _Secret:
        """Return the type."""
        if params:
            raise ValueError(f"{cls.name} has no parameters")
        return cls()

    def mismatch(self, value: Any) -> str | None:
        """Return why a value is none of this type."""
        found = value.type if isinstance(value, Secret) else type(value).__name__
        return None if found == self else f"expected {self}, got {found}"


@dataclass(frozen=True, slots=True)
class ShareType(_Secret):
    """Share of a number."""

    name: ClassVar[str] = "kit.share"
    form: ClassVar[Form] = Form.SHARE


@dataclass(frozen=True, slots=True)
class KeyType(_Secret):
    """Secret key."""

    name: ClassVar[str] = "kit.key"
    form: ClassVar[Form] = Form.KEY


@dataclass(frozen=True, slots=True)
class Secret:
    """Secret of a party: a share, or a key.

    Attributes:
        type: which of them.
        data: 8 bytes; never shown.
    """

    type: _Secret
    data: bytes = field(repr=False)


def _encode(value: Secret) -> tuple[Mapping[str, Any], Sequence[bytes]]:
    return {}, [value.data]


def _decode(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> Secret:
    if header or [len(bytes(buffer)) for buffer in buffers] != [8]:
        raise ValueError("it is one buffer of 8 bytes")
    assert isinstance(kind, _Secret)
    return Secret(kind, bytes(buffers[0]))


CODEC = Codec(_encode, _decode)
SECRETS = (ShareType, KeyType)
