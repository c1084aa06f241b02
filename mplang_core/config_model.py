"""Base class of configuration models: frozen, closed, with errors of mplang."""

from __future__ import annotations

import difflib
from collections.abc import Sequence, Set
from contextvars import ContextVar
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from mplang_core.errors import ConfigError, MPLangError

_PLAIN = {"extra_forbidden": "there is no such field", "missing": "it is missing"}  # in our words
_nested: ContextVar[bool] = ContextVar("mplang_nested_model", default=False)


class StrictModel(BaseModel):
    """Frozen pydantic model that rejects unknown fields.

    Attributes:
        error: the class of error to raise for an invalid field. A subclass may set another.
        secret: fields whose values no message shows, such as places with passwords.

    Raises:
        ConfigError: a field is invalid or unknown. The message names each such field, the
            expected value and the given one.

    Example:
        >>> class Limits(StrictModel):
        ...     seconds: float = 60.0
        >>> Limits(seconds=5).seconds
        5.0
        >>> Limits(minutes=5)
        Traceback (most recent call last):
        mplang_core.errors.ConfigError: Limits: field 'minutes': there is no such field, got 5
        mplang explain C001
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    error: ClassVar[type[MPLangError]] = ConfigError
    secret: ClassVar[Set[str]] = frozenset()

    def __init__(self, **fields: Any) -> None:
        token = _nested.set(True)
        try:
            super().__init__(**fields)
        except ValidationError as error:
            if token.old_value is True:
                raise  # the model around this one knows the whole path to the field
            raise self.error(self.explain(error, fields)) from None
        finally:
            _nested.reset(token)

    @classmethod
    def explain(cls, error: ValidationError, fields: dict[str, Any]) -> str:
        """Return one line per invalid field: its path, the reason and the given value.

        Args:
            error: pydantic's error.
            fields: the fields as given; a ``name`` among them goes into each line.
        """
        named = fields.get("name")
        title = cls.__name__ + (f" {named!r}" if isinstance(named, str) else "")
        lines = []  # none for a default that could not be computed from the fields before it
        told = (p for p in error.errors(include_url=False) if "default_factory" not in p["type"])
        for problem in told:
            loc, got = problem["loc"], f", got {_short(problem.get('input'))}"
            if problem["type"] == "missing" or (cls.secret and cls.secret >= {*loc[:1]}):
                got = ""
            at_field = f"field {'.'.join(map(str, loc))!r}: " if loc else ""
            # of our own errors the text says it all
            why = problem.get("ctx", {}).get("error") or _PLAIN.get(problem["type"], problem["msg"])
            meant = cls._meant(loc) if problem["type"] == "extra_forbidden" else ""
            lines.append(f"{title}: {at_field}{why}{got}{meant}")
        return "\n".join(lines)

    @classmethod
    def _meant(cls, loc: Sequence[int | str]) -> str:
        """Return the field that an unknown one may be meant for, as the end of a message."""
        model: type[BaseModel] = cls
        for each in loc[:-1]:  # fields, and what is in a list or a dict of models
            kind = getattr(model.model_fields.get(str(each)), "annotation", None)
            model = next((m for m in (kind, *get_args(kind)) if hasattr(m, "model_fields")), model)
        close = difflib.get_close_matches(str(loc[-1]), model.model_fields, n=1)
        return f"; did you mean {close[0]!r}?" if close else ""


def _short(value: Any, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
