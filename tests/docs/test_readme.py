"""What the README shows of its program is what the program gives: sentences and picture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import shown_pictures

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

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
    shown_pictures.assert_shown(disclosure, "slope.svg")
