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

import inspect
from typing import Any

from mplang_analysis import Rows

from mplang_core import Mask, registry
from mplang_core.ext import (
    BACKENDS,
    OPTIONAL,
    REQUIRED,
    Attr,
    Device,
    DeviceKind,
    FeMeta,
    Feop,
    PluginError,
    backends,
    device_kinds,
    host_kernels,
    meta_of,
    op_defs,
    plugin_manager,
    route,
    worker_kernels,
)

CORE = "mplang-core"


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
    """Return the metadata of a feop as plain data.

    Besides its metadata: ``doc`` and ``example``; ``config_schema`` and ``attributes``, both as
    JSON Schema; ``kernels``, by role the distribution that brings one; ``devices``, the kinds
    that accept it; ``provenance``, its distribution and version.

    Raises:
        PluginLoadError: there is no such feop; says what to install.
    """
    found = registry.get(op) if isinstance(op, str) else op
    meta = meta_of(found)
    doc = inspect.getdoc(found) or ""
    facts: dict[str, Any] = meta.model_dump(mode="json", exclude={"config_schema"}, by_alias=True)
    facts["config_schema"] = _json_schema(meta)
    facts["doc"] = doc
    facts["example"] = _example(doc)
    facts["attributes"] = _attributes(meta.name)
    facts["kernels"] = {
        role: table.provider(meta.name)
        for role, table in (("host", host_kernels), ("worker", worker_kernels))
        if table.get(meta.name) is not None
    }
    facts["devices"] = _devices(meta)
    facts["provenance"] = _provenance(meta.name)
    return facts


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
    Mask: {"type": "array", "items": {"type": "integer"}, "title": "ranks"},
    object: {},
}


def _attributes(name: str) -> dict[str, Any]:
    """Return the JSON Schema of the attributes of a feop that is an op itself."""
    op_def = op_defs.get(name)
    attrs = {} if op_def is None else op_def.attrs
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
        schema["default"] = spec.default
    return schema


def _devices(meta: FeMeta) -> list[str]:
    registry.list_ops()
    return [name for name, kind in device_kinds if _some_device(meta, kind)]


def _provenance(name: str) -> dict[str, str]:
    provider = registry.feops.provider(name) or ""
    versions = {r.distribution: r.version for r in plugin_manager.records()}
    return {"distribution": provider, "version": versions.get(provider, "")}


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
