"""What feops refuse: functions that fail, wrong arguments, configurations, devices, attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mplang_core import (
    Attribute,
    ClusterSpec,
    Form,
    Mask,
    MPLangError,
    Program,
    TableType,
    TensorType,
    TraceContext,
    device,
    fe_materialize,
    invoke,
    registry,
    verify,
    with_ctx,
)
from mplang_core.ext import (
    AttrValue,
    AttrVisitor,
    FeCapabilityError,
    FeConfigError,
    FeMeta,
    Operand,
    Operation,
    TraceError,
    VerifyError,
    meta_of,
    normalize,
)
from mplang_testing import users_file
from mplang_testing.sample import Sample
from mplang_testing.suite import Suite, complain
from mplang_testing.vault import vault


class RefusalSuite(Suite, kit=True):
    """What is wrong ends in an error that says so; a part of :class:`~mplang_testing.FeopSuite`."""

    def test_an_error_of_a_function_has_its_line(self, sample: Sample) -> None:
        """A compiler names the user's line, of a function that raises or returns no value."""
        if not sample.is_compiler:
            return
        for function in (users_file.fails, users_file.gives_no_value):
            wrong = [registry.get(sample.op), function, *sample.stand_ins()[1:]]
            got = "it was compiled"
            try:
                users_file.call(fe_materialize, *wrong, **{"config": sample.config, **sample.attrs})
            except TraceError as error:
                if str(error).startswith(f"{users_file.FILE}:"):
                    continue
                got = f"TraceError: {error}"
            except Exception as error:
                got = f"{type(error).__name__}: {error}"
            complain(
                f"{sample.op} does not say where a function {function.__name__}",
                expected=f"TraceError whose text begins with {users_file.FILE}:, and its line",
                got=got,
                fix='raise TraceError(f"{raised(error)}…") from error, of mplang_core.ext; '
                "skip_package leaves out the lines of your engine",
            )

    def test_wrong_arguments_are_errors_with_the_users_line(self, sample: Sample) -> None:
        """A literal in place of an operand, no operand, and a wrong keyword are told so."""
        meta = meta_of(registry.get(sample.op))
        if sample.is_compiler or meta.execution_model == "in_controller":
            return
        for what, args, attrs in _wrong_arguments(sample):
            try:
                with with_ctx(TraceContext(ClusterSpec.simple(max(2, sample.parties)))):
                    users_file.call(invoke, registry.get(sample.op), *args, **attrs)
            except MPLangError as error:
                if users_file.names_a_line(error):
                    continue
                got = f"no line in {type(error).__name__}: {error}"
            except Exception as error:
                got = f"{type(error).__name__}: {error}"
            else:
                continue  # it makes sense of that as well
            complain(
                f"{sample.op} with {what} fails in a wrong way",
                expected="an error of mplang that names the user's line",
                got=got,
                fix="check what has no base_type, and raise TypeError or ValueError",
            )

    def test_a_wrong_configuration_is_refused(self, sample: Sample) -> None:
        """A configuration is held against the schema: FeConfigError, before anything is made."""
        meta = meta_of(registry.get(sample.op))
        schema: Any = meta.config_schema
        if schema is None:
            return
        wrong: list[Any] = [{"no_such_field": 1}, 7, object()]
        wrong += [
            {name: object()}
            for name, field in schema.model_fields.items()
            if field.annotation not in (Any, object)
        ]
        for config in wrong:
            _refuses_config(meta, sample, config)
        try:
            _materialize(meta, sample, None)
        except FeConfigError:
            pass  # it needs one, and says so
        except Exception as error:
            _wrong_error(meta, "no configuration", "FeConfigError, or a default", error)

    def test_a_device_that_cannot_run_it_is_refused(self, op: Any) -> None:
        """What a device lacks is told by FeCapabilityError: the op, the device, and why."""
        meta = meta_of(op)
        with vault() as kind:
            devices = {
                "P0": {"kind": "PPU", "members": [0]},
                "V0": {"kind": kind.name, "members": [0, 1]},
            }
            cluster = ClusterSpec.from_dict({"nodes": [{}, {}], "devices": devices})
            _refuses_device(meta, "V0", [], TraceContext(cluster), op)
            if meta.targets and Form.PLAIN not in meta.targets:
                forms = [form.value for form in meta.targets]
                _refuses_device(meta, "P0", forms, TraceContext(cluster), op)

    def test_damaged_attributes_are_refused(self, sample: Sample) -> None:
        """A worker verifies what it is sent: a bad attribute is a VerifyError, no other error."""
        program = sample.trace()
        verify(program)
        opcode = sample.build().pfunc.fn_type
        for op in program.graph.walk():
            if op.opcode == opcode:
                for what, attrs in _damaged_attrs(op):
                    _refuses_program(program, op, what, attrs)


def _wrong_arguments(sample: Sample) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield what is wrong, the arguments, and the keywords; operands stand in for values."""
    operands = [Operand(kind) for kind in sample.operands]
    attrs = {**sample.attrs} if sample.config is None else {**sample.attrs, "config": sample.config}
    for i in range(len(operands)):
        wrong = sample.filled([*operands[:i], 7, *operands[i + 1 :]])
        yield f"a literal as operand {i}", wrong, attrs
    if operands:
        yield "an operand that is missing", sample.filled(operands)[:-1], attrs
    yield "a wrong keyword", sample.filled(operands), {**attrs, "no_such_keyword": 1}


def _materialize(meta: FeMeta, sample: Sample, config: Any) -> None:
    args = sample.stand_ins()
    fe_materialize(registry.get(sample.op), *args, config=config, **sample.attrs)


def _refuses_config(meta: FeMeta, sample: Sample, config: Any) -> None:
    try:
        _materialize(meta, sample, config)
    except FeConfigError:
        return
    except Exception as error:
        _wrong_error(meta, f"the configuration {config!r}", "FeConfigError", error)
    complain(
        f"{meta.name} takes a wrong configuration",
        expected=f"FeConfigError for {config!r}",
        got="it was taken",
        fix="make config_schema a StrictModel, which takes no unknown field",
    )


def _wrong_error(meta: FeMeta, given: str, expected: str, error: Exception) -> None:
    complain(
        f"{meta.name} refuses {given} in the wrong way",
        expected=expected,
        got=f"{type(error).__name__}: {error}",
        fix="raise FeConfigError with the field, what was expected and what came",
    )


def _refuses_device(
    meta: FeMeta, name: str, reasons: Sequence[str], ctx: TraceContext, op: Any
) -> None:
    told: str
    try:
        with with_ctx(ctx):
            device(name)(op)()
        told = "it was taken"
    except FeCapabilityError as error:
        told = str(error)
        if all(word in told for word in (meta.name, name, *reasons)):
            return
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
    complain(
        f"{meta.name} is not refused clearly by the device {name}",
        expected=f"FeCapabilityError that names {', '.join((meta.name, name, *reasons))}",
        got=told,
        fix="declare what it needs in targets, execution_model and capabilities",
    )


# -- damage


def _damaged_attrs(op: Operation) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "an attribute that is unknown", {**op.attrs, "no_such_attribute": 1}
    for name, value in op.attrs.items():
        yield f"no {name!r}", {key: op.attrs[key] for key in op.attrs if key != name}
        for worse in _damaged(value):
            yield f"{name} = {worse!r:.60}", {**op.attrs, name: normalize(worse)}


def _damaged(value: AttrValue) -> Iterator[Any]:
    """Yield values of other kinds, and broken ones of the same."""
    yield from (None, -1, "", "no such thing", b"", (), {}, Mask(), 2**62, 0.5)
    yield from (TensorType("bf16", (7,)), TableType((("a", "no_such_type"),)))
    yield from _broken.visit(value)


class _Broken(AttrVisitor[Iterable[Any]]):
    """Broken values of the same kind."""

    def _none(self, value: object = None) -> Iterable[Any]:
        return ()

    visit_none = visit_bool = visit_int = visit_float = visit_array = _none

    def visit_str(self, value: str) -> Iterable[Any]:
        return value[:-1], value * 2, "\x00"

    def visit_bytes(self, value: bytes) -> Iterable[Any]:
        return value[: len(value) // 2], value[::-1], value + value, b"\xff" * 9

    def visit_tuple(self, value: tuple[AttrValue, ...]) -> Iterable[Any]:
        yield from (value[:-1], value * 2, (value,))
        for i, item in enumerate(value[:4]):
            for worse in _damaged(item):
                yield (*value[:i], worse, *value[i + 1 :])

    def visit_mask(self, value: Mask) -> Iterable[Any]:
        return Mask(value.bits << 70), Mask(1)

    def visit_type(self, value: Attribute) -> Iterable[Any]:
        return (value.name,)

    def visit_mapping(self, value: Mapping[str, AttrValue]) -> Iterable[Any]:
        yield {**value, "no_such_key": 1}
        for key in value:
            yield {other: value[other] for other in value if other != key}
            for worse in _damaged(value[key]):
                yield {**value, key: worse}


_broken = _Broken()


def _refuses_program(program: Program, op: Operation, what: str, attrs: dict[str, Any]) -> None:
    before, op.attrs = op.attrs, attrs
    try:
        verify(program)
    except VerifyError:
        pass
    except Exception as error:
        complain(
            f"{op.opcode} with {what} breaks the verifier",
            expected="VerifyError, or a program that is right all the same",
            got=f"{type(error).__name__}: {error}",
            fix="raise TypeError or ValueError in the op's type inference",
        )
    finally:
        op.attrs = before
