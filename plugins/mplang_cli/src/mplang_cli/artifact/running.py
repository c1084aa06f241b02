"""Running an artifact on what a command line gives, and showing what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from mplang_analysis import Rows
from mplang_analysis.ext import quoted

from mplang_cli.artifact.arguments import Given, data_at
from mplang_cli.artifact.core import Artifact
from mplang_core import Form, MPObject, fetch
from mplang_core.ext import ConfigError, Mode, SimpHost, flatten

MAX_SHOWN = 200  # characters of a value


def run_given(
    artifact: Artifact, host: SimpHost, given: Mapping[str, Given], mode: Mode | None = None
) -> Rows:
    """Run an artifact and fetch what may be known.

    Args:
        artifact: what to run.
        host: where.
        given: a value per leaf of the arguments; see ``artifact.signature.names``.
        mode: see ``mp.evaluate``.

    Returns:
        A row per leaf of the result; the value of what is secret is ``None``.

    Raises:
        ConfigError: an argument is missing, unknown, or does not fit.
    """
    names = artifact.signature.names
    flat = dict(_expanded(given, names))
    unknown = sorted(set(flat) - set(names))
    if unknown:
        takes = ", ".join(name for name, _ in artifact.signature.shown) or "none"
        raise ConfigError(
            f"{quoted(artifact.name)} has no argument {', '.join(unknown)}; it takes {takes}",
            code="C007",
        )
    types = iter(artifact.program.graph.inputs)
    leaves = []
    for name, leaf in zip(names, artifact.signature.inputs, strict=True):
        if not leaf.type:
            leaves.append(flat[name].value() if name in flat else leaf.literal)
            continue
        expected: Any = next(types).type
        if name not in flat:
            raise ConfigError(
                f"argument {quoted(name, None)} is missing: --arg {name}=@file.npy, of {expected}",
                code="C007",
            )
        leaves.append(data_at(host, name, flat[name], expected))
    args, kwargs = artifact.signature.arguments.build(leaves)
    result = artifact.run(host, *args, mode=mode, **kwargs)
    shown = zip(artifact.signature.results, flatten(result)[0], strict=True)
    return Rows(_row(host, name, value) for name, value in shown)


def shown(results: Rows) -> Rows:
    """Return results as a table is to show them: short, and in texts."""
    return Rows(
        {
            "result": quoted(row["result"], None),
            "type": row["type"],
            "on": row["device"] or "-",
            "value": "(secret)" if row["secret"] else _short(row["value"]),
        }
        for row in results
    )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _expanded(given: Mapping[str, Given], names: tuple[str, ...]) -> Iterator[tuple[str, Given]]:
    """Yield the leaves of what is given; JSON may be a nest of them."""
    for name, each in given.items():
        inside = [n for n in names if n.startswith(f"{name}.")]
        if name in names or not inside or each.is_file:
            yield name, each
            continue
        for leaf in inside:
            found = each.value()
            for key in leaf[len(name) + 1 :].split("."):
                found = _part(found, key, leaf)
            yield leaf, Given(leaf, each.place, json.dumps(found))


def _part(nest: Any, key: str, leaf: str) -> Any:
    if isinstance(nest, dict) and key in nest:
        return nest[key]
    if isinstance(nest, list) and key.isdigit() and int(key) < len(nest):
        return nest[int(key)]
    raise ConfigError(f"argument {leaf} is missing", code="C007")


def _row(host: SimpHost, name: str, value: MPObject) -> dict[str, Any]:
    plain = value.base_type.form is Form.PLAIN
    return {
        "result": name,
        "type": str(value.type),
        "device": value.device.name if value.device is not None else None,
        "secret": not plain,
        "value": _data(fetch(host, value)) if plain else None,
    }


def _data(value: Any) -> Any:
    """Return fetched data as lists, dicts, numbers and texts."""
    if isinstance(value, list):
        return [_data(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if hasattr(value, "to_pylist"):
        return value.to_pylist()
    return value
