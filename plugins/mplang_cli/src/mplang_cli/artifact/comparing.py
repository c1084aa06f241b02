"""Comparison of artifacts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from mplang_analysis import disclosure
from mplang_analysis.ext import quoted

from mplang_cli.artifact.core import Artifact
from mplang_core.ext import print_program, printable, unpack


def diff(
    a: Artifact, b: Artifact, names: tuple[str, str] = ("a", "b"), *, locations: bool = False
) -> list[str]:
    """Compare two artifacts: signature, cluster, packages, what they disclose, graph and code.

    Args:
        a: the one.
        b: the other.
        names: what to call them.
        locations: whether source lines count.

    Returns:
        The lines of a unified diff, as they may be printed; none where they are the same.

    Example:
        >>> import mplang_core as mp
        >>> def artifact(x):
        ...     cluster = mp.ClusterSpec.simple(1)
        ...     return mp.artifact.make(mp.compile(lambda x: x, x, cluster_spec=cluster))
        >>> diff(artifact(1), artifact(2))
        []
        >>> [line for line in diff(artifact(1), artifact(2.0)) if line[0] == "+"][1]
        '+  x: f64[]@{0}'
    """
    one, other = (list(_text(each, locations)) for each in (a, b))
    return [printable(line) for line in difflib.unified_diff(one, other, *names, lineterm="")]


def _text(artifact: Artifact, locations: bool) -> Iterator[str]:
    yield from _section("signature", artifact.signature.lines())
    yield from _section("parties", map(quoted, artifact.cluster.parties))
    yield from _section("devices", map(str, artifact.cluster.devices))
    yield from _section("packages", map(str, artifact.requirements))
    yield from _section("disclosure", _disclosure(artifact, locations))
    graph, _, _ = print_program(artifact.program, locations=locations).partition("\nbuffers {\n")
    yield from graph.splitlines()
    codes = (op.attrs.get("code") for op in artifact.program.graph.walk())
    for code in dict.fromkeys(code for code in codes if isinstance(code, bytes)):
        yield from _section("code", _readable(code))


def _disclosure(artifact: Artifact, locations: bool) -> Iterator[str]:
    """Yield a line for each row of the table, with its columns' names."""
    (table,) = disclosure(artifact.program).tables()
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        yield ", ".join(f"{name} {text}" for name, text in cells if name != "line" or locations)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{title}:"
    yield from (f"  {line}" for line in lines)


def _readable(code: bytes) -> list[str]:
    try:
        return unpack(code).splitlines()
    except ValueError:
        return [f"{len(code)} bytes"]
