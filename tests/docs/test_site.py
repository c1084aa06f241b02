"""The site has each page, name, setting and environment variable; ``make docs`` builds it."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"

pytestmark = pytest.mark.needs("jax", "spu", "crypto", "ibis", "http", "hello", "grpc")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The source of the site, as it is written for Sphinx."""
    folder = tmp_path_factory.mktemp("site")
    sys.path.insert(0, str(SITE))
    try:
        import_module("assemble").assemble(folder)
    finally:
        sys.path.remove(str(SITE))
    return folder


def test_each_page_is_there_and_leads_to_pages(site):
    source = site / "source"
    for page in (*(ROOT / "docs").glob("*.md"), *(ROOT / "plugins").glob("*/README.md")):
        assert (source / page.relative_to(ROOT)).exists()
    for page in source.rglob("*.md"):
        for link in re.findall(r"\]\((?!\w+:|#)([^)\s#]+)", page.read_text()):
            assert (page.parent / link).resolve().exists(), f"{page}: {link}"


def test_a_link_that_leads_nowhere_is_told(site):
    assemble = sys.modules["assemble"]
    with pytest.raises(ValueError, match=r"docs/x\.md: the link no\.md leads nowhere"):
        assemble.with_links("[text](no.md)", Path("docs/x.md"), set())


def test_each_public_name_has_an_entry(site):
    names = sys.modules["name_pages"]
    written = "\n".join(page.read_text() for page in (site / "source/reference").glob("*.rst"))
    for file in names.PROMISED.glob("*.txt"):
        for name in names.names_of(file):
            assert re.search(rf":: {re.escape(name)}$|^``{name.rpartition('.')[2]}`` is", written,
                             re.MULTILINE) or ": module" in file.read_text(), name  # fmt: skip


def test_each_setting_of_a_worker_is_told(site):
    text = (site / "source/reference/worker.md").read_text()
    for name in ("`name` (str, required)", "`limits.memory`", "`timeouts.", "`tls`", "`quotas."):
        assert name in text
    assert ": …" not in text  # each has a text


def test_each_error_and_command_is_told(site):
    from mplang_core import errors

    told = (site / "source/reference/errors.md").read_text()
    assert all(f"**{name}**" in told for name in dir(errors) if name.endswith(("Error", "Warning")))
    commands = (site / "source/reference/commands.md").read_text()
    assert all(f"mplang {name}" in commands for name in ("review", "worker", "doctor", "run"))


def test_each_environment_variable_is_told():
    told = (ROOT / "docs" / "environment.md").read_text()
    sources = [*(ROOT / "mplang_core").rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")]
    found = {
        name for file in sources for name in re.findall(r'"(MPLANG_[A-Z_]+)"', file.read_text())
    }
    assert found
    assert found <= set(re.findall(r"`(MPLANG_[A-Z_]+)`", told))
