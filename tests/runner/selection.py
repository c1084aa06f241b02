"""Plugin of pytest: choose a test with its parameters where pytest-repeat adds one more."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--only", action="append", metavar="TEST", help="leave out all other tests")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not named; ``f[a]`` names ``f[a-1-100]``, and ``f`` all of ``f[…]``."""
    names = config.getoption("only")
    if names:
        begins = tuple(
            begin
            for name in names
            for begin in (name.removesuffix("]") + "-", name + "[", name + "::")
        )
        items[:] = [
            each for each in items if each.nodeid in names or each.nodeid.startswith(begins)
        ]
