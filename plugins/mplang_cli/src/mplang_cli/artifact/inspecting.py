"""Inspection of artifacts, as tables and as data."""

from __future__ import annotations

import collections
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mplang_analysis import Disclosure, Report, TextTable, disclosure
from mplang_analysis.ext import Part, quoted

from mplang_cli.artifact.container import ARTIFACT_VERSION, Source, read
from mplang_cli.artifact.core import load
from mplang_cli.artifact.manifest import Manifest, unpack_payload
from mplang_cli.artifact.requirements import Requirement
from mplang_core import MPLangError, Program


@dataclass(frozen=True, slots=True)
class Inspection(Report):
    """Contents of an artifact.

    Attributes:
        manifest: all but the graph.
        program: the graph; ``None`` where it cannot be read here.
        trouble: why it cannot.
        discloses: what it discloses to whom.
    """

    manifest: Manifest
    program: Program | None
    trouble: str
    discloses: Disclosure | None

    @property
    def ops(self) -> dict[str, int]:
        """The number of uses of each opcode."""
        found = [op.opcode for op in self.program.graph.walk()] if self.program else []
        return dict(sorted(collections.Counter(found).items()))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        found, signature = self.manifest, self.manifest.signature
        inputs = zip(signature.names, signature.inputs, strict=True)
        outputs = zip(signature.results, signature.outputs, strict=True)
        return {
            "name": found.name,
            "digest": found.digest,
            "format": ARTIFACT_VERSION,
            "arguments": str(signature.arguments),
            "inputs": [{"name": n, "type": i.type, "literal": i.literal} for n, i in inputs],
            "result": str(signature.result),
            "outputs": [{"name": n, "type": o.type, "device": o.device} for n, o in outputs],
            "parties": list(found.cluster.parties),
            "devices": [
                {
                    "name": device.name,
                    "kind": device.kind,
                    "members": list(device.members),
                    "config": json.loads(device.config),
                }
                for device in found.cluster.devices
            ],
            "ops": self.ops if self.program else None,
            "requirements": [_requirement(each) for each in found.requirements],
            "trouble": self.trouble,
            "disclosure": self.discloses.to_dict() if self.discloses else None,
        }

    def tables(self) -> list[TextTable]:
        """Return what it takes and gives, needs and does."""
        found, signature = self.manifest, self.manifest.signature
        needs = found.requirements
        shown = [
            _facts(
                quoted(found.name),
                [
                    ("digest", found.digest),
                    ("format", str(ARTIFACT_VERSION)),
                    *((f"party {i}", quoted(n)) for i, n in enumerate(found.cluster.parties)),
                    *((f"device {quoted(d.name)}", d.told) for d in found.cluster.devices),
                ],
            ),
            _facts("What it takes", signature.shown),
            _facts("What it gives", signature.shown_results),
            TextTable(
                "What it needs",
                ["package", "made with", "here", "status"],
                [
                    [quoted(n.distribution), quoted(n.version), n.here or "-", n.status]
                    for n in needs
                ],
                [i for i, n in enumerate(needs) if n.status != "ok"],
            ),
        ]
        if self.program is not None:
            shown.append(_facts("Its ops", ((op, str(n)) for op, n in self.ops.items())))
        return [table for table in shown if table.rows]

    def remarks(self) -> Sequence[str]:
        """Return what could not be shown."""
        return [f"The program itself cannot be read here: {self.trouble}"] if self.trouble else []

    def parts(self, drawings: bool = True) -> Sequence[Part]:
        """Return the tables, then what it discloses."""
        told = self.discloses.parts(drawings) if self.discloses else []
        return [*Report.parts(self), *told]


def inspect(source: Source) -> Inspection:
    """Return the contents of an artifact; without its program if a plugin is missing.

    Raises:
        WireError: it is not an artifact, of another version, or damaged.
        VerifyError: its program breaks a rule, though all that it needs is here.

    Example:
        >>> import mplang_core as mp
        >>> cluster = mp.ClusterSpec.simple(2)
        >>> data = mp.artifact.pack(mp.compile(lambda x: x, 1, cluster_spec=cluster))
        >>> inspect(data).to_dict()["inputs"]
        [{'name': 'x', 'type': 'i64[]@{0, 1}', 'literal': None}]
    """
    data = read(source)
    found, *_ = unpack_payload(data)
    try:
        program = load(data).program
        return Inspection(found, program, "", disclosure(program, names=found.cluster.parties))
    except MPLangError as error:
        if all(each.status == "ok" for each in found.requirements):
            raise
        return Inspection(found, None, str(error), None)


def _facts(title: str, rows: Any) -> TextTable:
    return TextTable(title, ["name", "value"], [list(row) for row in rows])


def _requirement(each: Requirement) -> dict[str, Any]:
    return {
        "package": each.distribution,
        "made with": each.version,
        "here": each.here,
        "status": each.status,
        "brings": list(each.brings),
    }
