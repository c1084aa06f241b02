"""What a type and its codec promise: nothing is lost, and nothing damaged gets in."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st

from mplang_core import BaseType, Form, Mask, MPType, Program, parse
from mplang_core.ext import (
    Graph,
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
)
from mplang_testing.attributes import AttributeSuite, came_back, wrong_error
from mplang_testing.sample import codec_of
from mplang_testing.suite import complain, for_all

HEADER = 256  # bytes that a codec may write besides
MAX_NUMBER = 1024  # bytes of a number whose decimal digits Python writes without being asked to
SECRET = 8  # characters of what does not stand in a text by chance

_Buffers = Sequence[bytes | memoryview]


class TypeSuite(AttributeSuite, kit=True):
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

    def values(self, kind: BaseType) -> st.SearchStrategy[Any] | None:
        """Return values of a type; or ``None`` if there is no making them without a run."""
        return None

    def same(self, one: Any, other: Any) -> bool:
        """Return whether two values are the same."""
        if isinstance(one, np.ndarray):
            other = np.asarray(other)
            same = one.dtype == other.dtype and one.shape == other.shape
            return bool(same and one.tobytes() == other.tobytes())
        return bool(one == other)

    # -- the type

    def test_it_says_how_its_values_can_be_read(self) -> None:
        """Its form is a Form: disclosure goes by it."""

        def check(kind: BaseType) -> None:
            form: Any = kind.form
            if not isinstance(form, Form):
                complain(
                    f"{type(kind).__name__} does not say how its values can be read",
                    expected="form is a Form",
                    got=repr(form),
                    fix="form: ClassVar[Form] = Form.PLAIN, or what is true of its holder",
                )

        for_all(self.kinds, check, self.examples)

    def test_it_is_the_type_of_a_value(self) -> None:
        """A value in a program has it again after text and bytes."""

        def check(kind: BaseType) -> None:
            held = MPType(kind, Mask(5))
            value = Value(held)
            program = Program("holding", Mask(7), Graph([value], [], [value]))
            came_back("its text", kind, lambda: parse_base_type(str(kind)))
            came_back("its text with a mask", held, lambda: parse_type(str(held)))
            for how, again in (
                ("a program's bytes", from_bytes(to_bytes(program))),
                ("a program's text", parse(print_program(program))),
            ):
                came_back(how, held, functools.partial(_held, again))

        for_all(self.kinds, check, self.examples)

    # -- values

    def test_it_tells_its_values_from_others(self) -> None:
        """``mismatch`` is ``None`` for values of the type, and a reason for anything else."""

        def foreign(kind: BaseType) -> None:
            for value in (None, object(), "text", np.zeros((2, 9), "i1"), [kind], {}):
                try:
                    told = kind.mismatch(value)
                except Exception as error:
                    wrong_error(f"mismatch of a {type(value).__name__}", "a reason", error)
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

        for_all(self.kinds, foreign, self.examples)
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
        """What is not a value of the type is a WireError, and never another exception."""

        def check(kind: BaseType, value: Any) -> None:
            header, buffers = encode(kind, value)
            sent = [bytes(buffer) for buffer in buffers]
            for what, odd_header, odd_buffers, must in _damaged(dict(header), sent):
                try:
                    found = decode(kind, odd_header, cast(_Buffers, odd_buffers))
                except WireError:
                    continue
                except Exception as error:
                    wrong_error(f"{kind} from {what}", "WireError", error)
                if must:
                    complain(
                        f"{kind} is read from {what}",
                        expected="WireError",
                        got=repr(found),
                        fix="have the codec check that it got what it writes, in number and kind",
                    )

        self._for_values(check, coded=True)

    def test_its_size_is_what_is_written(self) -> None:
        """``nbytes`` of the type, if it has one, is not less than its codec writes.

        Costs and disclosures go by it. A value may take less, as packed bits do.
        """

        def check(kind: BaseType, value: Any) -> None:
            told: Any = getattr(kind, "nbytes", None)
            if not isinstance(told, int):
                return
            written = sum(memoryview(buffer).nbytes for buffer in encode(kind, value)[1])
            if written > told + max(HEADER, told // 10):
                complain(
                    f"{kind} is larger than it says",
                    expected=f"buffers of {told} bytes, as nbytes says; besides up to {HEADER} "
                    "bytes, or a tenth",
                    got=f"{written} bytes",
                    fix="correct nbytes of the type, or leave it out if sizes depend on the value",
                )

        self._for_values(check, coded=True)

    def test_secrets_are_not_shown(self) -> None:
        """The text of a key or of a share does not show all that it consists of."""

        def check(kind: BaseType, value: Any) -> None:
            parts = _parts(kind, value)
            if kind.form in (Form.KEY, Form.SHARE) and parts and _shows(repr(value), parts):
                complain(
                    f"the text of a value of {kind} shows its bytes",
                    expected="none of the data of a key or of a share: texts get into logs",
                    got=repr(value)[:200],
                    fix="secret: bytes = field(repr=False)",
                )

        self._for_values(check)

    def test_values_without_a_codec_stay(self) -> None:
        """Where a type has no codec, or the value is another type's, nothing is written."""

        def check(kind: BaseType, value: Any) -> None:
            what = f"a {type(value).__name__}"
            try:
                encode(kind, value)
            except WireError:
                return
            except Exception as error:
                wrong_error(f"writing {what} as {kind}", "WireError", error)
            complain(
                f"{what} was written as {kind}",
                expected="WireError",
                got="it was written",
                fix="correct mismatch()",
            )

        for_all(self.kinds, lambda kind: check(kind, object()), self.examples)
        self._for_values(check, coded=False)

    # --

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

        for_all(self.kinds.flatmap(with_value), run, self.examples)


def _held(program: Program) -> Any:
    return program.graph.inputs[0].type


def _check_encoded(kind: BaseType, header: Mapping[str, Any], buffers: Sequence[Any]) -> None:
    wrong = [item for item in buffers if not isinstance(item, bytes | memoryview)]
    if not _is_plain(dict(header)) or wrong:
        complain(
            f"the codec of {kind} writes what cannot be sent",
            expected="a header of str, int, float, bool and lists of these; buffers of bytes",
            got=f"{header!r} and {[type(item).__name__ for item in buffers]}",
            fix="put data into buffers, and small facts into the header",
        )


def _parts(kind: BaseType, value: Any) -> list[Any]:
    """Return the data that a value consists of: what a codec writes, or its fields.

    Parts whose forms are all short are left out. If a field is none of plain data, nothing is known
    of the value.
    """
    codec = codec_of(kind)
    if codec is not None:
        parts: list[Any] = [bytes(buffer) for buffer in codec.encode(value)[1]]
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
        parts = [part for part in parts if not isinstance(part, BaseType)]
    else:
        parts = []
    if not all(isinstance(part, bytes | int | str) for part in parts):
        return []
    return [part for part in parts if _written(part)]


def _shows(text: str, parts: Sequence[Any]) -> bool:
    """Return whether a text has all of the parts, in decimal, in hex, or as Python writes them."""
    return all(any(each in text for each in _written(part)) for part in parts)


def _written(part: Any) -> list[str]:
    """Return how a part may stand in a text, in forms that do not stand there by chance."""
    if isinstance(part, bytes):
        data = bytes(part)  # a subclass may write itself in another way
        forms = [data.hex(), repr(data)[2:-1], str(list(data))[1:-1]]
        if len(data) <= MAX_NUMBER:
            forms.append(str(int.from_bytes(data)))
    else:
        forms = [str(part), hex(part)] if isinstance(part, int) else [part, repr(part)[1:-1]]
    return [form for form in forms if len(form) >= SECRET]


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
