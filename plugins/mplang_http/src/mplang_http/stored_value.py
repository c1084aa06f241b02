"""Value of a session at a worker, with its type and its label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mplang_analysis import Label

from mplang_core import BaseType

PUBLIC_NAME = "public."
"""What the names of values that all parties are given begin with; the rest is the SHA-256."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """Value of a session.

    Attributes:
        kind: its type.
        value: its data.
        label: what flowed into it.
        kept: whether it stays for the session's next programs, and is not fetched.
    """

    kind: BaseType
    value: Any
    label: Label
    kept: bool = False

    @property
    def size(self) -> int:
        """Size in bytes; 0 if it is unknown."""
        return int(getattr(self.value, "nbytes", 0))
