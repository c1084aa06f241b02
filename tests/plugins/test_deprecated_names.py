"""A deprecated name goes on working, and warns at the line that uses it."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from mplang_core.ext import deprecated_names

MODULE = """
from mplang_core.ext import deprecated_names

renamed = deprecated_names(__name__, {"Table": "mplang_core.TableType"}, until="9.0")

def __getattr__(name):
    return "lazy" if name == "other" else renamed(name)
"""


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """Make a package with a deprecated name, and one that is imported lazily."""
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "__init__.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    yield tmp_path
    sys.modules.pop("acme", None)


@pytest.mark.parametrize("use", ["from acme import Table", "import acme; acme.Table"])
def test_it_is_shown_at_the_users_line(acme, use):
    """Also to who runs a script without options, where Python hides other deprecations."""
    script = acme / "script.py"
    script.write_text(f"import sys\n{use}\n{use}\n")
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    text = "acme.Table is deprecated, and gone in 9.0: use mplang_core.TableType"
    shown = [line for line in told.stderr.splitlines() if "Warning" in line]
    assert shown == [f"{script}:{line}: DeprecationWarning: {text}" for line in (2, 3)]


def test_it_is_what_the_new_name_is(acme):
    import acme

    import mplang_core as mp

    with pytest.deprecated_call():
        assert acme.Table is mp.TableType
    assert acme.other == "lazy"
    with pytest.raises(AttributeError, match="module 'acme' has no attribute 'missing'"):
        _ = acme.missing


def test_a_module_may_have_no_other_names():
    find = deprecated_names("acme", {"old": "math.pi"}, until="9.0")
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        assert find("old") == pytest.approx(3.14159)
    assert [each.filename for each in shown] == [__file__]
