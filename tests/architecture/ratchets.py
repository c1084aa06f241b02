"""Counts per package that may only fall, held against ``ratchets.json``; ``make lint`` does it.

python tests/architecture/ratchets.py                # a count above its record is an error
python tests/architecture/ratchets.py --list mplang_data
python tests/architecture/ratchets.py --write        # lower the records to today's counts
python tests/architecture/ratchets.py --accept       # raise them, too; the commit says why
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORDS = Path(__file__).with_name("ratchets.json")

ANY, DOCSTRINGS, NAMES, CLASSES = "Any", "docstrings", "names", "classes"
WHAT = {
    ANY: "uses of Any",
    DOCSTRINGS: "docstrings of functions that begin with no verb of the field",
    NAMES: "names with the words told, found, given, held or place",
    CLASSES: "public classes with the name of another one",
}
VAGUE = {"told", "found", "given", "held", "place"}
"""Words of names that say nothing of what they name."""

_NO_VERBS = """
a all an and another any are as at be both by called each for from has have how if in is it its let
nobody no none not note nothing of on one only or tell that the their there these they this those
to two what when where whether which who whom whose why with
"""
NO_VERBS = frozenset(_NO_VERBS.split())
"""First words of docstrings to avoid: not a verb, or one that no field uses (Have, Let, Tell)."""

Finding = tuple[str, str]
"""The kind of what was counted, and where it is."""


def packages(root: Path = ROOT) -> dict[str, list[Path]]:
    """Return the modules of each package that is published."""
    folders = [root / "mplang_core", *sorted(root.glob("plugins/*/src/*/"))]
    found = {folder.name: sorted(folder.rglob("*.py")) for folder in folders}
    return {name: files for name, files in found.items() if files}


def findings(source: str, file: str) -> Iterator[Finding]:
    """Yield what is counted in a module, but for class names, which count over all."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id == ANY:
            yield ANY, f"{file}:{node.lineno}"
        for name, line in _defined(node):
            if VAGUE & set(name.lower().split("_")):
                yield NAMES, f"{file}:{line} {name}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_property(node):
            document = ast.get_docstring(node) or ""
            if document.partition(" ")[0].lower() in NO_VERBS:
                yield DOCSTRINGS, f"{file}:{node.lineno} {document.partition(chr(10))[0]}"


def _defined(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a node defines, with their lines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, node.lineno
    elif isinstance(node, ast.arg):
        yield node.arg, node.lineno
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node.lineno
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr, node.lineno


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is a property, whose docstring is a noun phrase."""
    return any("property" in ast.unparse(each) for each in node.decorator_list)


def classes(modules: Mapping[str, Sequence[Path]]) -> dict[str, list[str]]:
    """Return where public classes are that share a name, by name."""
    where = defaultdict(list)
    for files in modules.values():
        for file in files:
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    where[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    return {name: lines for name, lines in sorted(where.items()) if len(lines) > 1}


def all_findings() -> dict[str, list[Finding]]:
    """Return what is counted in each package; shared class names are those of ``all``."""
    modules = packages()
    counted = {
        name: [
            each
            for file in files
            for each in findings(file.read_text(encoding="utf-8"), str(file.relative_to(ROOT)))
        ]
        for name, files in modules.items()
    }
    counted["all"] = [
        (CLASSES, f"{name}: {', '.join(lines)}") for name, lines in classes(modules).items()
    ]
    return counted


Counts = dict[str, dict[str, int]]


def counts_of(counted: Mapping[str, Sequence[Finding]]) -> Counts:
    """Return how much was found of each kind, by package."""
    return {
        package: {
            kind: sum(each == kind for each, _ in lines)
            for kind in ([CLASSES] if package == "all" else [ANY, DOCSTRINGS, NAMES])
        }
        for package, lines in counted.items()
    }


def compare(now: Counts, records: Counts) -> tuple[list[str], list[str]]:
    """Return sentences on the counts that rose, and on those that fell."""
    rose, fell = [], []
    for package, kinds in now.items():
        for kind, count in kinds.items():
            record = records.get(package, {}).get(kind, 0)
            text = f"{package}: {count} {WHAT[kind]}, the record is {record}"
            if count != record:
                (rose if count > record else fell).append(text)
    return rose, fell


def lowered(now: Counts, records: Counts) -> Counts:
    """Return records of the packages that there are, lowered to today's counts."""
    return {
        package: {
            kind: min(count, records.get(package, {}).get(kind, count))
            for kind, count in kinds.items()
        }
        for package, kinds in now.items()
    }


def main(arguments: Sequence[str]) -> int:
    """Compare counts with their records; return 1 where one rose."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", metavar="PACKAGE", help="print what is counted of a package")
    parser.add_argument("--write", action="store_true", help="lower the records")
    parser.add_argument("--accept", action="store_true", help="write today's counts, higher or not")
    options = parser.parse_args(arguments)
    counted = all_findings()
    if options.list:
        print(*(f"{kind}: {where}" for kind, where in sorted(counted[options.list])), sep="\n")
        return 0
    now = counts_of(counted)
    records = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    if options.write or options.accept:
        records = now if options.accept else lowered(now, records)
        RECORDS.write_text(json.dumps(records, indent=2) + "\n")
    rose, fell = compare(now, records)
    for text in rose:
        print(f"{text}; --list {text.partition(':')[0]} shows where")
    if fell:
        print(*fell, "lower the records: python tests/architecture/ratchets.py --write", sep="\n")
    total = {kind: sum(each.get(kind, 0) for each in now.values()) for kind in WHAT}
    print("ratchets:", ", ".join(f"{count} {WHAT[kind]}" for kind, count in total.items()))
    return int(bool(rose))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
