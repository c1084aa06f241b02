"""How a run failed at a party, and what of it others may know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mplang_core import errors
from mplang_core.errors import MPLangError, RunError
from mplang_core.printable import printable

MAX_TEXT = 4000  # characters
MAX_PLACE = 300  # characters of a place in the user's source


@dataclass(frozen=True, slots=True)
class Failure:
    """What others may know of an error: mplang's own texts are public, others stay at the party.

    Attributes:
        kind: the name of its class.
        text: what it says.
        op: where it happened.
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
        """Return what may be said of an error."""
        public = isinstance(error, MPLangError)
        return cls(
            type(error).__name__ if public else "RunError",
            (str(error) if public else type(error).__name__)[:MAX_TEXT],
            getattr(error, "op", None),
            (getattr(error, "location", None) or "")[:MAX_PLACE] or None,
        )

    def error(self) -> MPLangError:
        """Return the error for the host to raise; one of those that programs end with."""
        found: Any = getattr(errors, str(self.kind), None)
        fits = isinstance(found, type) and issubclass(found, RunError | errors.IRError)
        made: Any = (found if fits and found is not errors.PartyError else RunError)(
            printable(str(self.text), keep="\n")
        )
        made.op = printable(self.op) if self.op else None
        made.location = printable(self.location) if self.location else None
        return made  # type: ignore[no-any-return]
