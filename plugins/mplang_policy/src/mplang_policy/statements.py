"""Statements of Cedar files: each with its place, so that a refusal can name it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cedarpy

from mplang_core.ext import ConfigError

_TOKEN = re.compile(r"//[^\n]*|\"(?:[^\"\\]|\\.)*\"|;|\S", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    """A ``permit`` or a ``forbid``.

    Attributes:
        id: its ``@id``, or the place where it stands.
        place: file and line, ``"analyst.cedar:12"``.
        body: its JSON form.
    """

    id: str
    place: str
    body: dict[str, Any]

    @property
    def effect(self) -> str:
        """``"permit"`` or ``"forbid"``."""
        return str(self.body["effect"])

    @property
    def shown(self) -> str:
        """How a message names it."""
        return self.place if self.id == self.place else f'"{self.id}" ({self.place})'


def read_statements(file: str, text: str) -> list[Statement]:
    """Return the statements of a file.

    Args:
        file: name of the file.
        text: what it holds.

    Raises:
        ConfigError: it is not Cedar, or has templates, which permit nothing.
    """
    try:
        found = json.loads(cedarpy.policies_to_json_str(text))
    except ValueError as error:
        raise ConfigError(f"{file}: {_cause(text, error)}", code="C012") from None
    if found["templates"]:
        raise ConfigError(
            f"{file}: a template permits nothing; write principal and resource out", code="C012"
        )
    # policy0, policy1, … in the order of the text
    bodies = sorted(found["staticPolicies"].items(), key=lambda each: int(each[0][6:]))
    places = [f"{file}:{line}" for line in _lines(text)]
    return [
        Statement(body.get("annotations", {}).get("id") or place, place, body)
        for (_, body), place in zip(bodies, places, strict=True)
    ]


def nodes(body: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in the JSON form of a statement."""
    if isinstance(body, dict):
        yield body
        for each in body.values():
            yield from nodes(each)
    elif isinstance(body, list):
        for each in body:
            yield from nodes(each)


def _lines(text: str) -> Iterator[int]:
    """Yield the line at which each statement begins."""
    fresh = True
    for token in _TOKEN.finditer(text):
        if token[0].startswith("//"):
            continue
        if fresh:
            yield text.count("\n", 0, token.start()) + 1
        fresh = token[0] == ";"


def _cause(text: str, error: ValueError) -> str:
    """Return why a text is not Cedar, with the line of the first statement that is none."""
    begins = [*_lines(text), text.count("\n") + 2]
    lines = text.split("\n")
    for begin, end in itertools.pairwise(begins):
        part = "\n".join(lines[begin - 1 : end - 1])
        try:
            cedarpy.policies_to_json_str(part)
        except ValueError as cause:
            return f"line {begin}: no Cedar: {cause}"
    return f"no Cedar: {error}"
