"""Base class of the data in a manifest."""

from __future__ import annotations

import msgspec


class Data(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Plain data with strict decoding: rejects unknown fields and other types."""
