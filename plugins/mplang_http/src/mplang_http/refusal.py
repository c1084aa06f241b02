"""What a worker says when it does not do what it is asked: a status, a code, a public text."""

from __future__ import annotations

import logging
from typing import Any

from mplang_core import errors
from mplang_core.errors import MPLangError

__all__ = ["MAX_PLACE", "Refusal", "error_from", "told"]

MAX_TEXT = 4000
MAX_PLACE = 300  # characters of a place in the coordinator's source
log = logging.getLogger("mplang.http")

_STATUS: tuple[tuple[type[MPLangError], int], ...] = (
    (errors.AdmissionError, 403),
    (errors.IRError, 422),
    (errors.KernelError, 422),
    (errors.PluginError, 422),
    (errors.CommError, 503),
)


class Refusal(Exception):  # noqa: N818
    """An answer that is no success.

    Attributes:
        status: the HTTP status.
        code: a word for programs.
        text: for people; public.
    """

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status, self.code, self.text = status, code, text[:MAX_TEXT]

    @classmethod
    def of(cls, error: BaseException) -> Refusal:
        """Return what may be said of an error: mplang's own are public, others stay here."""
        if isinstance(error, Refusal):
            return error
        if isinstance(error, MPLangError):
            status = next((s for kind, s in _STATUS if isinstance(error, kind)), 400)
            return cls(status, type(error).__name__, str(error))
        log.error("a request failed", exc_info=error)
        return cls(500, "internal", f"{type(error).__name__} in the worker; see its log")


def told(error: BaseException) -> dict[str, Any]:
    """Return what a coordinator is told of the error that ended a job."""
    public = isinstance(error, MPLangError)
    return {
        "kind": type(error).__name__ if public else "RunError",
        "text": (str(error) if public else type(error).__name__)[:MAX_TEXT],
        "op": getattr(error, "op", None),
        "location": (getattr(error, "location", None) or "")[:MAX_PLACE] or None,
    }


def error_from(told: dict[str, Any]) -> MPLangError:
    """Return the error that a worker told of; one of those that programs end with."""
    found = getattr(errors, str(told.get("kind")), None)
    fits = isinstance(found, type) and issubclass(found, errors.RunError | errors.IRError)
    kind = found if fits and found is not errors.PartyError else errors.RunError
    assert isinstance(kind, type)
    error: MPLangError = kind(str(told.get("text", "")))
    error.op = told.get("op")  # type: ignore[attr-defined]
    error.location = told.get("location")  # type: ignore[attr-defined]
    return error
