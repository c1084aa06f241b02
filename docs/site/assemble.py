"""Collects the pages of the site: those of the repository, where they stand, and the reference.

A link to a folder leads to its page, one to a file that is not a page to the repository.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import command_pages
import error_pages
import name_pages
import setting_pages

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/mplang-dev/mplang/blob/main"
PAGES = (
    "*.md",
    "docs/*.md",
    "docs/adr/*.md",
    "docs/coming-from/*.md",
    "docs/cookbook/*.md",
    "docs/tutorials/*.md",
    "plugins/*/README.md",
    "examples/*/README.md",
    "benchmarks/RESULTS.md",
    "benchmarks/sml/RESULTS.md",
)
IMAGES = Path("docs/images")
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(?=[)#])")


def pages() -> Iterator[Path]:
    """Yield the pages of the repository, relative to it."""
    for pattern in PAGES:
        yield from (each.relative_to(ROOT) for each in sorted(ROOT.glob(pattern)))


def with_links(text: str, page: Path, known: set[Path]) -> str:
    """Return the text of a page whose links lead to pages, or to the repository.

    Args:
        text: Markdown.
        page: where it stands, relative to the repository.
        known: the pages there are.

    Raises:
        ValueError: a link leads nowhere.
    """

    def changed(found: re.Match[str]) -> str:
        target = (ROOT / page.parent / found[1]).resolve().relative_to(ROOT)
        inner = [target / name for name in ("README.md", "index.md") if target / name in known]
        if target in known or target.parent == IMAGES:
            return found[1]
        if inner:
            return f"{found[1].rstrip('/')}/{inner[0].name}"
        if not (ROOT / target).exists():
            raise ValueError(f"{page}: the link {found[1]} leads nowhere")
        return f"{REPOSITORY}/{target}"

    return _LINK.sub(changed, text)


def assemble(folder: Path) -> None:
    """Write the source of the site, and what is put beside it.

    Args:
        folder: for both, as ``source`` and ``extra``.
    """
    source, extra = folder / "source", folder / "extra"
    shutil.rmtree(source, ignore_errors=True)
    decisions = Path("docs/adr/index.md")
    known = {*pages(), decisions}
    made = {page: with_links((ROOT / page).read_text(), page, known) for page in pages()}
    made[decisions] = _list_of(
        "Decisions", (page for page in pages() if page.parent == decisions.parent), decisions.parent
    )
    packages = sorted(page for page in pages() if page.parts[0] in ("plugins", "examples"))
    made[Path("packages.md")] = _list_of("Pages of packages", packages, Path())
    made[Path("index.md")] = (Path(__file__).parent / "index.md").read_text()
    for maker in (name_pages, command_pages, setting_pages, error_pages):
        made |= {Path("reference") / name: text for name, text in maker.pages().items()}
    for page, text in made.items():
        (source / page).parent.mkdir(parents=True, exist_ok=True)
        (source / page).write_text(text)
    shutil.copytree(ROOT / IMAGES, source / IMAGES)
    extra.mkdir(exist_ok=True)
    (extra / "llms.txt").write_text(_for_models(made))


def _list_of(title: str, listed: Iterator[Path] | list[Path], folder: Path) -> str:
    """Return a page that lists others, which are its parts."""
    names = [page.relative_to(folder).as_posix() for page in listed]
    return "\n".join([f"# {title}", "", "```{toctree}", ":maxdepth: 1", "", *names, "```", ""])


def _for_models(made: Mapping[Path, str]) -> str:
    """Return ``llms.txt``: the pages with their titles, as language models look for them."""
    listed = [page for page in sorted(made) if page.suffix == ".md"]
    titles = ((page, re.search(r"^# (.+)", made[page], re.MULTILINE)) for page in listed)
    rows = [f"- [{found[1]}]({page.with_suffix('.html')})" for page, found in titles if found]
    what = "> One Python program over the private data of several parties"
    return "\n".join(["# mplang", "", what, "", *rows, ""])


if __name__ == "__main__":
    assemble(Path(sys.argv[1]))
