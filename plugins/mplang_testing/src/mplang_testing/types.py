"""What a type and its codec promise: nothing is lost, and nothing damaged gets in."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st

from mplang_core import BaseType, Form, Mask, MPType, Program, parse
from mplang_core.ext import (
    Graph,
    Operation,
    ParseError,
    Value,
    WireError,
    codecs,
    decode,
    encode,
    from_bytes,
    parse_base_type,
    parse_type,
    print_program,
    to_bytes,
    type_classes,
)
from mplang_testing import strategies
from mplang_testing.suite import Suite, complain

_Buffers = Sequence[bytes | memoryview]


class TypeSuite(Suite, kit=True):
    """A base type comes back from its parameters, from text and from bytes; so do its values.

    Attributes:
        kinds: types of the class, as a Hypothesis strategy.
        examples: how many of them each test tries.

    Example:
        >>> from mplang_testing import strategies
        >>> class TestTensors(TypeSuite):
        ...     kinds = strategies.tensor_types()
        ...
        ...     def values(self, kind):
        ...         return strategies.tensors_of(kind)
    """

    kinds: ClassVar[st.SearchStrategy[Any]]
    examples: ClassVar[int] = 50

    def values(self, kind: BaseType) -> st.SearchStrategy[Any] | None:
        """Return values of a type; or ``None`` if there is no making them without a run."""
        return None

    def same(self, one: Any, other: Any) -> bool:
        """Tell whether two values are the same."""
        if isinstance(one, np.ndarray):
            other = np.asarray(other)
            same = one.dtype == other.dtype and one.shape == other.shape
            return bool(same and one.tobytes() == other.tobytes())
        return bool(one == other)

    # -- the type

    def test_it_is_registered_as_a_frozen_class(self) -> None:
        """The parser finds it by its name; nobody can change it; it says how it may be read."""

        def check(kind: BaseType) -> None:
            cls, form = type(kind), cast(Any, kind.form)
            wrong = []
            if type_classes.get(kind.name) is not cls:
                wrong.append(f"{kind.name!r} is the name of {cls.__name__} (Dialect.types)")
            if not isinstance(form, Form):
                wrong.append("form is a Form")
            if not _is_frozen(kind):
                wrong.append("it is a frozen dataclass")
            if wrong:
                complain(
                    f"{cls.__name__} is no type as the core needs it",
                    expected="; ".join(wrong),
                    got=repr(kind),
                    fix="@dataclass(frozen=True, slots=True), and name it in mplang_dialects",
                )

        self._for_all(self.kinds, check)

    def test_equal_types_are_one(self) -> None:
        """Types that are equal have equal hashes and texts, others have other texts."""

        def check(pair: tuple[BaseType, BaseType]) -> None:
            one, other = pair
            same = one == other
            if same != (str(one) == str(other)) or (same and hash(one) != hash(other)):
                complain(
                    f"{type(one).__name__} has an equality of its own",
                    expected="equal types have equal hashes and texts, others other texts",
                    got=f"{one!r} and {other!r}: equal is {same}, texts {str(one)!r}, {other!s}",
                    fix="leave equality to the dataclass, and have params() give all fields",
                )

        self._for_all(st.tuples(self.kinds, self.kinds), check)
        self._for_all(self.kinds.map(lambda kind: (kind, _again(kind))), check)

    def test_it_comes_back_from_its_parameters(self) -> None:
        """``from_params(params())`` gives it back."""

        def check(kind: BaseType) -> None:
            _came_back("its parameters", kind, lambda: _again(kind))

        self._for_all(self.kinds, check)

    def test_it_comes_back_from_text_and_bytes(self) -> None:
        """It is found again in a program, as the type of a value and as an attribute."""

        def check(kind: BaseType) -> None:
            _came_back("its text", kind, lambda: parse_base_type(str(kind)))
            held = MPType(kind, Mask(5))
            _came_back("its text with a mask", held, lambda: parse_type(str(held)))
            program = _holding(kind)
            by_bytes = functools.partial(_through_bytes, program)
            by_text = functools.partial(_through_text, program)
            for how, again in (("a program's bytes", by_bytes), ("a program's text", by_text)):
                _came_back(how, (held, kind), again)

        self._for_all(self.kinds, check)

    def test_parameters_that_do_not_fit_are_refused(self) -> None:
        """Parameters come from the network: ``from_params`` raises ValueError or TypeError."""
        odd: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers(-2, 99)
        odd = odd | strategies.names | strategies.base_types() | strategies.masks()
        odd = odd | st.tuples(odd, odd)

        def check(drawn: tuple[BaseType, Sequence[Any], int]) -> None:
            kind, junk, where = drawn
            params = list(kind.params())
            params[where : where + 1] = junk
            try:
                again = type(kind).from_params(tuple(params))
            except (TypeError, ValueError):
                pass
            except Exception as error:
                _wrong_error(f"from_params({params!r})", "ValueError or TypeError", error)
            else:
                _came_back(
                    f"the parameters {params!r}, which it took", again, lambda: _again(again)
                )
            text = f"{kind.name}<{', '.join(map(_text, params))}>"
            try:
                parse_base_type(text)
            except ParseError:
                pass
            except Exception as error:
                _wrong_error(f"the text {text!r}", "ParseError", error)

        self._for_all(st.tuples(self.kinds, st.lists(odd, max_size=2), st.integers(0, 4)), check)

    # -- values

    def test_it_tells_its_values_from_others(self) -> None:
        """``mismatch`` is ``None`` for values of the type, and a reason for anything else."""

        def foreign(kind: BaseType) -> None:
            for value in (None, object(), "text", np.zeros((2, 9), "i1"), [kind], {}):
                try:
                    told = kind.mismatch(value)
                except Exception as error:
                    _wrong_error(f"mismatch of a {type(value).__name__}", "a reason", error)
                if not isinstance(told, str) or not told:
                    complain(
                        f"{kind} takes a {type(value).__name__} for its value",
                        expected="mismatch() gives a reason",
                        got=told,
                        fix="check the class of the value, and what it was made for",
                    )

        def own(kind: BaseType, value: Any) -> None:
            if kind.mismatch(value) is not None:
                complain(
                    f"{kind} refuses its own value",
                    expected="mismatch() gives None",
                    got=kind.mismatch(value),
                    fix="correct mismatch(), or values() of the suite",
                )

        self._for_all(self.kinds, foreign)
        self._for_values(own)

    def test_values_come_back(self) -> None:
        """What the codec writes, it reads; the header is plain data, the buffers are bytes."""

        def check(kind: BaseType, value: Any) -> None:
            header, buffers = encode(kind, value)
            _check_encoded(kind, header, buffers)
            sent = [bytes(buffer) for buffer in buffers]
            for form in (sent, [memoryview(buffer) for buffer in sent]):
                again = decode(kind, header, cast(_Buffers, form))
                if not self.same(value, again):
                    complain(
                        f"a value of {kind} does not survive its codec",
                        expected=repr(value),
                        got=repr(again),
                        fix="write all that the value is; or say what is the same by same()",
                    )

        self._for_values(check, coded=True)

    def test_damaged_headers_and_buffers_are_refused(self) -> None:
        """What is no value of the type is a WireError, and never another exception."""

        def check(kind: BaseType, value: Any) -> None:
            header, buffers = encode(kind, value)
            sent = [bytes(buffer) for buffer in buffers]
            for what, odd_header, odd_buffers, must in _damaged(dict(header), sent):
                try:
                    found = decode(kind, odd_header, cast(_Buffers, odd_buffers))
                except WireError:
                    continue
                except Exception as error:
                    _wrong_error(f"{kind} from {what}", "WireError", error)
                if must:
                    complain(
                        f"{kind} is read from {what}",
                        expected="WireError",
                        got=repr(found),
                        fix="have the codec check that it got what it writes, in number and kind",
                    )

        self._for_values(check, coded=True)

    def test_values_without_a_codec_stay(self) -> None:
        """Where a type has no codec, or the value is another type's, nothing is written."""

        def check(kind: BaseType, value: Any) -> None:
            what = f"a {type(value).__name__}"
            try:
                encode(kind, value)
            except WireError:
                return
            except Exception as error:
                _wrong_error(f"writing {what} as {kind}", "WireError", error)
            complain(
                f"{what} was written as {kind}",
                expected="WireError",
                got="it was written",
                fix="correct mismatch()",
            )

        self._for_all(self.kinds, lambda kind: check(kind, object()))
        self._for_values(check, coded=False)

    # --

    def _for_all(self, kinds: st.SearchStrategy[Any], check: Callable[[Any], None]) -> None:
        quiet = settings(
            max_examples=self.examples,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )

        @quiet
        @given(kinds)
        def run(drawn: Any) -> None:
            check(drawn)

        run()

    def _for_values(
        self, check: Callable[[BaseType, Any], None], *, coded: bool | None = None
    ) -> None:
        """Check values of types; only of those with a codec, or only of those without."""

        def with_value(kind: BaseType) -> st.SearchStrategy[Any]:
            values, has_codec = self.values(kind), kind.name in codecs
            if values is None and has_codec:
                complain(
                    f"values of {kind} have a codec that is not tested",
                    expected="values() of the suite gives some",
                    got=None,
                    fix="return a strategy, st.just(a value) at least",
                )
            if values is None or coded not in (None, has_codec):
                return st.none()
            return st.tuples(st.just(kind), values)

        def run(drawn: tuple[BaseType, Any] | None) -> None:
            if drawn is not None:
                check(*drawn)

        self._for_all(self.kinds.flatmap(with_value), run)


def _again(kind: BaseType) -> BaseType:
    return type(kind).from_params(kind.params())


def _text(param: Any) -> str:
    """Write a parameter as the printer would, whatever it is."""

    class _Any(BaseType):
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


def _holding(kind: BaseType) -> Program:
    value = Value(MPType(kind, Mask(5)))
    op = Operation("kit.any", (value,), (), {"kind": kind})
    return Program("holding", Mask(7), Graph([value], [op], [value]))


def _through_bytes(program: Program) -> tuple[Any, Any]:
    return _held(from_bytes(to_bytes(program)))


def _through_text(program: Program) -> tuple[Any, Any]:
    return _held(parse(print_program(program)))


def _held(program: Program) -> tuple[Any, Any]:
    return program.graph.inputs[0].type, program.graph.ops[0].attrs["kind"]


def _came_back(how: str, kind: Any, make: Callable[[], Any]) -> None:
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


def _wrong_error(what: str, expected: str, error: Exception) -> None:
    complain(
        f"{what} ends in a wrong error",
        expected=expected,
        got=f"{type(error).__name__}: {error}",
        fix="what comes from the network is checked before it is used; raise ValueError or "
        "TypeError with the reason, which the core turns into its own",
    )


def _check_encoded(kind: BaseType, header: Mapping[str, Any], buffers: Sequence[Any]) -> None:
    wrong = [item for item in buffers if not isinstance(item, bytes | memoryview)]
    if not _is_plain(dict(header)) or wrong:
        complain(
            f"the codec of {kind} writes what cannot be sent",
            expected="a header of str, int, float, bool and lists of these; buffers of bytes",
            got=f"{header!r} and {[type(item).__name__ for item in buffers]}",
            fix="put data into buffers, and small facts into the header",
        )


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (str, int, float, bool)


def _damaged(
    header: dict[str, Any], buffers: list[bytes]
) -> Iterator[tuple[str, dict[str, Any], Sequence[Any], bool]]:
    """Yield a damage, the header and buffers with it, and whether it must be noticed."""
    odd: Any
    for name in header:
        rest = {key: header[key] for key in header if key != name}
        yield f"a header without {name!r}", rest, buffers, True
        for odd in (None, -1, 2**40, "", "no such thing", [], ["x"], [-1], [2**40] * 9, {}, 0.5):
            if odd != header[name]:
                yield f"a header with {name!r} = {odd!r}", {**rest, name: odd}, buffers, False
    for odd in (None, 5, [b"list"]):
        yield f"a {type(odd).__name__} for its header", odd, buffers, bool(header)
        if not isinstance(odd, list):
            yield f"a {type(odd).__name__} for its buffers", header, odd, True
    yield "more buffers than it has", header, [*buffers, b"more"] * 3, bool(buffers)
    if not buffers:
        return
    yield "no buffers", header, [], True
    for i, data in enumerate(buffers):
        before, after = buffers[:i], buffers[i + 1 :]
        for odd in (None, 5, "text", [1, 2], object()):
            what = f"a {type(odd).__name__} as buffer {i}"
            yield what, header, [*before, odd, *after], True
        for odd in (b"", data[:-1], data + b"\0", data[: len(data) // 2], b"\xff" * len(data)):
            if odd != data:
                what = f"buffer {i} of {len(odd)} bytes in place of {len(data)}"
                yield what, header, [*before, odd, *after], False
