"""Pictures of programs that the documents show: files, each held against its program."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mplang_analysis import Disclosure

IMAGES = Path(__file__).parents[2] / "docs" / "images"
ON_WHITE = "svg { background: #ffffff; color: #222222; --mplang-alert: #b3140c; }"
"""Style of the pictures, which stand on pages that do not say whether they are dark."""


def assert_shown(disclosure: Disclosure, name: str) -> None:
    """Fail unless a file of ``docs/images`` is the picture of a program.

    Args:
        disclosure: of the program.
        name: of the file; written anew where ``MPLANG_WRITE_GOLDEN`` is set.
    """
    svg = disclosure.picture().svg()
    drawn = re.sub(r"<style>.*?</style>", f"<style>{ON_WHITE}</style>", svg, flags=re.DOTALL)
    file = IMAGES / name
    if os.environ.get("MPLANG_WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(drawn, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == drawn
