"""Reference of errors and warnings: the tree of the core, and a page for each code."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from mplang_cli.explain import error_pages

from mplang_core import errors


def pages() -> Mapping[str, str]:
    """Return the page of the errors and warnings, and those that explain codes."""
    listed = [each for _, each in inspect.getmembers(errors, inspect.isclass)]
    roots = [
        each
        for each in listed
        if issubclass(each, Exception) and not any(base in listed for base in each.__bases__)
    ]
    lines = ["# Errors and warnings", "", "All are in `mplang_core.errors`; an error of a package",
             "is one of these, or a subclass.", ""]  # fmt: skip
    for root in roots:
        lines += [*_lines(root, listed, 0)]
    lines += ["", "## By code", "", "As `mplang explain D001` shows them.", ""]
    lines += ["```{toctree}", ":maxdepth: 1", ""]
    explained = {f"errors/{page.code}.md": page.text for page in error_pages().values()}
    return {"errors.md": "\n".join([*lines, *explained, "```", ""]), **explained}


def _lines(kind: type, listed: list[type], depth: int) -> Iterator[str]:
    first = " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())
    code = getattr(kind, "code", "")
    yield f"{'  ' * depth}- **{kind.__name__}**{f' ({code})' if code else ''}: {first}"
    for each in listed:
        if kind in each.__bases__:
            yield from _lines(each, listed, depth + 1)
