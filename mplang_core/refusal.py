"""Refusals as data: what a party refuses of a program, and what can be changed."""

from __future__ import annotations

from dataclasses import dataclass

from mplang_core.display import Displayed
from mplang_core.printable import printable

HEADINGS = {
    "rule": "{by} adds to its rules",
    "exception": "{by} adds to its rule at {where}",
    "setting": "{by} sets in its worker's file, and restarts it",
    "command": "{by} runs",
    "code": "the program has",
    "receiver": "the program gives it to",
    "without": "the program does without",
    "wait": "it is asked again later",
}


@dataclass(frozen=True, slots=True)
class Advice:
    """Change after which a refused program is permitted.

    Those of kind ``rule`` and ``exception`` belong together; each other one is enough by itself.

    Attributes:
        kind: ``rule`` that an owner adds, ``exception`` of one of the owner's rules, ``setting`` of
            a worker, ``command``, ``code`` of the program, another ``receiver``, what it does
            ``without``, or ``wait``.
        text: the advice in a sentence.
        change: what to write or run: a Cedar rule, a clause of one, fields in YAML, a line for a
            shell, an expression or arguments of Python, or names, one a line; or empty.
        where: file and line to change, ``"bank.cedar:4"``; or empty.
        by: the party whose owner does it; empty for whoever wrote the program.
    """

    kind: str
    text: str
    change: str = ""
    where: str = ""
    by: str = ""

    @property
    def heading(self) -> str:
        """Heading: who changes what; escaped."""
        if self.kind not in HEADINGS:  # of a newer version; it is not a format of ours
            return printable(self.kind)
        return printable(HEADINGS[self.kind].format(by=self.by, where=self.where))

    def __str__(self) -> str:
        change = [f"    {printable(line)}" for line in self.change.splitlines()]
        head = f"{self.heading}:" if change else self.heading
        return "\n".join([f"{printable(self.text)}; {head}", *change])


_DETAILS = ("code", "rules", "lacks", "columns", "path", "reason")


@dataclass(frozen=True, slots=True, repr=False)
class Refusal(Displayed):
    """Refused part of a program, at one party. Notebooks show it as a table.

    Attributes:
        party: the name of the party.
        code: ``forbidden`` by a rule, ``lacking`` a condition of the nearest rule that permits
            it, ``no-rule`` permits any such action, or ``error`` in a rule. What rules are not
            asked about: ``approval``, ``budget``, ``quota`` or ``failures`` that are used up,
            ``shut`` until the owner has mended rules or log, or a ``log`` that a peer remembers
            otherwise.
        action: what the program would do: ``run``, ``read``, ``disclose``, ``forward``, ``fetch``,
            ``store``, ``put`` or ``rely``; empty for anything.
        resource: what it would do that to, or who would get it, as ``Host::"analyst"``; whose
            requests are refused, or empty for everybody's, where it may do nothing at all.
        what: the kind of row of the disclosure table that it is about, as ``result``; or empty.
        rules: the rules that forbid it, or the nearest one that permits it, each with file and
            line: ``"numbers" (bank.cedar:4)``.
        lacks: the fields of the context which that rule has conditions on that do not hold.
        columns: the private columns that it is about, as ``people.pay``.
        location: the user's line at which it leaves, ``"file:line"``; or empty.
        path: the lines by which the data comes there.
        reason: why, in a sentence.
        advice: what can be changed, so that it is permitted.

    Example:
        >>> advice = Advice("code", "groups are too small", "k=20")
        >>> print(Refusal("bank", "lacking", "fetch", "Host", lacks=("k",), advice=(advice,)))
        bank refuses fetch of Host
          code   lacking
          lacks  k
        what can be changed:
          groups are too small; the program has:
              k=20
    """

    party: str
    code: str
    action: str
    resource: str
    what: str = ""
    rules: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    location: str = ""
    path: tuple[str, ...] = ()
    reason: str = ""
    advice: tuple[Advice, ...] = ()

    def __str__(self) -> str:
        texts = self.details()
        width = max(map(len, texts), default=0)
        lines = [self._title, *(f"  {name:{width}}  {text}" for name, text in texts.items())]
        if self.advice:
            lines.append("what can be changed:")
        lines += [f"  {line}" for each in self.advice for line in str(each).splitlines()]
        return "\n".join(lines)

    def details(self) -> dict[str, str]:
        """Return by their names the texts of the fields that stand below its first line."""
        return {name: text for name in _DETAILS if (text := _text(getattr(self, name)))}

    @property
    def _title(self) -> str:
        what = f" ({self.what})" if self.what else ""
        at = f" at {self.location}" if self.location else ""
        of = f" of {self.resource}" if self.resource else ""
        action = self.action or "everything"
        return printable(f"{self.party} refuses {action}{of}{what}{at}")

    __repr__ = __str__


class Refusals(Displayed, tuple[Refusal, ...]):
    """Refusals of an error, in the order of the program. Notebooks show them as tables.

    Example:
        >>> print(Refusals([Refusal("bank", "no-rule", "run", "Program")]))
        bank refuses run of Program
          code  no-rule
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    __repr__ = __str__


def _text(value: str | tuple[str, ...]) -> str:
    return printable(value if isinstance(value, str) else ", ".join(value))
