"""The base of what is written into an artifact beside the program."""

from __future__ import annotations

import msgspec


class Data(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Plain data, read strictly: a field too many, or of another kind, is refused."""
