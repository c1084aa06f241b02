"""Reports of the sweep: the record, the table of the documents, counts, and what is wrong.

The record has a row per function, backend, protocol and types that come out alike: the outcomes by
shape, a letter of ``sweep_cells.OUTCOMES`` for each input, and the reason of a refusal.
"""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import sweep_calls
import sweep_inputs
import sweep_written

ROOT = pathlib.Path(__file__).parents[3]
RECORD = pathlib.Path(__file__).parent / "golden/sweep.tsv"
PAGE = ROOT / "docs/array-functions.md"
BEGIN, END = "<!-- sweep: by make sweep -->\n", "<!-- end of sweep -->\n"

Key = tuple[str, str, str, str, str]  # host, protocol, shape, dtype, name
SHAPES = [*sweep_inputs.SHAPES, *sweep_inputs.SQUARE]
HEAD = ["function", "backend", "protocol", "types", *SHAPES, "reasons"]
SHORT = {"float32": "f32", "float64": "f64", "int8": "i8", "int32": "i32", "int64": "i64",
         "uint8": "u8", "uint32": "u32", "bool": "bool"}  # fmt: skip
COLUMNS = {
    "right": "=fb",
    "refused": "rRe",
    "off, said while compiling": "c",
    "off, said when it runs": "su",
    "off, not said": "!U",
    "failed": "xkt",
}
"""Columns of the summary, and their outcomes."""
RIGHT, WRONG, SILENT = frozenset("=f"), frozenset("sc!uU"), frozenset("!U")


# -- the record


def write_record(found: Mapping[Key, Mapping[str, Any]], path: pathlib.Path = RECORD) -> None:
    """Write what was measured."""
    lines: dict[Any, dict[str, tuple[str, str]]] = collections.defaultdict(dict)
    for (host, protocol, shape, dtype, name), line in found.items():
        if line["letters"]:
            lines[name, host, protocol, dtype][shape] = line["letters"], line.get("reason", "")
    alike: dict[Any, list[str]] = collections.defaultdict(list)
    for (name, host, protocol, dtype), of_shape in lines.items():
        letters = tuple(of_shape.get(shape, (".", ""))[0] for shape in SHAPES)
        reasons = ", ".join(sorted({reason for _, reason in of_shape.values() if reason}))
        alike[name, host, protocol, letters, reasons].append(dtype)
    rows = [
        [name, host, protocol, " ".join(sorted(dtypes)), *letters, reasons]
        for (name, host, protocol, letters, reasons), dtypes in alike.items()
    ]
    text = "\n".join("\t".join(row).rstrip() for row in [HEAD, *sorted(rows)])
    path.write_text(text + "\n", encoding="utf-8")


def read_record(path: pathlib.Path = RECORD) -> dict[Key, dict[str, Any]]:
    """Return what the record has, as what was measured."""
    found: dict[Key, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        cells = [*line.split("\t"), ""][: len(HEAD)]
        name, host, protocol, types = cells[:4]
        for dtype in types.split():
            for shape, letters in zip(SHAPES, cells[4 : 4 + len(SHAPES)], strict=True):
                if letters != ".":
                    key = host, protocol, shape, dtype, name
                    found[key] = {"letters": letters, "reason": cells[-1]}
    return found


def lost(
    before: Mapping[Key, Mapping[str, Any]], now: Mapping[Key, Mapping[str, Any]]
) -> list[str]:
    """Return what was right before and is not now, or is newly wrong without a word."""
    made = []
    for key in sorted(before.keys() & now.keys()):
        for kind, old, new in zip(
            sweep_inputs.INPUTS, before[key]["letters"], now[key]["letters"], strict=False
        ):
            if (old in RIGHT and new not in RIGHT) or (new in SILENT and old not in SILENT):
                made.append(f"{' '.join(key)} {kind}: {old} became {new}")
    return made


# -- counts


def counts(found: Mapping[Key, Mapping[str, Any]]) -> str:
    """Return a table of the number of outcomes."""
    total: dict[Any, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for (host, protocol, *_), line in found.items():
        total[host, protocol].update(line["letters"])
    rows = [
        f"{host} {protocol}: " + ", ".join(f"{letter} {n}" for letter, n in sorted(each.items()))
        for (host, protocol), each in sorted(total.items())
    ]
    return "\n".join(rows)


def summary(found: Mapping[Key, Mapping[str, Any]]) -> str:
    """Return a table of what was measured, in cells: a function on a type, a shape and an input."""
    total: dict[Any, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for (host, protocol, shape, dtype, _), line in found.items():
        total[host, protocol, shape, SHORT[dtype]].update(line["letters"].replace("-", ""))
    heads = ["backend", "protocol", "shape", "type", "cells", *COLUMNS]
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for place, each in sorted(total.items()):
        parts = [sum(each[letter] for letter in letters) for letters in COLUMNS.values()]
        lines.append(f"| {' | '.join(map(str, [*place, sum(parts), *parts]))} |")
    return "\n".join(lines) + "\n"


def wrong(found: Mapping[Key, Mapping[str, Any]], letters: str) -> str:
    """Return what has given outcomes, a line per function, with its first detail."""
    made: dict[Any, tuple[list[str], str]] = {}
    for (host, protocol, shape, dtype, name), line in sorted(found.items()):
        for letter in dict.fromkeys(line["letters"]):
            if letter in letters:
                text = line.get("details", {}).get(letter, "")
                cells = made.setdefault((letter, name), ([], text))[0]
                cells.append(f"{protocol[0]}{host[0]}:{SHORT[dtype]}[{shape}]")
    return "\n".join(
        f"{letter} {name}: {' '.join(cells[:9])}{' …' * (len(cells) > 9)} | {text}"
        for (letter, name), (cells, text) in sorted(made.items())
    )


# -- the table of the documents


def table(found: Mapping[Key, Mapping[str, Any]]) -> str:
    """Return tables by module; functions with the same outcomes share a row."""
    modules: dict[str, dict[str, dict[str, list[Mapping[str, Any]]]]] = {}
    for (_, _, _, dtype, name), line in found.items():
        if line["letters"].strip("-"):
            module = _module_of(name)
            of = modules.setdefault(module, {}).setdefault(name, {})
            of.setdefault(dtype, []).append(line)
    return "\n".join(_of_module(name, modules[name]) for name in sorted(modules))


def _module_of(name: str) -> str:
    """Return the module whose table has a function: the small ones of SciPy share two."""
    module = name.partition("(")[0].rpartition(".")[0]
    if module.startswith("scipy."):
        return "scipy.stats" if module.startswith("scipy.stats.") else "scipy"
    return module


def _of_module(module: str, of: Mapping[str, Mapping[str, list[Mapping[str, Any]]]]) -> str:
    alike: dict[tuple[str, ...], list[str]] = collections.defaultdict(list)
    for name, by_dtype in sorted(of.items()):
        alike[_row(by_dtype)].append(f"`{name.removeprefix(module + '.')}`")
    lines = [f"## {module}\n", "| functions | run on | off on | at edges, off on | refused |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for row, names in sorted(alike.items(), key=lambda each: each[1]):
        lines.append(f"| {', '.join(names)} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _row(by_dtype: Mapping[str, list[Mapping[str, Any]]]) -> tuple[str, ...]:
    run, off, edge, refused = [], [], [], []
    reasons: set[str] = set()
    for dtype, lines in by_dtype.items():
        plain = {letter for line in lines for letter in line["letters"][:2]}
        last = {letter for line in lines for letter in line["letters"][2:]}
        if plain & set("rR"):
            refused.append(dtype)
            reasons |= {
                line["reason"] or "other" for line in lines if set(line["letters"]) & {*"rR"}
            }
        elif plain <= RIGHT | {"-", "b"}:
            run.append(dtype)
        else:
            off.append(dtype)
        if last & WRONG and dtype in run:
            edge.append(dtype)
    why = f"{_types(refused)}: {', '.join(sorted(reasons))}" if refused else ""
    return _types(run), _types(off), _types(edge), why


def _types(names: Iterable[str]) -> str:
    names = set(names)
    if names == set(SHORT):
        return "all"
    return " ".join(short for name, short in SHORT.items() if name in names)


def _list(title: str, names: Iterable[str]) -> str:
    if not names:
        return ""
    return f"## {title}\n\n{', '.join(f'`{name}`' for name in sorted(names))}.\n\n"


def write_page(found: Mapping[Key, Mapping[str, Any]]) -> None:
    """Write the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    not_called = {why: names.split() for why, names in sweep_written.NOT_CALLED.items()}
    known = {name for *_, name in found}.union(*not_called.values())
    missing = {each.name for each in sweep_calls.functions()} - known
    lists = [_list(f"Not called: {why}", names) for why, names in not_called.items()]
    lists.append(_list("Not measured", missing))
    made = f"\n{table(found)}\n{''.join(lists)}## Measured cells\n\n{summary(found)}\n"
    PAGE.write_text(text[:start] + made + text[end:], encoding="utf-8")
