"""The one declaration of an op: what it takes, what it gives, and why it may refuse."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mplang_core.ir.attrs import AttrValue, normalize
from mplang_core.ir.graph import AnyType, Operation
from mplang_core.mask import Mask
from mplang_core.namespace import Namespace

Interface = TypeVar("Interface")


class Level(enum.Enum):
    """Where an op stands."""

    PARTY = "party"
    """Among the parties: its values have masks."""
    LOCAL = "local"
    """Inside of a ``pcall``, at one party: its values have base types."""


class Effects(enum.Enum):
    """What an op does beyond its results, and so what a pass may do with it."""

    NONE = "none"
    """At a given party the results follow from operands and attributes: drop it, merge it."""
    FRESH = "fresh"
    """The results are new each time (keys, shares, nonces), and that is all: drop it."""
    ANY = "any"
    """Nothing is known of it: leave it where it is."""


REQUIRED: Any = object()
OPTIONAL: Any = object()


@dataclass(frozen=True, slots=True)
class Attr:
    """One attribute of an op.

    Args:
        kind: ``bool``, ``int``, ``float``, ``str``, ``bytes``, ``tuple``, ``dict``,
            ``Mask``, ``BaseType``, ``np.ndarray``, or a tuple of these.
        default: the value where it is left out; without it, it must be given. ``OPTIONAL``
            means that an op may go without it.
        doc: one line.
    """

    kind: type | tuple[type, ...]
    default: AttrValue = REQUIRED
    doc: str = ""

    def check(self, value: AttrValue) -> str | None:
        """Return why a normalized value does not fit, or ``None``."""
        kinds = self.kind if isinstance(self.kind, tuple) else (self.kind,)
        kinds = tuple(Mapping if kind is dict else kind for kind in kinds)
        wrong_bool = isinstance(value, bool) and bool not in kinds and object not in kinds
        if isinstance(value, kinds) and not wrong_bool:
            return None
        names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        return f"expected {names}, got {type(value).__name__}"

    def normalize(self, value: Any) -> AttrValue:
        """Return the normalized value; an int where a float is due becomes one."""
        normal = normalize(value)
        kinds = self.kind if isinstance(self.kind, tuple) else (self.kind,)
        if float in kinds and int not in kinds and object not in kinds and type(normal) is int:
            return float(normal)
        return normal


ORIGIN = Attr(int, OPTIONAL, "in a projection: the op's position in the graph it came from")
"""The attribute ``place``, which every op among parties has beside those that it declares."""

Infer = Callable[[Operation, Mask], Sequence[AnyType]]


@dataclass(frozen=True, slots=True)
class OpDef:
    """What an op is. What it *does* is a kernel's matter, bound per interpreter.

    Args:
        name: ``dialect.op``.
        infer: gives the output types of an op (whose outputs may still be missing) among
            the parties of a mask. Raises ``TypeError`` or ``ValueError`` with the reason
            where the op is not allowed.
        level: where it stands.
        attrs: its attributes.
        regions: its regions by name, each with its level.
        doc: what it means.
        effects: what it does beyond its results; those of its regions are added to that.
        interfaces: what projection, passes and analyses may ask of it; see
            :mod:`mplang_core.simp.interfaces`. Without an interface the careful answer is given.
        projected: whether it exists after projection only.

    Raises:
        ValueError: an op among parties declares an attribute ``place`` of its own.
    """

    name: str
    infer: Infer
    level: Level = Level.LOCAL
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    regions: Mapping[str, Level] = field(default_factory=dict)
    doc: str = ""
    effects: Effects = Effects.ANY
    interfaces: Sequence[object] = ()
    projected: bool = False

    def __post_init__(self) -> None:
        if self.level is not Level.PARTY:
            return
        if self.attrs.get("place", ORIGIN) is not ORIGIN:
            raise ValueError(f"{self.name}: the attribute 'place' is set by projection; rename it")
        object.__setattr__(self, "attrs", {**self.attrs, "place": ORIGIN})

    def check_attrs(self, attrs: Mapping[str, AttrValue]) -> None:
        """Hold attributes against the declaration.

        Raises:
            TypeError: one is unknown, missing, or of another kind.
        """
        for name, value in attrs.items():
            if name not in self.attrs:
                own = sorted(known for known, spec in self.attrs.items() if spec is not ORIGIN)
                raise TypeError(f"unknown attribute {name!r}; it has {own}")
            wrong = self.attrs[name].check(value)
            if wrong:
                raise TypeError(f"attribute {name!r}: {wrong}")
        needed = (name for name, spec in self.attrs.items() if spec.default is not OPTIONAL)
        missing = [name for name in needed if name not in attrs]
        if missing:
            raise TypeError(f"attributes missing: {', '.join(missing)}")

    def complete(self, attrs: Mapping[str, Any]) -> dict[str, AttrValue]:
        """Normalize attributes and add the defaults, in the order of the declaration."""
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
    """Return what answers for an op, or ``None`` if the op does not implement the interface.

    Args:
        op: any op, known or not.
        kind: a protocol, such as those of :mod:`mplang_core.simp.interfaces`.
    """
    op_def = op_defs.get(op.opcode)
    found = (each for each in (op_def.interfaces if op_def else ()) if isinstance(each, kind))
    return next(found, None)
