"""What a worker says when it does not do what it is asked: a status, a code, a public text."""

from __future__ import annotations

import logging

from mplang_core import errors
from mplang_core.errors import MPLangError

__all__ = ["RequestError"]

MAX_TEXT = 4000  # characters
log = logging.getLogger("mplang.http")

_STATUS: tuple[tuple[type[MPLangError], int], ...] = (
    (errors.AdmissionError, 403),
    (errors.IRError, 422),
    (errors.KernelError, 422),
    (errors.PluginError, 422),
    (errors.CommError, 503),
)


class RequestError(Exception):
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
    def of(cls, error: BaseException) -> RequestError:
        """Return what may be said of an error: mplang's own are public, others stay here."""
        if isinstance(error, RequestError):
            return error
        if isinstance(error, MPLangError):
            status = next((s for kind, s in _STATUS if isinstance(error, kind)), 400)
            return cls(status, type(error).__name__, str(error))
        log.error("a request failed", exc_info=error)
        return cls(500, "internal", f"{type(error).__name__} in the worker; see its log")
