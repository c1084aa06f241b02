"""Pages that explain errors by their codes: what is wrong, and how to repair it.

A page is a Markdown file ``D001.md`` in a package that an entry point of the group
``mplang.errors`` names, so packages explain the codes of their own errors, too. Its first line is
its title, ``# D001: data would move without consent``.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator
from dataclasses import dataclass

from mplang_core.ext import ConfigError, plugin_manager, similar

GROUP = "mplang.errors"


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """Page of one kind of error.

    Attributes:
        code: its code, such as ``"D001"``.
        title: what is wrong, in a clause.
        text: the page, in Markdown.
    """

    code: str
    title: str
    text: str


def error_pages() -> dict[str, ErrorPage]:
    """Return the pages of all packages that are installed, by code.

    Raises:
        PluginError: a package that has pages does not load.

    Example:
        >>> error_pages()["D001"].title
        'data would move without consent'
    """
    return {page.code: page for page in sorted(_pages(), key=lambda page: page.code)}


def explain(code: str) -> ErrorPage:
    """Return the page of a kind of error.

    Args:
        code: the code, as in the note below a message; in any case, with or without ``MP-``.

    Raises:
        ConfigError: no package that is installed has such a page.

    Example:
        >>> print(explain("mp-d001").text.splitlines()[0])
        # D001: data would move without consent
    """
    pages, wanted = error_pages(), code.upper().removeprefix("MP-")
    if wanted not in pages:
        hint = similar(wanted, pages) or "mplang explain lists them all; of a name, help() tells"
        raise ConfigError(f"no page of an error {code[:40]!r}; {hint}", code="C006")
    return pages[wanted]


def _pages() -> Iterator[ErrorPage]:
    for name in plugin_manager.names(GROUP):
        package = plugin_manager.entry(GROUP, name)
        for file in importlib.resources.files(package).iterdir():
            if file.name.endswith(".md"):
                text = file.read_text(encoding="utf-8")
                code, _, title = text.partition("\n")[0].removeprefix("# ").partition(": ")
                yield ErrorPage(code, title, text)
