"""A protected device that no feop is meant for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from mplang_core import Form
from mplang_core.ext import DeviceKind, device_kinds


@contextlib.contextmanager
def vault() -> Iterator[DeviceKind]:
    """Install, for a while, a kind of protected device that nobody's ops are meant for.

    Example:
        >>> with vault() as kind:
        ...     print(kind.name, kind.form.value)
        KIT_VAULT share
    """
    device_kinds.add(_VAULT.name, _VAULT, provider="mplang-core")
    try:
        yield _VAULT
    finally:
        device_kinds.remove(_VAULT.name)


_VAULT = DeviceKind(
    "KIT_VAULT",
    Form.SHARE,
    members=(2, None),
    unsupported_reasons=lambda meta, members: ["a vault runs nothing"],
    doc="A device that runs nothing.",
)
