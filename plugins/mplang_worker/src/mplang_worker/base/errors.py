"""Error responses of a worker: HTTP status, error code and public text."""

from __future__ import annotations

import logging

from mplang_core import MPLangError, errors

MAX_TEXT = 4000  # characters
log = logging.getLogger("mplang.http")

_STATUS: tuple[tuple[type[MPLangError], int], ...] = (
    (errors.AdmissionError, 403),
    (errors.IRError, 422),
    (errors.KernelError, 422),
    (errors.PluginError, 422),
    (errors.CommError, 503),
    (errors.ShutdownError, 503),
)


class RequestError(Exception):
    """Error response to a request.

    Args:
        status: HTTP status.
        code: error code for programs.
        text: text for people; public, truncated to ``MAX_TEXT`` characters.
        explain: the code of the kind of error, if it has one; an engine may say anything.

    Attributes:
        status: HTTP status.
        code: error code for programs.
        text: text for people.
        refusals: what rules of the owner refuse, if that is why.
        explain: the code of the kind of error, for ``mplang explain``; empty for a general one.
    """

    def __init__(self, status: int, code: str, text: str, explain: str = "") -> None:
        super().__init__(text)
        self.status, self.code, self.text = status, code, text[:MAX_TEXT]
        self.refusals: tuple[errors.Refusal, ...] = ()
        self.explain = explain if errors.CODE.fullmatch(explain) else ""

    @classmethod
    def of(cls, error: BaseException) -> RequestError:
        """Return the error response for an exception; only mplang's own texts are public."""
        if isinstance(error, RequestError):
            return error
        if isinstance(error, MPLangError):
            status = next((s for kind, s in _STATUS if isinstance(error, kind)), 400)
            made = cls(status, type(error).__name__, str(error), error.code)
            made.refusals = getattr(error, "refusals", ())
            return made
        log.error("a request failed: %s; its text is logged at level debug", type(error).__name__)
        log.debug("why the request failed", exc_info=error)
        return cls(500, "internal", f"{type(error).__name__} in the worker; see its log")
