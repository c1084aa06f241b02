"""Party names: what reports call the parties of a program, the host and everyone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mplang_core.ext import ConfigError, printable

LONGEST_NAME = 64
"""Characters of a foreign name that are shown."""

_PLAIN = re.compile(r"\w(?:[\w.:-]{0,62}\w)?")
_CELL = re.compile(r"(Cell In\[\d{1,9}\]|the prompt), line \d{1,9}", re.ASCII)
_RESERVED = re.compile(r"(party[\W_]*\d*|(the[\W_]*)?host|every(one|body)|no(body|_?one))", re.I)


def is_plain(text: str) -> bool:
    """Return whether a text is one simple word, as names of parties and devices are.

    Example:
        >>> is_plain("bank-1"), is_plain("bank, approved")
        (True, False)
    """
    return _PLAIN.fullmatch(text) is not None and printable(text) == text


def quoted(text: str, longest: int | None = LONGEST_NAME) -> str:
    r"""Return a foreign text so that it cannot be taken for ours: a simple word, or in quotes.

    Args:
        text: the text.
        longest: characters of it that are shown; all of them for ``None``.

    Example:
        >>> print(quoted("bank"), quoted('x" learns nothing.'))
        bank "x\x22 learns nothing."
    """
    return text if is_plain(text) else in_quotes(text, longest)


def in_quotes(text: str, longest: int | None = LONGEST_NAME) -> str:
    """Return a foreign text in quotes, whatever it is.

    A backslash is doubled and a quote is escaped within, so that neither stands for anything else:
    two texts that are whole never look alike.

    Args:
        text: the text.
        longest: characters of it that are shown; all of them for ``None``.
    """
    shown = printable(text.replace("\\", "\\\\")).replace('"', "\\x22")
    cut = longest is not None and len(shown) > longest
    return f'"{shown[: longest - 1] + "…" if longest is not None and cut else shown}"'


def quoted_line(line: str) -> str:
    """Return a source line so that it cannot be taken for ours; its number stays.

    Example:
        >>> quoted_line("a b.py:12")
        '"a b.py":12'
        >>> quoted_line("Cell In[5], line 8")
        'Cell In[5], line 8'
    """
    if _CELL.fullmatch(line):
        return line
    file, colon, number = line.rpartition(":")
    return f"{quoted(file)}:{number}" if colon and number.isdecimal() else quoted(line)


def read_names(names: Sequence[str] | Mapping[int, str], parties: Sequence[int]) -> tuple[str, ...]:
    """Return a name per party, each of which stands for that party only.

    A party without a name is ``party 0``. A name that is not a simple word is quoted; one that
    occurs twice, or could be read as another party or the host, has its rank added.

    Args:
        names: the names by rank.
        parties: the ranks of the program.

    Raises:
        ConfigError: a name is not text.

    Example:
        >>> read_names(["bank", "host"], [0, 1, 2])
        ('bank', '"host" (party 1)', 'party 2')
    """
    by_rank = dict(names if isinstance(names, Mapping) else enumerate(names))
    wrong = [name for name in by_rank.values() if not isinstance(name, str)]
    if wrong or isinstance(names, str):
        raise ConfigError(
            f"names of parties are texts by rank, as ['bank', 'shop'], got {names!r}"[:200],
            code="C006",
        )
    shown = {rank: quoted(by_rank[rank]) for rank in parties if by_rank.get(rank)}
    counts = Counter(name.casefold() for name in shown.values())
    return tuple(_distinct(shown.get(rank), rank, counts) for rank in parties)


def _distinct(name: str | None, rank: int, counts: Mapping[str, int]) -> str:
    if name is None:
        return f"party {rank}"
    if counts[name.casefold()] == 1 and _PLAIN.fullmatch(name) and not _RESERVED.fullmatch(name):
        return name
    return f"{name} (party {rank})" if name.startswith('"') else f'"{name}" (party {rank})'


@dataclass(frozen=True, slots=True)
class PartyNames:
    """Names of the parties of a program.

    Attributes:
        parties: their ranks.
        names: a name per rank, in their order; those that are missing are ``party 0``, ….
    """

    parties: tuple[int, ...]
    names: tuple[str, ...] = ()

    def of(self, who: int | str | None) -> str:
        """Return what a party is called, or ``"host"`` or ``"everyone"``."""
        if isinstance(who, int):
            named = dict(zip(self.parties, self.names, strict=False))
            return named.get(who, f"party {who}")
        return "the host" if who == "host" else who or "somebody"


def names_of(subject: Any) -> Sequence[str]:
    """Return the names of the parties in the cluster that a function was traced for.

    Args:
        subject: a compiled or traced function; a program of another kind has no names.
    """
    cluster = getattr(subject, "cluster_spec", None)
    if cluster is None:  # of a function that was compiled for the cluster of any host
        cluster = getattr(getattr(subject, "traced", None), "cluster_spec", None)
    return [node.name for node in getattr(cluster, "nodes", ())]
