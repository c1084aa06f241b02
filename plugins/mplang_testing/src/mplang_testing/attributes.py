"""What attributes of ops promise, and types with them: nothing is lost, nothing damaged gets in."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from hypothesis import strategies as st

from mplang_core import Attribute, Mask, MPType, Program, TensorType, parse
from mplang_core.ext import (
    Graph,
    Operation,
    ParseError,
    Value,
    from_bytes,
    parse_attribute,
    print_program,
    to_bytes,
    type_classes,
)
from mplang_testing import strategies
from mplang_testing.suite import Suite, complain, for_all


class AttributeSuite(Suite, kit=True):
    """An attribute, or a type, comes back from its parameters, from text and from bytes.

    Attributes:
        kinds: instances of the class, as a Hypothesis strategy.
        examples: how many of them each test tries.

    Example:
        >>> from mplang_testing import strategies
        >>> class TestTensorTypes(AttributeSuite):
        ...     kinds = strategies.tensor_types()
    """

    kinds: ClassVar[st.SearchStrategy[Any]]
    examples: ClassVar[int] = 50

    def test_it_is_registered_as_a_frozen_class(self) -> None:
        """The parser finds it by its name; nobody can change it."""

        def check(kind: Attribute) -> None:
            cls = type(kind)
            wrong = []
            if type_classes.get(kind.name) is not cls:
                wrong.append(f"{kind.name!r} is the name of {cls.__name__} in its Dialect")
            if not _is_frozen(kind):
                wrong.append("it is a frozen dataclass")
            if wrong:
                complain(
                    f"{cls.__name__} is nothing that programs can have",
                    expected="; ".join(wrong),
                    got=repr(kind),
                    fix="@dataclass(frozen=True, slots=True), and name it in mplang_dialects",
                )

        for_all(self.kinds, check, self.examples)

    def test_equal_types_are_one(self) -> None:
        """What is equal has equal hashes and texts, what is not has other texts."""

        def check(pair: tuple[Attribute, Attribute]) -> None:
            one, other = pair
            same = one == other
            if same != (str(one) == str(other)) or (same and hash(one) != hash(other)):
                complain(
                    f"{type(one).__name__} defines its own equality",
                    expected="what is equal has equal hashes and texts, others other texts",
                    got=f"{one!r} and {other!r}: equal is {same}, texts {str(one)!r}, {other!s}",
                    fix="leave equality to the dataclass, and have params() give all fields",
                )

        for_all(st.tuples(self.kinds, self.kinds), check, self.examples)
        for_all(self.kinds.map(lambda kind: (kind, again_of(kind))), check, self.examples)

    def test_it_comes_back_from_its_parameters(self) -> None:
        """``from_params(params())`` gives it back."""

        def check(kind: Attribute) -> None:
            came_back("its parameters", kind, lambda: again_of(kind))

        for_all(self.kinds, check, self.examples)

    def test_it_comes_back_from_text_and_bytes(self) -> None:
        """It is found again in a program, as an attribute of an op."""

        def check(kind: Attribute) -> None:
            came_back("its text", kind, lambda: parse_attribute(str(kind)))
            program = _holding(kind)
            for how, again in (
                ("a program's bytes", from_bytes(to_bytes(program))),
                ("a program's text", parse(print_program(program))),
            ):
                came_back(how, kind, functools.partial(_held, again))

        for_all(self.kinds, check, self.examples)

    def test_parameters_are_taken_as_they_are(self) -> None:
        """``from_params`` converts nothing: what it takes, ``params()`` gives back."""

        def check(drawn: tuple[Attribute, tuple[Any, ...]]) -> None:
            kind, params = drawn
            try:
                again = type(kind).from_params(params)
            except (TypeError, ValueError):
                return
            except Exception as error:
                wrong_error(f"from_params({params!r})", "ValueError or TypeError", error)
            if not _is_exactly(tuple(again.params()), params):
                complain(
                    f"{type(kind).__name__} reads {params!r} as something else",
                    expected="ValueError or TypeError",
                    got=f"{again!r}, whose parameters are {again.params()!r}",
                    fix="check types, as in `if [type(each) for each in params] != [int, str]`; "
                    "int(…) and str(…) take what nobody wrote",
                )

        for_all(self.kinds.flatmap(_with_one_alike), check, self.examples)

    def test_parameters_that_do_not_fit_are_refused(self) -> None:
        """Parameters come from the network: ``from_params`` raises ValueError or TypeError."""
        odd: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers(-2, 99)
        odd = odd | strategies.names | strategies.base_types() | strategies.masks()
        odd = odd | st.tuples(odd, odd)

        def check(drawn: tuple[Attribute, Sequence[Any], int]) -> None:
            kind, junk, where = drawn
            params = list(kind.params())
            params[where : where + 1] = junk
            try:
                again = type(kind).from_params(tuple(params))
            except (TypeError, ValueError):
                pass
            except Exception as error:
                wrong_error(f"from_params({params!r})", "ValueError or TypeError", error)
            else:
                came_back(
                    f"the parameters {params!r}, which it took", again, lambda: again_of(again)
                )
            text = f"{kind.name}<{', '.join(map(_text, params))}>"
            try:
                parse_attribute(text)
            except ParseError:
                pass
            except Exception as error:
                wrong_error(f"the text {text!r}", "ParseError", error)

        for_all(
            st.tuples(self.kinds, st.lists(odd, max_size=2), st.integers(0, 4)),
            check,
            self.examples,
        )


def _alike(param: Any) -> st.SearchStrategy[Any]:
    """Return parameters that are nearly this one: what ``int()`` or ``str()`` makes the same."""
    match param:
        case bool():
            near: list[Any] = [int(param), str(param)]
        case int():
            wide = "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in str(param))
            near = [float(param), param + 0.7, str(param), wide, f" {param}"]
        case float():
            near = [str(param)]
        case str():
            near = [f" {param}", param.swapcase(), param.encode()]
        case tuple():
            return st.tuples(*map(_alike, param)) if param else st.just(())
        case _:
            near = [param]
    return st.sampled_from(near)


def _with_one_alike(kind: Attribute) -> st.SearchStrategy[tuple[Attribute, tuple[Any, ...]]]:
    """Return parameters of which one is nearly what it was."""
    params = tuple(kind.params())
    if not params:
        return st.just((kind, params))

    def changed(i: int) -> st.SearchStrategy[tuple[Attribute, tuple[Any, ...]]]:
        return _alike(params[i]).map(lambda near: (kind, (*params[:i], near, *params[i + 1 :])))

    return st.integers(0, len(params) - 1).flatmap(changed)


def _is_exactly(one: Any, other: Any) -> bool:
    """Return whether two parameters are equal and of the same types."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_is_exactly, one, other))
    return bool(one == other) or repr(one) == repr(other)  # NaN is itself


def again_of(kind: Attribute) -> Attribute:
    """Return what its class makes of its parameters."""
    return type(kind).from_params(kind.params())


def _text(param: Any) -> str:
    """Write a parameter as the printer would, whatever it is."""

    class _Any(Attribute):
        name = "any"

        def params(self) -> tuple[Any, ...]:
            return (param,)

        @classmethod
        def from_params(cls, params: Sequence[Any]) -> _Any:
            return cls()

    return str(_Any())[len("any<") : -1]


def _is_frozen(kind: Any) -> bool:
    if not dataclasses.is_dataclass(kind):
        return False
    for name in [*(field.name for field in dataclasses.fields(kind)), "anything_else"]:
        try:
            setattr(kind, name, None)
        except (AttributeError, TypeError):
            continue
        return False
    return True


def _holding(kind: Attribute) -> Program:
    value = Value(MPType(TensorType("f32"), Mask(5)))
    op = Operation("kit.any", (value,), (), {"kind": kind})
    return Program("holding", Mask(7), Graph([value], [op], [value]))


def _held(program: Program) -> Any:
    return program.graph.ops[0].attrs["kind"]


def came_back(how: str, kind: Any, make: Callable[[], Any]) -> None:
    """Check that something is what it was."""
    try:
        again = make()
    except Exception as error:
        again = f"{type(error).__name__}: {error}"
    if again != kind:
        complain(
            f"{kind!s} does not come back from {how}",
            expected=repr(kind),
            got=repr(again),
            fix="have params() give str, int, bool, None, Mask, types and tuples of these, and "
            "from_params() the type of exactly these",
        )


def wrong_error(what: str, expected: str, error: Exception) -> None:
    """Fail the test: what came from the network ended in an exception that nobody handles."""
    complain(
        f"{what} ends in a wrong error",
        expected=expected,
        got=f"{type(error).__name__}: {error}",
        fix="what comes from the network is checked before it is used; raise ValueError or "
        "TypeError with the reason, which the core turns into its own",
    )
