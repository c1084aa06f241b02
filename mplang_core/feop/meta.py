"""Metadata of a feop, validated, and the protocol of a feop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import BeforeValidator, Field, model_validator

from mplang_core.config_model import StrictModel
from mplang_core.errors import FeConfigError, MPLangError
from mplang_core.feop.program import FeProgram
from mplang_core.feop.state import FeState


class _FeModel(StrictModel):
    error: ClassVar[type[MPLangError]] = FeConfigError


class IOSpec(_FeModel):
    """What an input or an output may be."""

    kind: str
    visibility: tuple[Literal["PUBLIC", "PRIVATE", "SECRET"], ...] = ()
    schema_: Any = Field(default=None, alias="schema")


Count = Annotated[
    str,
    BeforeValidator(lambda value: f"={value}" if type(value) is int else value),
    Field(pattern=r"^(=|>=|<=)[1-9]\d*$"),
]
"""How many: ``"=2"``, ``">=2"``, ``"<=2"``; a plain ``2`` is exactly that."""


class DeviceRequirement(_FeModel):
    """Which devices can take the op at all."""

    kind: tuple[str, ...] = ()
    members: Count = ">=1"


class Stability(_FeModel):
    """How much one may rely on it."""

    level: Literal["experimental", "stable"] = "stable"
    notes: str = ""


class Caching(_FeModel):
    """Where results are kept, and by which key."""

    scope: Literal["none", "process", "ctx"] = "none"
    key_strategy: Literal["signature", "custom"] = "signature"


class Capabilities(_FeModel):
    """What an op needs and can do, beyond the core fields."""

    requires_device: DeviceRequirement | None = None
    supports_visibility: tuple[Literal["PUBLIC", "PRIVATE", "SECRET"], ...] = ()
    requires_world_size: Count | None = None
    input_types: tuple[str, ...] = ()
    output_types: tuple[str, ...] = ()
    stability: Stability = Stability()
    caching: Caching = Caching()


class FeMeta(_FeModel):
    """The metadata of a feop: it informs dispatch, validation, reflection and tools.

    Attributes:
        name: canonical dotted name, ``family.op``.
        family: the frontend that it belongs to; the part of the name before the first dot.
        op_kind: ``"compiler"`` turns a Python function into a program, ``"transform"``
            works on programs, ``"special_op"`` is one op.
        dialects: the dialects of the code that it produces.
        version: of the op's meaning.
        execution_model: who runs it: one party, several together, or the coordinator.
        inputs: constraints on the inputs.
        outputs: constraints on the outputs.
        config_schema: pydantic model of its ``config`` argument, if it takes one.
        side_effects: whether building its program has an effect that can be seen.
        targets: device kinds that it is meant for; none named means all.
        capabilities: further constraints.
        state_scope: where it may keep state.

    Raises:
        FeConfigError: a field is wrong or unknown; names it and the feop.
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
    targets: tuple[str, ...] = ()
    capabilities: Capabilities = Capabilities()
    state_scope: Literal["none", "process", "ctx"] = "none"

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


class Feop(Protocol):
    """A callable that gives a :class:`FeProgram`, and says what it is."""

    __feop__: bool
    __feop_meta__: FeMeta
    __get_state__: Callable[..., FeState]

    def __call__(self, *args: Any, **kwargs: Any) -> FeProgram:
        """Make the program."""
