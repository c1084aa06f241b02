"""The number of passes, by which releases fit together, changes with what they make."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
MADE = {
    "1": "2d1d89f0f5e63d9254444bc0915171df0096f09160a688f94f06384fe952320e",
    "2": "032302344c6ac1ed0d193239393defc159b1bb6f299c136c952cc115a3128459",
}
"""By the number of mplang-passes the SHA-256 of what its passes make of the golden programs."""


def test_passes_that_make_something_else_have_another_number():
    """New golden programs are added to the record of a number; those that change need the next."""
    with (ROOT / "plugins" / "mplang_passes" / "pyproject.toml").open("rb") as file:
        (number,) = tomllib.load(file)["project"]["entry-points"]["mplang.pass_version"]
    digest = hashlib.sha256()
    for path in sorted(GOLDEN.glob("*/*.mpl")):
        digest.update(path.relative_to(GOLDEN).as_posix().encode() + b"\0" + path.read_bytes())
    assert MADE[number] == digest.hexdigest()
