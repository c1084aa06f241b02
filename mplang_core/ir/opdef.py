"""Op definitions: attributes, regions, type inference, effects and interfaces."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mplang_core.errors import FeConfigError
from mplang_core.ir.attrs import AttrValue, normalize
from mplang_core.ir.graph import AnyType, Operation
from mplang_core.mask import Mask
from mplang_core.namespace import Namespace

Interface = TypeVar("Interface")


class Level(enum.Enum):
    """Level of an op: among parties, or local."""

    PARTY = "party"
    """Op among parties: its values have masks."""
    LOCAL = "local"
    """Local op, in the body of a ``pcall``: its values have base types."""


class Effects(enum.Enum):
    """Side effects of an op, which determine what passes may do."""

    NONE = "none"
    """The results are a function of operands and attributes: may be removed and merged."""
    FRESH = "fresh"
    """The results are random (keys, shares, nonces): may be removed, not merged."""
    ANY = "any"
    """Unknown effects: neither removed, merged nor moved."""


REQUIRED: Any = object()
OPTIONAL: Any = object()


@dataclass(frozen=True, slots=True)
class Attr:
    """Declaration of an attribute of an op.

    Args:
        kind: ``bool``, ``int``, ``float``, ``str``, ``bytes``, ``tuple``, ``dict``,
            ``Mask``, ``BaseType``, ``np.ndarray``, or a tuple of these.
        default: the default value. Without it the attribute is required; with ``OPTIONAL``
            an op may lack it.
        doc: one line for tools.
    """

    kind: type | tuple[type, ...]
    default: AttrValue = REQUIRED
    doc: str = ""

    def check(self, value: AttrValue) -> str | None:
        """Return why a normalized value is not allowed, or ``None``."""
        if type(value) is self.kind:
            return None
        kinds = self.kind if isinstance(self.kind, tuple) else (self.kind,)
        kinds = tuple(Mapping if kind is dict else kind for kind in kinds)
        wrong_bool = isinstance(value, bool) and bool not in kinds and object not in kinds
        if isinstance(value, kinds) and not wrong_bool:
            return None
        names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        return f"expected {names}, got {type(value).__name__}"

    def normalize(self, value: Any) -> AttrValue:
        """Return the normalized value; an int becomes a float if only floats are allowed.

        Raises:
            TypeError: the value is not an attribute value.
            ValueError: an integer has more than 64 bits.
        """
        normal = normalize(value)
        kinds = self.kind if isinstance(self.kind, tuple) else (self.kind,)
        if float in kinds and int not in kinds and object not in kinds and type(normal) is int:
            return float(normal)
        return normal


Infer = Callable[[Operation, Mask], Sequence[AnyType]]

_TRAITS: Mapping[str, Any] = {"effects": Effects, "reads": tuple | None, "total": bool}


@dataclass(frozen=True, slots=True)
class OpDef:
    """Definition of an op. Its kernels are bound separately, per interpreter and role.

    Args:
        name: ``dialect.op``.
        infer: ``infer(op, world)`` returns the output types of an op, whose ``outputs`` may be
            empty, among the parties of the mask ``world``. It raises ``TypeError`` or
            ``ValueError`` with the reason if the op is not allowed.
        level: its level.
        attrs: its attributes by name.
        regions: its regions by name, each with its level.
        doc: its semantics.
        effects: its side effects, without those of its regions.
        interfaces: its implementations of op interfaces; see
            :mod:`mplang_core.simp.interfaces`. Workers, passes and analyses assume the
            worst of an op without the interface.
        reads: the names of private data of its party that it reads besides its operands, or a
            function of the op that returns them; empty if it reads none. ``None`` if unknown: its
            results count as all data of the party.
        total: whether it never fails because of the values of its operands, or a function of the
            op that returns it. If it may fail, everyone learns of them by whether it does.

    Raises:
        FeConfigError: ``effects``, ``reads`` or ``total`` is something else.
    """

    name: str
    infer: Infer
    level: Level = Level.LOCAL
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    regions: Mapping[str, Level] = field(default_factory=dict)
    doc: str = ""
    effects: Effects = Effects.ANY
    interfaces: Sequence[object] = ()
    reads: tuple[str, ...] | Callable[[Operation], tuple[str, ...]] | None = None
    total: bool | Callable[[Operation], bool] = False
    _found: dict[type, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, kind in _TRAITS.items():
            value = getattr(self, name)
            if not isinstance(value, kind) and (name == "effects" or not callable(value)):
                raise FeConfigError(f"{self.name}: field {name!r}: expected {kind}, got {value!r}")

    def may_fail(self, op: Operation) -> bool:
        """Return whether such an op may fail because of the values of its operands."""
        return not (self.total(op) if callable(self.total) else self.total)

    def interface(self, kind: type[Interface]) -> Interface | None:
        """Return the implementation of an interface, or ``None``."""
        try:
            return self._found[kind]  # type: ignore[no-any-return]
        except KeyError:  # isinstance of a protocol takes microseconds
            found = next((each for each in self.interfaces if isinstance(each, kind)), None)
            self._found[kind] = found
            return found

    def check_attrs(self, attrs: Mapping[str, AttrValue]) -> None:
        """Check attributes against the declaration.

        Args:
            attrs: normalized attributes by name.

        Raises:
            TypeError: an attribute is unknown, missing, or of another kind.
        """
        for name, value in attrs.items():
            if name not in self.attrs:
                raise TypeError(f"unknown attribute {name!r}; it has {sorted(self.attrs)}")
            wrong = self.attrs[name].check(value)
            if wrong:
                raise TypeError(f"attribute {name!r}: {wrong}")
        if attrs.keys() == self.attrs.keys():
            return
        needed = (name for name, spec in self.attrs.items() if spec.default is not OPTIONAL)
        missing = [name for name in needed if name not in attrs]
        if missing:
            raise TypeError(f"attributes missing: {', '.join(missing)}")

    def complete(self, attrs: Mapping[str, Any]) -> dict[str, AttrValue]:
        """Return normalized attributes with defaults, in the order of the declaration.

        Args:
            attrs: attributes by name; unknown ones are kept, for :meth:`check_attrs`.

        Raises:
            TypeError: a value is not an attribute value.
            ValueError: an integer has more than 64 bits.
        """
        full: dict[str, AttrValue] = {}
        for name, spec in self.attrs.items():
            value = attrs.get(name, spec.default)
            if value is not REQUIRED and value is not OPTIONAL:
                full[name] = spec.normalize(value)
        for name in attrs:
            if name not in self.attrs:
                full[name] = normalize(attrs[name])
        return full


op_defs: Namespace[OpDef] = Namespace("op")
"""All op definitions by opcode."""


def interface_of(op: Operation, kind: type[Interface]) -> Interface | None:
    """Return an op's implementation of an interface, or ``None``.

    Args:
        op: any op, known or unknown.
        kind: a protocol, such as those of :mod:`mplang_core.simp.interfaces`.
    """
    op_def = op_defs.get(op.opcode)
    return None if op_def is None else op_def.interface(kind)
