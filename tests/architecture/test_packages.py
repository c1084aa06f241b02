"""The packages agree on their version, license, authors and the like, and links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packages import EXAMPLES, PACKAGES, PUBLISHED, ROOT, label, pyproject

SHARED = ("license", "license-files", "authors", "keywords", "urls")
PRIVATE = "Private :: Do Not Upload"
VERSION = "Programming Language :: Python :: 3."
LINK = re.compile(r"\]\(([^)\s]+)\)")
DOCUMENTS = sorted(
    path.relative_to(ROOT)
    for pattern in ("*.md", "docs/**/*.md", "changes/*.md", "plugins/*/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
    if path.parent.name != "site"  # whose links are those of the site, which Sphinx follows
)


def project(package: Path) -> dict:
    """Return the metadata of a package."""
    return pyproject(package)["project"]


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_metadata_are_those_of_the_core(package):
    mine, core = project(package), project(ROOT)
    assert mine["name"] == label(package)
    assert {field: mine[field] for field in SHARED} == {field: core[field] for field in SHARED}
    assert pyproject(package)["build-system"] == pyproject(ROOT)["build-system"]
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_the_version_stands_in_the_core_only(package):
    assert sorted(project(package)["dynamic"]) == ["readme", "version"]
    path = package / pyproject(package)["tool"]["hatch"]["version"]["path"]
    assert path.resolve() == ROOT / "mplang_core" / "__init__.py"


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_classifiers_differ_in_versions_of_python_only(package):
    mine, core = (set(project(each)["classifiers"]) for each in (package, ROOT))
    others = {each for each in mine if not each.startswith(VERSION)} - {PRIVATE}
    assert others == {each for each in core if not each.startswith(VERSION)}
    assert (PRIVATE in mine) == (package in EXAMPLES)
    assert sorted(mine) == [*project(package)["classifiers"]]


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_classifiers_name_the_versions_of_python_that_are_allowed(package):
    minors = {int(c.removeprefix(VERSION)) for c in project(package)["classifiers"] if VERSION in c}
    bound = re.fullmatch(r">=3\.(\d+)(?:,<3\.(\d+))?", project(package)["requires-python"])
    assert minors == set(range(int(bound[1]), int(bound[2] or 14)))


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_packages_depend_on_each_other_within_a_minor_version(package):
    from packaging.version import Version

    import mplang_core

    version = Version(mplang_core.__version__)
    bounds = f">={version.major}.{version.minor},<{version.major}.{version.minor + 1}"
    groups = project(package).get("optional-dependencies", {}).values()
    for line in [*project(package)["dependencies"], *(line for group in groups for line in group)]:
        if line.startswith("mplang-") and "[" not in line:
            assert line.endswith(bounds)


def test_links_lead_to_files():
    broken = []
    for path in DOCUMENTS:
        text = re.sub(r"^```.*?^```", "", (ROOT / path).read_text(), flags=re.MULTILINE | re.DOTALL)
        targets = [each for each in LINK.findall(text) if not re.match(r"\w+:|#", each)]
        for target in targets:
            if not ((ROOT / path).parent / target.partition("#")[0]).exists():
                broken.append(f"{path}: {target}")
    assert broken == []


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_links_of_a_package_index_lead_to_files(package):
    """The README as its metadata have it: each link is absolute, and to a file that is there."""
    hook = pyproject(package)["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = (package / "README.md").read_text(encoding="utf-8")
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    base = f"{project(ROOT)['urls']['Source']}/blob/v$HFPR_VERSION/"
    for target in LINK.findall(text):
        assert re.match(r"\w+:|#", target), target
        if target.startswith(base):
            path = target.removeprefix(base).partition("#")[0]
            assert ".." not in path
            assert (ROOT / path).exists(), target


def test_published_packages_are_those_of_their_page():
    text = (ROOT / "docs" / "packages.md").read_text(encoding="utf-8")
    assert [label(each) for each in PUBLISHED if f"`{label(each)}`" not in text] == []
