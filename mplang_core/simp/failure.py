"""Public description of a failure at a party."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mplang_core import errors
from mplang_core.errors import MPLangError, RunError
from mplang_core.printable import printable

MAX_TEXT = 4000  # characters
MAX_PLACE = 300  # characters of a source line's text, "file:line"


@dataclass(frozen=True, slots=True)
class Failure:
    """Public part of an error: messages of mplang's errors; of other errors the class only.

    Attributes:
        kind: the name of the error's class.
        text: the message.
        op: the name of the failed op.
        location: the op's line in the user's source.

    Example:
        >>> Failure.of(ValueError("a detail of the data"))
        Failure(kind='RunError', text='ValueError', op=None, location=None)
    """

    kind: str
    text: str
    op: str | None = None
    location: str | None = None

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return the public part of an error."""
        public = isinstance(error, MPLangError)
        return cls(
            type(error).__name__ if public else "RunError",
            (str(error) if public else type(error).__name__)[:MAX_TEXT],
            getattr(error, "op", None),
            (getattr(error, "location", None) or "")[:MAX_PLACE] or None,
        )

    def error(self) -> MPLangError:
        """Return an error for the host to raise, a ``RunError`` or ``IRError``; text is escaped."""
        found: Any = getattr(errors, str(self.kind), None)
        fits = isinstance(found, type) and issubclass(found, RunError | errors.IRError)
        made: Any = (found if fits and found is not errors.PartyError else RunError)(
            printable(str(self.text), keep="\n")
        )
        made.op = printable(self.op) if self.op else None
        made.location = printable(self.location) if self.location else None
        return made  # type: ignore[no-any-return]
