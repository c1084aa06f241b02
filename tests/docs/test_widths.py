"""Blocks of code in documents are at most 76 columns wide, so that pages do not scroll sideways."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt
from test_docs import DOCUMENTS, ROOT

WIDTH = 76
PAGES = [
    *DOCUMENTS,
    *(
        path.relative_to(ROOT)
        for path in sorted(ROOT.glob("plugins/mplang_cli/src/mplang_cli/errors/*.md"))
    ),
]
WIDE = {
    "README.md:compiled = mp.compile(slope": "test_readme.py compares its sentences, a line each"
}
"""Blocks that may be wider, by page and the beginning of their code, with the reason."""


def wide_lines(text: str, page: str) -> list[str]:
    """Return the lines of code, fenced or indented, that are too wide."""
    blocks = [each for each in MarkdownIt().parse(text) if each.type in ("fence", "code_block")]
    return [
        f"{page}:{block.map[0] + 1}: {len(line)} columns: {line}"
        for block in blocks
        if not any(f"{page}:{block.content}".startswith(each) for each in WIDE)
        for line in block.content.splitlines()
        if len(line) > WIDTH
    ]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_code_is_narrow(page):
    assert wide_lines((ROOT / page).read_text(encoding="utf-8"), str(page)) == []


@pytest.mark.parametrize("exempt", WIDE)
def test_an_exempt_block_is_wide(exempt):
    page, _, beginning = exempt.partition(":")
    text = (ROOT / page).read_text(encoding="utf-8")
    (code,) = [each.content for each in MarkdownIt().parse(text) if beginning in each.content[:76]]
    assert max(map(len, code.splitlines())) > WIDTH


@pytest.mark.parametrize("block", ["```\n{}\n```\n", "```sh\nls\n{}\n```\n", "    {}\n"])
def test_a_wide_line_is_found(block):
    (found,) = wide_lines(block.format("x" * (WIDTH + 1)), "page.md")
    assert found.startswith("page.md:1: 77 columns: xxx")
    assert wide_lines(block.format("x" * WIDTH), "page.md") == []
