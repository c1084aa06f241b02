"""Settings of the site; ``make docs`` builds it from the pages that ``assemble.py`` collects."""

from __future__ import annotations

import datetime
from pathlib import Path

import mplang_core

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
nb_execution_timeout = 300
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
python_maximum_signature_line_length = 76
toc_object_entries_show_parents = "hide"

# -- appearance: nothing is loaded from elsewhere

html_theme = "furo"
html_title = f"mplang {release}"
html_static_path = ["static"]
html_extra_path = [str(Path(__file__).parents[2] / ".build" / "site" / "extra")]
html_favicon = "static/icon.svg"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"
