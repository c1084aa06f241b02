"""Description of a failure at a party, and its public part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mplang_core import errors
from mplang_core.errors import (
    AdmissionError,
    CommError,
    IRError,
    KernelError,
    MPLangError,
    PartyError,
    RunError,
)
from mplang_core.printable import printable

MAX_TEXT = 4000  # characters of an error's text
MAX_PLACE = 300  # characters of a source line's text, "file:line"
WITHHELD = "the reason is in that party's log, at log_level: debug"


class DamagedProcessError(KernelError, code="R014"):
    """Native code that failed in a way that may have harmed the memory of its process.

    The engine of a worker ends once it has told that the run has failed; its values are lost.
    Other processes go on, as what a user has there cannot be saved otherwise, but should end soon.
    """


@dataclass(frozen=True, slots=True)
class Failure:
    """Description of an error: messages of mplang's errors; of other errors the class only.

    Within one process this is :meth:`of`. What leaves a party is :meth:`public`, which tells which
    op failed, and nothing else that may depend on its operands.

    Attributes:
        kind: the name of the error's class.
        text: the message.
        op: the name of the failed op.
        location: the op's line in the user's source.
        code: the code of the error's kind, as ``"D001"``; empty for that of its class.

    Example:
        >>> Failure.of(ValueError("a detail of the data"))
        Failure(kind='RunError', text='ValueError', op=None, location=None, code='')
        >>> Failure.public(ValueError("a detail of the data")).text
        "the reason is in that party's log, at log_level: debug"
    """

    kind: str
    text: str
    op: str | None = None
    location: str | None = None
    code: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return the description of an error, for the process in which it was raised."""
        if isinstance(error, MPLangError):
            return cls(type(error).__name__, *told_of(error), error.code)
        return cls("RunError", *told_of(error))  # codes of others are of other kinds

    @classmethod
    def public(cls, error: BaseException) -> Failure:
        """Return what the host and the peers may know of an error.

        The failure of an op has one text, whatever its operands: its class and message stay at
        the party. Errors of the transport, of admission, and those raised before an op ran do not
        depend on operands, and keep theirs.

        Args:
            error: what ended the run at this party.
        """
        told = cls.of(error)
        if not cls.in_op(error) or isinstance(error, AdmissionError):
            return told
        return cls("RunError", WITHHELD, told.op, told.location)

    @staticmethod
    def in_op(error: BaseException) -> bool:
        """Return whether an error was raised by an op, and not by the transport or before it."""
        located = getattr(error, "op", None) is not None or not isinstance(error, MPLangError)
        return located and not isinstance(error, CommError)

    def error(self) -> MPLangError:
        """Return an error for the host to raise, a ``RunError`` or ``IRError``; text is escaped."""
        found: Any = getattr(errors, str(self.kind), None)
        fits = isinstance(found, type) and issubclass(found, RunError | IRError)
        made: Any = (found if fits and found is not PartyError else RunError)(
            printable(str(self.text), keep="\n"), code=str(self.code)
        )
        made.op = printable(self.op) if self.op else None
        made.location = printable(self.location) if self.location else None
        return made  # type: ignore[no-any-return]


def told_of(error: BaseException) -> tuple[str, str | None, str | None]:
    """Return the text of an error, the op that failed and its line, within the same process.

    The text is the message of an error of mplang; of other errors it is the class only.
    """
    text = str(error) if isinstance(error, MPLangError) else type(error).__name__
    where = (getattr(error, "location", None) or "")[:MAX_PLACE] or None
    return text[:MAX_TEXT], getattr(error, "op", None), where
