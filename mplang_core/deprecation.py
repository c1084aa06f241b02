"""Deprecated names of modules: they go on working until a release, and warn where they are used."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def deprecated_names(module: str, names: Mapping[str, str], *, until: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module some of whose names are called otherwise now.

    A module that has a ``__getattr__`` already calls this one last.

    Args:
        module: the module, its ``__name__``.
        names: by the old name the new one, with its module.
        until: the release that has the old names no more, such as ``"0.3"``.

    Returns:
        A function that returns what a name stands for, and warns at the line that uses it: once
        for each line, by ``DeprecationWarning``. It raises ``AttributeError`` for other names.

    Example:
        >>> renamed = {"Tensor": "mplang_core.TensorType"}
        >>> __getattr__ = deprecated_names("acme", renamed, until="0.3")
        >>> with warnings.catch_warnings(record=True) as shown:
        ...     warnings.simplefilter("always")
        ...     kind = __getattr__("Tensor")
        >>> print(kind.__name__, "-", shown[0].message)
        TensorType - acme.Tensor is deprecated, and gone in 0.3: use mplang_core.TensorType
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = names[name]
        _warn(module, f"{module}.{name} is deprecated, and gone in {until}: use {new}")
        home, _, attribute = new.rpartition(".")
        return getattr(importlib.import_module(home), attribute)

    return find


def _warn(module: str, text: str) -> None:
    """Warn at the line that uses a name: the first on the stack outside of its module."""
    frame = sys._getframe(2)
    while frame.f_back is not None and _is_of_lookup(frame.f_globals.get("__name__", ""), module):
        frame = frame.f_back
    user = frame.f_globals
    warnings.warn_explicit(
        text,
        DeprecationWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=user.get("__name__"),
        registry=user.setdefault("__warningregistry__", {}),
    )


def _is_of_lookup(name: str, module: str) -> bool:
    """Return whether a module of the stack looks a name up, and does not use it."""
    return name == module or name.partition(".")[0] == "importlib"
