"""Configuration models: frozen, closed, and refusing in mplang's own errors."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from mplang_core.errors import ConfigError, MPLangError

_nested: ContextVar[bool] = ContextVar("mplang_nested_model", default=False)


class StrictModel(BaseModel):
    """A frozen pydantic model that takes no unknown field.

    A subclass says by ``error`` what is raised for a bad field. The message names each
    field, what was expected there, and what came.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True
    )

    error: ClassVar[type[MPLangError]] = ConfigError

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
        """Say in one line per field what is wrong with it."""
        named = fields.get("name")
        title = cls.__name__ + (f" {named!r}" if isinstance(named, str) else "")
        lines = []
        for problem in error.errors(include_url=False):
            path = ".".join(map(str, problem["loc"])) or "the whole"
            got = problem.get("input")
            shown = "" if problem["type"] == "missing" else f", got {_short(got)}"
            lines.append(f"{title}: field {path!r}: {problem['msg']}{shown}")
        return "\n".join(lines)


def _short(value: Any, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
