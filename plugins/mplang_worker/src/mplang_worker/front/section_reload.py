"""Changed sections of a configuration, which their packages take over while a worker runs."""

from __future__ import annotations

from collections.abc import Callable

from mplang_core.ext import ConfigError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.section_protocols import Reloadable


def prepare_section(
    provider: object, name: str, before: WorkerConfig, after: WorkerConfig
) -> Callable[[], None]:
    """Return what makes a changed section count; it cannot fail.

    Args:
        provider: what answers for the section in the front; ``None`` if it is not there.
        name: its name.
        before: the configuration that counts.
        after: the one that is to count.

    Raises:
        ConfigError: the section is wrong, or cannot change while the worker runs.
    """
    fields = after.section(name)
    if isinstance(provider, Reloadable) and fields is not None:
        return provider.reload(fields, after.model_dump(mode="json"))
    if fields != before.section(name):
        raise ConfigError(needs_restart(name), code="C003")
    return nothing


def needs_restart(name: str) -> str:
    """Return the text of an error: a field cannot change while the worker runs."""
    return (
        f"field {name!r}: it takes effect after a restart only; restart the worker, or set the "
        "field back, and the other changes take effect"
    )


def nothing() -> None:
    """Change nothing."""
