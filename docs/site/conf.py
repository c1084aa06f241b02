"""Settings of the site; ``make docs`` builds it from the pages that ``assemble.py`` collects."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from docutils import nodes
from nbclient import client
from sphinx.application import Sphinx
from traitlets import Bool

import mplang_core

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "runner"))
from cells import environment

SITE = Path(__file__).parents[2] / ".build" / "site"

project = "mplang"
author = "mplang developers"
copyright = f"{datetime.date.today().year}, {author}"
version = release = mplang_core.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "myst_nb",
    "sphinx_copybutton",
]

# -- pages

source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
root_doc = "index"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_merge_streams = True
suppress_warnings = [
    "misc.highlighting_failure",  # blocks whose language is quoted output
    "ref.python",  # a link to a name that several packages have leads to the first
]

# -- reference

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autosummary_generate = False
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

# -- appearance: nothing is loaded from elsewhere

html_theme = "furo"
html_title = f"mplang {release}"
html_static_path = ["static"]
templates_path = ["templates"]
html_extra_path = [str(SITE / "extra")]
html_favicon = "static/icon.svg"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"

# -- cells of shells and files, which are shown without the words of notebooks

LANGUAGES: Mapping[str, str] = {".py": "python", ".sh": "bash", ".yaml": "yaml"}
os.environ |= environment(SITE / "commands")


class _Client(client.NotebookClient):
    """Client that joins what a command prints, which comes in parts of lines."""

    coalesce_streams = Bool(True)


client.NotebookClient = _Client


def show_cells(app: Sphinx, document: nodes.document) -> None:
    """Show commands as such, and files under their names."""
    for block in list(document.findall(nodes.literal_block)):
        head, _, body = block.astext().partition("\n")
        magic, *options = head.split(" ")
        if magic == "%%bash":
            block.replace_self(nodes.literal_block(body, body, language="bash"))
        elif magic == "%%writefile":
            *append, name = options
            language, body = LANGUAGES.get(Path(name).suffix, "text"), body.strip("\n")
            text = nodes.literal_block(body, body, language=language)
            where = ", at its end" if append else ""
            title = nodes.caption("", "", nodes.literal("", name), nodes.Text(where))
            cell = block.parent.parent
            cell[1:] = []  # that it was written
            wrapper = nodes.container("", title, text, literal_block=True)
            wrapper["classes"].append("literal-block-wrapper")
            document.note_implicit_target(wrapper)
            block.replace_self(wrapper)


# -- for who cannot see or point: what the theme leaves out

ADDED: Mapping[str, str] = {
    'role="heading"': 'role="heading" aria-level="2"',
    '<aside class="sidebar-drawer"': '<aside aria-label="All pages" class="sidebar-drawer"',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',  # it scrolls, by keys, too
    '<table class="docutils': '<table tabindex="0" class="docutils',
}


def add_to_pages(app: Sphinx, error: Exception | None) -> None:
    """Write into the pages what the theme leaves out."""
    for page in () if error else Path(app.outdir).rglob("*.html"):
        text = page.read_text()
        for old, new in ADDED.items():
            text = text.replace(old, new)
        page.write_text(text)


def setup(app: Sphinx) -> None:
    """Have the pages completed."""
    app.connect("doctree-read", show_cells)
    app.connect("build-finished", add_to_pages)
