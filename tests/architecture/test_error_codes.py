"""Each error has a code, each code a page, and each page is of a code that something raises."""

from __future__ import annotations

import inspect

from error_codes import codes_of_classes, sites
from mplang_cli.explain import error_pages

from mplang_core import errors

BASES = {"MPLangError", "FeError", "IRError"}
"""Bases that nothing raises."""


def warned():
    """Return the codes of warnings."""
    found = (each for _, each in inspect.getmembers(errors, inspect.isclass))
    return {each.code for each in found if issubclass(each, UserWarning)}


def test_each_class_of_errors_has_a_code():
    assert {name for name, code in codes_of_classes().items() if not code} == {"MPLangError"}


def test_each_raise_site_has_a_code():
    found = list(sites())
    assert len(found) > 800
    assert [site.place for site in found if not site.code or site.error in BASES] == []


def test_codes_and_pages_belong_together():
    used = {site.code for site in sites()} | warned()
    assert sorted(used) == sorted(error_pages())
