"""What the README shows of its program is what the program gives: sentences and picture."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "slope.svg"
README = (ROOT / "README.md").read_text(encoding="utf-8")
ON_WHITE = "svg { background: #ffffff; color: #222222; --mplang-alert: #b3140c; }"
"""Style of the picture, which stands on pages that do not say whether they are dark."""

pytestmark = pytest.mark.needs("jax", "spu", "http")


@pytest.fixture(scope="module")
def disclosure():
    """What the program of the first block discloses."""
    import mplang_core as mp

    block = re.search(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    code = "\n" * (README.count("\n", 0, block.start()) + 1) + block[1]
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(compile(code, str(ROOT / "README.md"), "exec"), namespace)
    names = ("slope", "dose", "cost", "cluster")
    slope, dose, cost, cluster = (namespace[name] for name in names)
    return mp.analysis.disclosure(mp.compile(slope, dose, cost, cluster_spec=cluster))


def test_the_sentences_are_those_of_the_program(disclosure):
    shown = re.findall(r"^# (.+\.)$", README, re.MULTILINE)
    assert shown == list(disclosure.sentences()[:3])


def test_the_picture_is_that_of_the_program(disclosure):
    drawn = re.sub(
        r"<style>.*?</style>", f"<style>{ON_WHITE}</style>", disclosure.picture().svg(), flags=re.S
    )
    if os.environ.get("MPLANG_WRITE_GOLDEN"):
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(drawn, encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8") == drawn
