"""The base of all suites: its tests stand, and what cannot pass says why."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st


class Suite:
    """Tests to inherit. A subclass gives attributes and factories, and changes no test.

    A subclass that overrides or deletes a test is refused when it is defined; one that is
    changed later fails ``test_the_kit_is_whole``. Tests of its own are welcome.

    Attributes:
        xfail: tests that cannot pass yet, each with the reason: ``{"test_name": "why"}``, or
            ``{"test_name[case]": "why"}`` for one case. Such a test fails when it passes.

    Example:
        >>> from mplang_testing import CommunicatorSuite
        >>> class TestMine(CommunicatorSuite):
        ...     xfail = {"test_big_values_arrive": "frames of 1 MiB at most, see issue 12"}
        >>> class TestTheirs(CommunicatorSuite):
        ...     test_big_values_arrive = None
        Traceback (most recent call last):
        TypeError: TestTheirs changes test_big_values_arrive, which the kit promises ...
    """

    xfail: ClassVar[Mapping[str, str]] = {}
    promised: ClassVar[Mapping[str, Any]] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __init_subclass__(cls, *, kit: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        promised: dict[str, Any] = {}
        for base in cls.__mro__[:0:-1]:
            promised |= vars(base).get("promised", {})
        if kit:
            promised |= _contract(cls)
        cls.promised = promised
        cls._refuse_changes()
        _check_xfail(cls)

    @classmethod
    def _refuse_changes(cls) -> None:
        changed = [
            name
            for name, item in cls.promised.items()
            if inspect.getattr_static(cls, name, None) is not item
        ]
        if changed:
            raise TypeError(
                f"{cls.__name__} changes {', '.join(sorted(changed))}, which the kit promises for "
                "every plugin. Leave it as it is; where it cannot pass yet, say so by "
                f"xfail = {{{sorted(changed)[0]!r}: 'the reason'}}"
            )

    def cases(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the cases of each argument that tests take, by name of the case."""
        return {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test once per case."""
        for argument, cases in self.cases().items():
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, list(cases.values()), ids=list(cases))

    @pytest.fixture(autouse=True)
    def _expected_to_fail(self, request: pytest.FixtureRequest) -> None:
        test = getattr(request.node, "originalname", request.node.name)
        reason = self.xfail.get(request.node.name) or self.xfail.get(test)
        if reason:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))

    def test_the_kit_is_whole(self) -> None:
        """No test of the kit was overridden, deleted or replaced."""
        try:
            self._refuse_changes()
        except TypeError as error:
            pytest.fail(str(error), pytrace=False)


def _contract(cls: type) -> dict[str, Any]:
    """What stands: the tests, and what they are made of."""
    kept = ("cases", "pytest_generate_tests")
    return {
        name: item
        for name, item in vars(cls).items()
        if name.startswith("test_")
        or name in kept
        or (name.startswith("_") and not name.startswith("__"))
    }


Suite.promised = _contract(Suite)


def _check_xfail(cls: type[Suite]) -> None:
    for name, reason in cls.xfail.items():
        test = name.partition("[")[0]
        if test == "test_the_kit_is_whole" or not test.startswith("test_"):
            raise TypeError(f"{cls.__name__}.xfail names {name!r}, which cannot be left to fail")
        if not hasattr(cls, test):
            raise TypeError(f"{cls.__name__}.xfail names {name!r}; there is no such test")
        if not isinstance(reason, str) or not reason.strip():
            raise TypeError(f"{cls.__name__}.xfail gives no reason for {name!r}")


def complain(what: str, *, expected: object, got: object, fix: str) -> NoReturn:
    """Fail the test that runs now, with all that an author needs to know."""
    text = f"{what}\n  expected: {expected}\n  got:      {got}\n  to do:    {fix}"
    raise pytest.fail.Exception(text, pytrace=False) from None


def numbered(names: list[str]) -> list[str]:
    """Return the names, such that none is there twice: ``a, b, a`` is ``a, b, a-2``."""
    return [
        f"{name}-{names[: i + 1].count(name)}" if name in names[:i] else name
        for i, name in enumerate(names)
    ]


def for_all(drawn: st.SearchStrategy[Any], check: Callable[[Any], None], examples: int) -> None:
    """Call a check with random values, the same ones in no two runs.

    Args:
        drawn: the values.
        check: fails for a wrong one, which is made smaller then.
        examples: how many.
    """

    @settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(drawn)
    def run(value: Any) -> None:
        check(value)

    run()
