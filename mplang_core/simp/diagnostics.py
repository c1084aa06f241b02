"""Diagnostics: what can be known to go wrong in a program before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from mplang_core.ir import Location, Program
from mplang_core.namespace import Namespace


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something that is wrong in a program, such as a number that its engine does not hold.

    Attributes:
        text: the problem and the remedy.
        line: the user's line; ``None`` if only that of the op is known.
        op: what computes it, in the user's terms; empty if it is the whole op.
    """

    text: str
    line: Location | None = None
    op: str = ""

    def __str__(self) -> str:
        return f"{self.line}: {self.text}" if self.line else self.text


class Diagnosis(Protocol):
    """Protocol of what finds diagnostics, named by an entry point of ``mplang.diagnostics``."""

    def sample(self, data: Any) -> Any:
        """Return what to keep of data that a host puts; ``None`` for nothing."""

    def find(self, program: Program, samples: Mapping[int, Any] | None) -> Iterable[Diagnostic]:
        """Return what goes wrong in a program.

        Args:
            program: the program, verified.
            samples: what was kept of inputs, by position; ``None`` if wrong numbers are found in
                the results anyway, and only what is certain before is to be told.
        """


Samples: TypeAlias = Mapping[str, Any]
"""Per diagnosis what it keeps of data."""

diagnostics: Namespace[Diagnosis] = Namespace("diagnosis")
"""The installed diagnoses by name."""


def _installed() -> list[tuple[str, Diagnosis]]:
    found = [(name, diagnostics.get(name)) for name in diagnostics.known()]
    return [(name, each) for name, each in found if each is not None]


def samples_of(data: Any) -> Samples:
    """Return what the installed diagnoses keep of data that a host puts."""
    found = {name: each.sample(data) for name, each in _installed()}
    return {name: sample for name, sample in found.items() if sample is not None}


def diagnose(program: Program, data: Mapping[int, Samples] | None = None) -> list[Diagnostic]:
    """Return what the installed diagnoses say of a program.

    Args:
        program: the program, verified.
        data: what was kept of its inputs, by position; ``None`` if results are compared.
    """
    found: list[Diagnostic] = []
    for name, each in _installed():
        kept = ((i, samples.get(name)) for i, samples in (data or {}).items())
        mine = {i: sample for i, sample in kept if sample is not None}
        found += each.find(program, None if data is None else mine)
    return found
