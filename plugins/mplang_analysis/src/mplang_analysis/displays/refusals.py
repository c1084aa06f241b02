"""Displays of refusals: what an owner's rules lack, and what can be changed."""

from __future__ import annotations

import html
from collections.abc import Iterable

from mplang_analysis.html_page import fragment
from mplang_analysis.html_text import isolated
from mplang_core.ext import Advice, Refusal, printable


def show(refusal: Refusal) -> str:
    """Return a refusal as HTML.

    Example:
        >>> "no-rule" in show(Refusal("bank", "no-rule", "run", "Program"))
        True
    """
    return fragment(_body(refusal))


def show_all(refusals: Iterable[Refusal]) -> str:
    """Return several refusals as HTML, one below the other."""
    return fragment("<hr>".join(map(_body, refusals)))


def _body(refusal: Refusal) -> str:
    title = str(refusal).splitlines()[0]
    cells = "".join(
        f"<tr><th>{name}</th><td>{isolated(text)}</td></tr>"
        for name, text in refusal.details().items()
    )
    items = "".join(map(_item, refusal.advice))
    advice = f"<p>What can be changed:</p><ul>{items}</ul>" if items else ""
    return f'<p class="alert">{isolated(title)}</p><table>{cells}</table>{advice}'


def _item(advice: Advice) -> str:
    change = html.escape(printable(advice.change, keep="\n"))
    text = f"{isolated(printable(advice.text))}; {isolated(advice.heading)}"
    return f"<li>{text}{f':<pre>{change}</pre>' if change else ''}</li>"
