"""Introspection of frontends, ops, kernels, devices, backends and plugins, as plain data.

Results are lists and dicts of str, int and bool; a list prints as a table in a
terminal (``rich.print``) and in a notebook.

Example:
    >>> from mplang_core import introspect
    >>> "jax" in introspect.list_frontends()
    True
    >>> introspect.describe("jax.compile")["execution_model"]
    'single_rank'
"""

from __future__ import annotations

import difflib
import inspect
import types
import typing
from collections.abc import Mapping
from typing import Any

from mplang_analysis import Declassifies, HasLineage, HasRanges, Rows, UsesStorage

import mplang_core
from mplang_core import Mask, registry
from mplang_core.ext import (
    BACKENDS,
    OPTIONAL,
    REQUIRED,
    Attr,
    Communicates,
    ControlFlow,
    DeclaredRange,
    Device,
    DeviceKind,
    Effects,
    FeMeta,
    Feop,
    Forwards,
    Labels,
    OpDef,
    PluginError,
    PluginLoadError,
    PublicLiteral,
    backends,
    device_kinds,
    host_kernels,
    meta_of,
    op_defs,
    plugin_manager,
    route,
    worker_kernels,
)

__all__ = [
    "describe",
    "list_backends",
    "list_devices",
    "list_frontends",
    "list_kernels",
    "list_ops",
    "list_plugins",
]

CORE = "mplang-core"
UNKNOWN = "unknown"
INTERFACES: tuple[type, ...] = (
    ControlFlow,
    Communicates,
    Forwards,
    PublicLiteral,
    DeclaredRange,
    Labels,
    HasRanges,
    HasLineage,
    Declassifies,
    UsesStorage,
)
"""The interfaces that mplang itself asks for."""


def __dir__() -> list[str]:
    """Return the names that are for users."""
    return sorted(__all__)


def list_frontends() -> list[str]:
    """Return the families of all installed feops, sorted."""
    return sorted({meta.family for meta in registry.list_ops()})


def list_ops(family: str | None = None) -> Rows:
    """Return a row per feop, of all families or of one."""
    return Rows(
        {
            "name": meta.name,
            "kind": meta.op_kind,
            "runs": meta.execution_model,
            "dialects": list(meta.dialects),
            "version": meta.version,
            "provider": registry.feops.provider(meta.name),
            "doc": _first_line(registry.get(meta.name)),
        }
        for meta in registry.list_ops(family)
    )


def list_kernels(role: str | None = None) -> Rows:
    """Return a row per kernel, of both roles or of one (``"host"``, ``"worker"``)."""
    registry.list_ops()
    tables = {"host": host_kernels, "worker": worker_kernels}
    return Rows(
        {"op": name, "role": each, "provider": tables[each].provider(name)}
        for each in tables
        if role in (None, each)
        for name in tables[each].names()
    )


def list_devices() -> Rows:
    """Return a row per kind of device."""
    registry.list_ops()
    return Rows(
        {
            "kind": name,
            "form": kind.form.value,
            "members": _members(*kind.members),
            "dialects": list(kind.dialects),
            "config": sorted(kind.config.model_fields) if kind.config else [],
            "provider": device_kinds.provider(name),
            "doc": kind.doc,
        }
        for name, kind in device_kinds
    )


def list_backends() -> Rows:
    """Return a row per backend that is installed."""
    rows = Rows()
    for record in plugin_manager.records():
        if record.group != BACKENDS or any(row["name"] == record.name for row in rows):
            continue
        try:
            spec = backends.get(record.name)
        except PluginError:
            continue  # list_plugins tells why
        if spec is not None:
            row = {"name": spec.name, "provider": backends.provider(spec.name), "doc": spec.doc}
            rows.append(row)
    return rows


def list_plugins(load: bool = True) -> Rows:
    """Return a row per entry point: where it comes from, and whether it works.

    Args:
        load: whether to try each of them; else they are only listed.
    """
    if load:
        registry.list_ops()
        list_backends()
        for record in plugin_manager.records():
            try:
                plugin_manager.load(record.name, record.group)
            except PluginError:
                continue  # its record tells
    return Rows(
        {
            "name": record.name,
            "group": record.group,
            "distribution": record.distribution,
            "version": record.version,
            "status": record.status,
            "reason": record.reason,
        }
        for record in plugin_manager.records()
    )


def describe(op: Feop | str) -> dict[str, Any]:
    """Return the metadata of a feop, or of an op of programs that is none, as plain data.

    Besides the metadata of a feop: ``doc`` and ``example``; ``config_schema`` and ``attributes``,
    both as JSON Schema; ``kernels``, by role the distribution that brings one; ``devices``, the
    kinds that accept it; ``provenance``, its distribution and version.

    What disclosure and passes go by: ``effects`` (``none``, ``fresh`` or ``unknown``), ``reads``
    (names, ``by its attributes`` or ``unknown``), ``total``, and the names of its ``interfaces``.
    Of a feop that makes programs of other ops they are ``unknown``, and so are its ``kernels``.

    Args:
        op: a feop, its name, or an opcode, as programs show it.

    Raises:
        PluginLoadError: there is no such feop or op; says what to install.

    Example:
        >>> describe("jax.run")["effects"]
        'none'
    """
    if isinstance(op, str) and registry.feops.get(op) is None:
        op_def = op_defs.get(op)
        if op_def is not None:
            return _describe_op(op_def)
    found = _feop(op) if isinstance(op, str) else op
    meta = meta_of(found)
    op_def = op_defs.get(meta.name)
    facts: dict[str, Any] = meta.model_dump(mode="json", exclude={"config_schema"}, by_alias=True)
    facts["config_schema"] = _json_schema(meta)
    facts |= _docs(inspect.getdoc(found) or "")
    facts["attributes"] = _attributes(_keywords(found) if op_def is None else op_def.attrs)
    facts["kernels"] = UNKNOWN if op_def is None else _kernels(meta.name)
    facts |= _behaviour(op_def)
    facts["devices"] = _devices(meta)
    facts["provenance"] = _provenance(registry.feops.provider(meta.name))
    return facts


def _feop(name: str) -> Feop:
    """Return the feop of a name; of an unknown one say which names there are."""
    found = registry.feops.get(name)
    if found is not None:
        return found
    names = sorted({row["name"] for row in list_ops()} | set(op_defs.names()))
    family = name.partition(".")[0]
    if "." in name and all(known.partition(".")[0] != family for known in names):
        return registry.get(name)  # raises, and says what to install
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    close = close or [known for known in names if name and name in known][:3]
    hint = f"did you mean {', '.join(map(repr, close))}? " if close else ""
    raise PluginLoadError(
        f"no feop and no op {name!r}: {hint}a name is FAMILY.NAME, such as jax.compile; mplang ops "
        "lists the feops, and a program's text shows its ops"
    )


def _describe_op(op_def: OpDef) -> dict[str, Any]:
    """Return what is known of an op that is not a feop."""
    return {
        "name": op_def.name,
        "family": op_def.name.partition(".")[0],
        "op_kind": "op",
        "level": op_def.level.value,
        "regions": list(op_def.regions),
        **_docs(op_def.doc),
        "attributes": _attributes(op_def.attrs),
        "kernels": _kernels(op_def.name),
        **_behaviour(op_def),
        "provenance": _provenance(op_defs.provider(op_def.name)),
    }


def _docs(doc: str) -> dict[str, str]:
    return {"doc": doc, "example": _example(doc)}


def _kernels(opcode: str) -> dict[str, str | None]:
    """Return the distribution of the kernel of each role that has one."""
    tables = {"host": host_kernels, "worker": worker_kernels}
    return {
        role: table.provider(opcode)
        for role, table in tables.items()
        if table.get(opcode) is not None
    }


def _behaviour(op_def: OpDef | None) -> dict[str, Any]:
    """Return what the table of disclosures and passes go by."""
    if op_def is None:
        return dict.fromkeys(("effects", "reads", "total", "interfaces"), UNKNOWN)
    return {
        "effects": UNKNOWN if op_def.effects is Effects.ANY else op_def.effects.value,
        "reads": UNKNOWN if op_def.reads is None else _declared(op_def.reads),
        "total": _declared(op_def.total),
        "interfaces": _interfaces(op_def),
    }


def _declared(trait: Any) -> Any:
    """Return a trait of an op, or that a function of the op tells it."""
    if callable(trait):
        return "by its attributes"
    return list(trait) if isinstance(trait, tuple) else trait


def _interfaces(op_def: OpDef) -> list[str]:
    """Return the interfaces of an op that mplang asks for, and the classes of all others."""
    known = [kind.__name__ for kind in INTERFACES if op_def.interface(kind) is not None]
    others = [each for each in op_def.interfaces if not isinstance(each, INTERFACES)]
    return known + [type(each).__name__ for each in others]


def _json_schema(meta: FeMeta) -> dict[str, Any] | None:
    schema: Any = meta.config_schema
    return schema.model_json_schema() if hasattr(schema, "model_json_schema") else None


def _example(doc: str) -> str:
    lines = doc.split("\n")
    begin = next((i for i, line in enumerate(lines) if ">>>" in line), None)
    return "" if begin is None else inspect.cleandoc("\n" + "\n".join(lines[begin:])).strip()


_JSON: dict[type, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    type(None): {"type": "null"},
    Mask: {"type": "array", "items": {"type": "integer"}, "title": "ranks"},
    object: {},
}


def _keywords(op: Feop) -> dict[str, Attr]:
    """Return the keywords of a feop that is not an op itself; ``config`` has its own schema."""
    try:
        hints = typing.get_type_hints(op)
    except Exception:  # of code that is not ours, as names that are imported for type checkers only
        hints = {}
    found = inspect.signature(op).parameters.values()
    return {
        each.name: Attr(
            _classes(hints.get(each.name, object)),
            REQUIRED if each.default is each.empty else each.default,
        )
        for each in found
        if each.kind is each.KEYWORD_ONLY and each.name != "config"
    }


def _classes(hint: Any) -> tuple[type, ...]:
    """Return the classes of the values that an annotation allows."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, types.UnionType) or origin is typing.Union:
        return tuple(kind for part in parts for kind in _classes(part))
    if origin is typing.Literal:
        return tuple(dict.fromkeys(type(value) for value in parts))
    kind = origin or hint
    return (kind if isinstance(kind, type) else object,)


def _attributes(attrs: Mapping[str, Attr]) -> dict[str, Any]:
    """Return the JSON Schema of attributes."""
    return {
        "type": "object",
        "properties": {attr: _attribute(spec) for attr, spec in attrs.items()},
        "required": [attr for attr, spec in attrs.items() if spec.default is REQUIRED],
        "additionalProperties": False,
    }


def _attribute(spec: Attr) -> dict[str, Any]:
    kinds = spec.kind if isinstance(spec.kind, tuple) else (spec.kind,)
    options = [_JSON.get(kind, {"type": "string", "title": kind.__name__}) for kind in kinds]
    schema: dict[str, Any] = dict(options[0]) if len(options) == 1 else {"anyOf": options}
    if spec.doc:
        schema["description"] = spec.doc
    if spec.default is not REQUIRED and spec.default is not OPTIONAL:
        schema["default"] = spec.default if _is_plain(spec.default) else str(spec.default)
    return schema


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | tuple | list)


def _devices(meta: FeMeta) -> list[str]:
    registry.list_ops()
    return [name for name, kind in device_kinds if _some_device(meta, kind)]


def _provenance(provider: str | None) -> dict[str, str]:
    versions = {r.distribution: r.version for r in plugin_manager.records()}
    versions.setdefault(CORE, mplang_core.__version__)
    return {"distribution": provider or "", "version": versions.get(provider or "", "")}


def _members(low: int, high: int | None) -> str:
    return str(low) if low == high else f"{low} or more" if high is None else f"{low} to {high}"


def _first_line(op: Any) -> str:
    return (inspect.getdoc(op) or "").split("\n", 1)[0]


def _some_device(meta: FeMeta, kind: DeviceKind) -> bool:
    """Return whether some device of a kind can run a feop."""
    low, high = kind.members
    need = meta.capabilities.requires_device
    asked = int(need.members.lstrip("<>=")) if need is not None else low
    counts = {low, max(low, min(asked, high or asked))}
    devices = [Device("", kind, Mask.of(range(count))) for count in counts]
    return any(route(meta, device).fits for device in devices)
