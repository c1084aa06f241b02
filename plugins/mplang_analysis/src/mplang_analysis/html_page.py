"""HTML of reports: a page of its own, or a fragment that a notebook shows in its own colors."""

from __future__ import annotations

import html
from base64 import b64encode
from hashlib import sha256

ALERT = "var(--mplang-alert, #c0140c)"
"""Color of what is to be read first, in attributes of SVG and in styles."""

_LIGHT, _DARK = "#b3140c", "#ff8f84"

STYLE = f"""
.mp-shown {{ --mplang-alert: {_LIGHT}; container-type: inline-size; line-height: 1.4; }}
@supports (color: light-dark(red, red)) {{
  .mp-shown {{ --mplang-alert: light-dark({_LIGHT}, {_DARK}); }}
}}
:is([data-jp-theme-light="false"], [data-theme="dark"], .vscode-dark) .mp-shown
  {{ --mplang-alert: {_DARK}; }}
:is([data-jp-theme-light="true"], [data-theme="light"], .vscode-light) .mp-shown
  {{ --mplang-alert: {_LIGHT}; }}
.mp-shown section {{ overflow-x: auto; margin: .5em 0; }}
.mp-shown table {{ border-collapse: collapse; margin: .5em 0; color: inherit; font-size: inherit; }}
.mp-shown caption {{ text-align: left; font-weight: bold; padding: .3em 0; color: inherit; }}
.mp-shown th, .mp-shown td {{ text-align: left; vertical-align: top; padding: .2em .8em;
  border: 0; border-bottom: 1px solid #8886; background: none; white-space: normal; }}
.mp-shown .number {{ text-align: right; font-variant-numeric: tabular-nums; }}
.mp-shown .alert, .mp-shown tr.alert td {{ color: var(--mplang-alert); font-weight: bold; }}
.mp-shown tr.alert td:first-child {{ border-left: 4px solid var(--mplang-alert); }}
@container (max-width: 600px) {{
  .mp-shown table {{ font-size: .9em; }}
  .mp-shown th, .mp-shown td {{ padding: .2em .4em; }}
}}
.mp-shown summary {{ cursor: pointer; }}
.mp-shown pre {{ overflow-x: auto; margin: .3em 0; background: none; color: inherit; }}
.mp-shown svg {{ display: block; max-width: 100%; height: auto; }}
.mp-shown svg.narrow {{ display: none; }}
@container (max-width: 900px) {{
  .mp-shown svg.wide {{ display: none; }}
  .mp-shown svg.narrow {{ display: block; }}
}}
"""
"""Style of a fragment, whose ink is that of the page around it.

Red comes with bold type and a bar, for who does not see it. Whether the page is dark is told by
its ``color-scheme``, or by what notebooks and themes write on it; a system that is dark around a
page that is not would give pale letters on white.
"""

PAGE_STYLE = (
    STYLE
    + """
:root { color-scheme: light dark; }
body { font: 14px system-ui, sans-serif; margin: 2em; }
@media (max-width: 600px) { body { margin: 1em; } }
"""
)

SVG_STYLE = f"""
svg {{ color: #222222; --mplang-alert: {_LIGHT}; }}
@media (prefers-color-scheme: dark) {{ svg {{ color: #dddddd; --mplang-alert: {_DARK}; }} }}
"""
"""Style of a picture that is a document of its own."""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'">
<title>{title}</title><style>{style}</style></head>
<body class="mp-shown">{body}</body></html>
"""
"""A page that loads nothing, and has no script and no style but its own."""


def page(title: str, body: str) -> str:
    """Return a page of its own, which loads nothing.

    Args:
        title: its title, not escaped yet.
        body: elements of HTML.

    Example:
        >>> "script-src" in page("a report", "<p>It loads nothing.</p>")
        False
    """
    hashed = b64encode(sha256(PAGE_STYLE.encode()).digest()).decode()
    return _PAGE.format(title=html.escape(title), style=PAGE_STYLE, hash=hashed, body=body)


def fragment(body: str) -> str:
    """Return elements of HTML with the style that they need, as the output of a cell."""
    return f'<div class="mp-shown"><style>{STYLE}</style>{body}</div>'
