"""What the metadata of a feop declares, held against what happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from mplang_core import BaseType, fe_materialize, registry
from mplang_core.ext import (
    FeCapabilityError,
    Operand,
    PluginError,
    checks_determinism,
    host_kernels,
    meta_of,
    type_classes,
)
from mplang_testing.sample import Sample
from mplang_testing.suite import Suite, complain


class _ForeignType(BaseType):
    """Type that no feop is made for."""

    name = "kit.foreign"

    def params(self) -> tuple[Any, ...]:
        return ()

    @classmethod
    def from_params(cls, params: Any) -> _ForeignType:
        return cls()


class ContractSuite(Suite, kit=True):
    """Metadata is not decoration; a part of :class:`~mplang_testing.FeopSuite`.

    Attributes:
        claims_all: whether the compilers of the family take functions that name no frontend:
            those that a kind of values is known for, such as ``jax.compile``.
    """

    claims_all: ClassVar[bool] = False

    def test_the_kinds_that_it_names_are_there(self, op: Any) -> None:
        """Inputs and outputs name kinds of the core, and types that a plugin has."""
        meta = meta_of(op)
        named = [spec.kind for spec in (*meta.inputs, *meta.outputs) if "." in spec.kind]
        unknown = [kind for kind in named if not _is_type(kind)]
        if unknown:
            complain(
                f"{meta.name} names a kind that is not a type",
                expected="Tensor, Table, Scalar, Bytes, Any, None, or the name of a type",
                got=", ".join(unknown),
                fix="write the name of the type as in its class, and bring it by mplang_dialects",
            )

    def test_what_it_declares_holds(self, sample: Sample) -> None:
        """Operands and results are those that it declares; others are refused."""
        meta = meta_of(registry.get(sample.op))
        if sample.is_compiler:
            return
        fe_materialize(registry.get(sample.op), *sample.stand_ins(), **_options(sample))
        if not sample.operands or any(spec.kind == "Any" for spec in meta.inputs):
            return
        foreign = sample.filled([Operand(_ForeignType()) for _ in sample.operands])
        try:
            fe_materialize(registry.get(sample.op), *foreign, **_options(sample))
            got = "it was taken"
        except FeCapabilityError:
            return
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
        complain(
            f"{meta.name} takes operands of any type",
            expected="FeCapabilityError for an operand of the type kit.foreign",
            got=got,
            fix="declare inputs=({'kind': …},)",
        )

    def test_an_op_of_the_controller_has_a_kernel_there(self, sample: Sample) -> None:
        """What runs in the process that traces needs a kernel with ``role="host"``."""
        meta = meta_of(registry.get(sample.op))
        opcode = sample.build().pfunc.fn_type
        if meta.execution_model == "in_controller" and host_kernels.get(opcode) is None:
            complain(
                f"{meta.name} runs at the controller, which has no kernel of {opcode}",
                expected="KernelSpec([…], kernel, role='host')",
                got="none",
                fix="bring one, or declare execution_model='single_rank'",
            )

    def test_a_compiler_claims_what_is_its_own(self, op: Any) -> None:
        """A second frontend of a kind leaves functions to the first that do not name it."""
        meta = meta_of(op)
        if meta.op_kind != "compiler":
            return
        answers: list[bool | None] = [None, False] if self.claims_all else [False]
        got = "no answer" if meta.understands is None else meta.understands(lambda *args: args, ())
        if got not in answers or isinstance(got, str):
            complain(
                f"{meta.name} says of a function that names no frontend: {got}",
                expected=f"understands=… that returns {' or '.join(map(str, answers))}",
                got=got,
                fix="return True for functions that name your package (packages_of tells), else "
                "False; users prefer you by mp.frontend, or call you",
            )

    def test_it_is_cached_as_it_declares(self, sample: Sample) -> None:
        """A function is compiled once where the metadata says so, and again after a change."""
        meta = meta_of(registry.get(sample.op))
        caching = meta.capabilities.caching
        if not sample.is_compiler or caching.scope != "process" or checks_determinism():
            return
        if caching.key_strategy == "custom":
            return
        fn, *rest = sample.args

        def compiled(marker: object) -> Any:
            return _again(sample, _reading(fn, marker), rest).pfunc

        one = compiled(1)
        if compiled(1) is not one or compiled(2) is one:
            complain(
                f"{sample.op} is not cached as it declares",
                expected="the same program for a function that reads the same, and another one "
                "after a variable of its closure has changed",
                got="a new program" if compiled(1) is not one else "the program of the old value",
                fix="return compiled_once(…) of mplang_cache, with is_fixed= for objects of your "
                "engine that functions name and that never change; or declare caching.scope='none'",
            )


def _reading(fn: Callable[..., Any], marker: object) -> Callable[..., Any]:
    """Return a function that does the same, and reads a variable besides."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs) if marker else None

    return called


def _again(sample: Sample, fn: Callable[..., Any], rest: list[Any]) -> Any:
    fields = {"attrs": sample.attrs, "config": sample.config, "parties": sample.parties}
    return Sample(sample.op, fn, *rest, **fields).build()


def _options(sample: Sample) -> dict[str, Any]:
    return {"config": sample.config, **sample.attrs}


def _is_type(name: str) -> bool:
    try:
        return type_classes.get(name) is not None
    except PluginError:
        return False
