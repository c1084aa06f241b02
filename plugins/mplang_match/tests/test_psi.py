"""What libpsi is given."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from mplang_match import psi
from mplang_match.lines import check_text

TOKENS = b"".join(b"%032x\n" % i for i in range(20))


def given(protocol, learns, monkeypatch):
    """Return the lines of the file that libpsi gets."""
    lines = []

    class Psi:
        def __init__(self, protocol, link, source, target, learns):
            self._paths = source, target

        def run(self):
            source, target = map(Path, self._paths)
            lines.extend(source.read_bytes().splitlines())
            target.write_bytes(psi.COLUMN)

    monkeypatch.setattr(psi, "_Psi", Psi)
    psi.PsiMatcher(protocol).match(SimpleNamespace(folder=""), memoryview(TOKENS), learns=learns)
    return lines[1:]


@pytest.mark.parametrize(("protocol", "size"), [("RR22", 20), ("KKRT", 4096), ("ECDH", 20)])
def test_a_set_has_the_size_from_which_its_protocol_does_not_fail(protocol, size, monkeypatch):
    lines = given(protocol, True, monkeypatch)
    assert lines[:20] == TOKENS.splitlines()
    assert len(set(lines)) == len(lines) == size
    check_text(memoryview(b"".join(each + b"\n" for each in lines)))


def test_the_set_of_who_learns_nothing_is_as_it_is(monkeypatch):
    assert given("KKRT", False, monkeypatch) == TOKENS.splitlines()
