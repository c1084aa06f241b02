"""Reference of settings: those of a worker's file, from the models that read it."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator, Mapping

import griffe
from mplang_worker import WorkerConfig
from mplang_worker.base.config import MEMORY
from pydantic import BaseModel
from pydantic.fields import FieldInfo


def pages() -> Mapping[str, str]:
    """Return the page of the settings of a worker."""
    lines = ["# Settings of a worker", "", "What `mplang worker` reads from its file, see",
             "[workers](../plugins/mplang_worker/README.md).", ""]  # fmt: skip
    return {"worker.md": "\n".join([*lines, *_lines(WorkerConfig), ""])}


def _lines(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    told = _told(model)
    for name, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        kind = "" if inner else f" ({_kind(field)}{_default(field)})"
        yield f"`{prefix}{name}`{kind}\n: {' '.join(told.get(name, '').split()) or '…'}\n"
        if inner is not None:
            yield from _lines(inner, f"{prefix}{name}.")


def _told(model: type[BaseModel]) -> Mapping[str, str]:
    """Return what the docstrings of a model and its bases tell of fields."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        for section in griffe.Docstring(inspect.cleandoc(each.__doc__ or "")).parse("google"):
            if section.kind is griffe.DocstringSectionKind.attributes:
                found |= {item.name: item.description for item in section.value}
    return found


def _model_in(kind: object) -> type[BaseModel] | None:
    """Return the model that a setting is, or that it is if it is given."""
    options = typing.get_args(kind) or (kind,)
    models = [each for each in options if inspect.isclass(each) and issubclass(each, BaseModel)]
    return models[0] if len(models) == 1 and typing.get_origin(kind) not in (list, dict) else None


def _kind(field: FieldInfo) -> str:
    kind = field.annotation
    text = kind.__name__ if inspect.isclass(kind) and not typing.get_args(kind) else str(kind)
    for module in ("typing.", "collections.abc.", "pathlib.", "mplang_worker.base.config."):
        text = text.replace(module, "")
    return text.removesuffix(" | None").replace("[", "\\[")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return ", required"
    made = field.get_default(call_default_factory=field.default_factory is not None)
    parts = {MEMORY // 2: "half of the memory", MEMORY // 4: "a quarter of the memory"}
    if isinstance(made, int | float) and made in parts:
        return f", {parts[int(made)]}"
    return "" if made is None or made in ({}, ()) else f", `{made!r}`"
