"""Days that something is kept, as configurations write them: ``90d``."""

from __future__ import annotations

from typing import Annotated, TypeAlias, overload

from pydantic import Field

DAY = 86_400.0  # seconds

Days: TypeAlias = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}d$")]
"""Field of a configuration: a number of days, such as ``365d``."""


@overload
def count_days(text: str) -> int: ...
@overload
def count_days(text: None) -> None: ...
def count_days(text: str | None) -> int | None:
    """Return the number of days that a field says; ``None`` for no field.

    Args:
        text: a valid :data:`Days`.

    Example:
        >>> count_days("90d")
        90
    """
    return None if text is None else int(text.removesuffix("d"))
