"""Metadata models of feops, and the protocol of a feop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import BeforeValidator, Field, field_validator, model_validator

from mplang_core.config_model import StrictModel
from mplang_core.errors import FeConfigError, MPLangError
from mplang_core.feop.program import FeProgram
from mplang_core.feop.state import FeState
from mplang_core.types import BaseType, DType, Form, TableType, TensorType

_KINDS: dict[str, Callable[[BaseType], bool]] = {
    "Any": lambda kind: True,
    "None": lambda kind: False,
    "Tensor": lambda kind: isinstance(kind, TensorType),
    "Table": lambda kind: isinstance(kind, TableType),
    "Scalar": lambda kind: isinstance(kind, TensorType) and kind.shape == (),
    "Bytes": lambda kind: (
        isinstance(kind, TensorType) and kind.dtype is DType.U8 and len(kind.shape) == 1
    ),
}


class _FeModel(StrictModel):
    error: ClassVar[type[MPLangError]] = FeConfigError


class IOSpec(_FeModel):
    """Constraint on an input or an output; held where the feop is called.

    Attributes:
        kind: ``Tensor``, ``Table``, ``Scalar`` (a tensor without dimensions), ``Bytes`` (a tensor
            ``u8[n]``), ``Any``, ``None`` for no result, or the name of a plugin's type.
        visibility: who may know the value: all parties, its holder in plain, or nobody; empty for
            any of these. What is public may be used as if it were private.
        schema: the type, or its class; ``None`` for any.

    Raises:
        FeConfigError: a field is invalid or unknown.
    """

    kind: str
    visibility: tuple[Literal["PUBLIC", "PRIVATE", "SECRET"], ...] = ()
    schema_: Any = Field(default=None, alias="schema")

    @field_validator("kind")
    @classmethod
    def _known_kind(cls, kind: str) -> str:
        known = {each.lower(): each for each in _KINDS}
        if kind.lower() in known:
            return known[kind.lower()]
        if "." not in kind:
            raise ValueError(f"a kind is {', '.join(_KINDS)} or the name of a plugin's type")
        return kind

    @field_validator("schema_")
    @classmethod
    def _type_or_class(cls, schema: Any) -> Any:
        is_class = isinstance(schema, type) and issubclass(schema, BaseType)
        if is_class or isinstance(schema, BaseType | None):
            return schema
        raise ValueError(f"a schema is a type of mplang or its class, got {schema!r}")

    def accepts(self, found: BaseType) -> bool:
        """Return whether a type is of this kind and schema."""
        if self.schema_ is not None and self.schema_ not in (found, type(found)):
            return False
        return _KINDS[self.kind](found) if self.kind in _KINDS else found.name == self.kind

    def __str__(self) -> str:
        wanted = f"{self.kind} {self.schema_}" if isinstance(self.schema_, BaseType) else self.kind
        return f"{' or '.join(self.visibility)} {wanted}".strip()


Count = Annotated[
    str,
    BeforeValidator(lambda value: f"={value}" if type(value) is int else value),
    Field(pattern=r"^(=|>=|<=)[1-9]\d*$"),
]
"""Constraint on a number: ``"=2"``, ``">=2"``, ``"<=2"``; ``2`` is short for ``"=2"``."""


class DeviceRequirement(_FeModel):
    """Requirement on the device of an op, besides the form of its values (``targets``).

    Attributes:
        members: the number of members, ``">=1"`` by default.

    Raises:
        FeConfigError: a field is invalid or unknown.
    """

    members: Count = ">=1"


class Stability(_FeModel):
    """Stability level of a feop."""

    level: Literal["experimental", "stable"] = "stable"
    notes: str = ""


class Caching(_FeModel):
    """Caching of a feop's results.

    Attributes:
        scope: where results are cached: nowhere, in the process, or with the context.
        key_strategy: the cache key: content of the function and signature of the arguments, as
            :func:`mplang_cache.compiled_once` has it, or the feop's own.

    Raises:
        FeConfigError: a field is invalid or unknown.
    """

    scope: Literal["none", "process", "ctx"] = "none"
    key_strategy: Literal["signature", "custom"] = "signature"


class Capabilities(_FeModel):
    """Requirements and capabilities of a feop.

    Attributes:
        requires_device: the requirement on the device; ``None`` for none.
        supports_visibility: the visibilities of values that it supports; empty for all.
        requires_world_size: the number of parties of the cluster; ``None`` for any.
        input_types: the types of its inputs: names of types (``tensor``, ``spu.share``), and
            element types of tensors (``f32``); empty for all.
        output_types: the same of its outputs.
        stability: its stability level.
        caching: the caching of its results.

    Raises:
        FeConfigError: a field is invalid or unknown.
    """

    requires_device: DeviceRequirement | None = None
    supports_visibility: tuple[Literal["PUBLIC", "PRIVATE", "SECRET"], ...] = ()
    requires_world_size: Count | None = None
    input_types: tuple[str, ...] = ()
    output_types: tuple[str, ...] = ()
    stability: Stability = Stability()
    caching: Caching = Caching()


class FeMeta(_FeModel):
    """Metadata of a feop for dispatch, validation, reflection and tools.

    Attributes:
        name: canonical dotted name, ``family.op``.
        family: its frontend; the part of the name before the first dot.
        op_kind: ``"compiler"`` turns a Python function into a program, ``"transform"``
            maps programs to programs, ``"special_op"`` is one op.
        dialects: the dialects of the code that it produces.
        version: the version of its semantics.
        execution_model: what runs it: one party, several together, or the controller, in whose
            process the program is traced.
        inputs: constraints on the inputs.
        outputs: constraints on the outputs.
        config_schema: the pydantic model of its ``config`` argument; ``None`` if it has none.
        understands: of a compiler, ``understands(fn, types)``: whether a function is its own
            (``True``), one that it takes if it is preferred (``False``), or one that it takes if
            nobody is (``None``: the frontend that a kind of values is known for).
            :func:`mplang_cache.packages_of` tells which packages a function names.
        side_effects: whether building its program has observable effects.
        targets: the forms of values that it works on, such as ``("share",)``: those of devices
            that run it directly. By default plain, and any for a transform.
        capabilities: further requirements.
        state_scope: where it may keep state: nowhere, in the process, or with the context.

    Raises:
        FeConfigError: a field is invalid or unknown; the message names it and the feop.

    Example:
        >>> meta = FeMeta(name="demo.op", targets=("share",), execution_model="multi_party")
        >>> meta.family, meta.targets
        ('demo', (<Form.SHARE: 'share'>,))
    """

    name: str = Field(pattern=r"^[a-z_][\w]*(\.[A-Za-z_]\w*)+$")
    family: str
    op_kind: Literal["compiler", "transform", "special_op"] = "special_op"
    dialects: tuple[str, ...] = ()
    version: str = "1"
    execution_model: Literal["single_rank", "multi_party", "in_controller"] = "single_rank"
    inputs: tuple[IOSpec, ...] = ()
    outputs: tuple[IOSpec, ...] = ()
    config_schema: type | None = None
    side_effects: bool = False
    targets: tuple[Form, ...] = ()
    capabilities: Capabilities = Capabilities()
    state_scope: Literal["none", "process", "ctx"] = "none"
    understands: Callable[..., bool | None] | None = Field(default=None, exclude=True, repr=False)

    @field_validator("targets", mode="before")
    @classmethod
    def _forms(cls, targets: Any) -> Any:
        forms = {each.value for each in Form}
        if not isinstance(targets, list | tuple):
            return targets
        if wrong := [each for each in targets if not isinstance(each, Form) and each not in forms]:
            raise ValueError(
                f"what a device has to be, not which kind it is: forms of values, of "
                f"{', '.join(sorted(forms))}; got {', '.join(map(repr, wrong))}. Without forms it "
                "works on plain values"
            )
        return targets

    @model_validator(mode="before")
    @classmethod
    def _family_from_name(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and "family" not in fields and "name" in fields:
            fields = {**fields, "family": str(fields["name"]).partition(".")[0]}
        return fields

    @model_validator(mode="after")
    def _name_has_family(self) -> FeMeta:
        if self.name.partition(".")[0] != self.family:
            raise ValueError(f"the name starts with the family, as in {self.family}.…")
        return self

    @model_validator(mode="after")
    def _caches_in_its_state(self) -> FeMeta:
        caching = self.capabilities.caching
        if caching.scope not in ("none", self.state_scope):
            raise ValueError(
                f"caching.scope is {caching.scope!r}, and state_scope {self.state_scope!r}: what "
                "is cached is kept in the feop's state"
            )
        if caching.scope == "ctx" and caching.key_strategy == "signature":
            raise ValueError("what is cached with the context has key_strategy='custom'")
        return self


class Feop(Protocol):
    """Protocol of a feop: a callable with metadata that returns a :class:`FeProgram`.

    Attributes:
        __feop__: marks the callable as a feop.
        __feop_meta__: its metadata.
        __get_state__: ``__get_state__(ctx=None)`` returns its state mapping.
    """

    __feop__: bool
    __feop_meta__: FeMeta
    __get_state__: Callable[..., FeState]

    def __call__(self, *args: Any, **kwargs: Any) -> FeProgram:
        """Return the program for arguments.

        Args:
            *args: nests of values and literals; for a compiler the function and its signature.
            **kwargs: attributes.
        """
