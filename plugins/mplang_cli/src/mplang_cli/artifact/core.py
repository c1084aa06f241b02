"""Artifacts and their loading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mplang_analysis.ext import cut_end, quoted

from mplang_cli.artifact.cluster import ClusterSummary
from mplang_cli.artifact.container import Source, read
from mplang_cli.artifact.manifest import Manifest, pack_payload, unpack_payload
from mplang_cli.artifact.requirements import Requirement, ask_for
from mplang_cli.artifact.signature import Signature
from mplang_cli.artifact.sources import Sources
from mplang_cli.artifact.tree import Tree
from mplang_core import Program, TracedFunction, evaluate, verify
from mplang_core.ext import (
    ConfigError,
    Listener,
    Mode,
    SimpHost,
    TraceError,
    VerifyError,
    WireError,
    at,
    flatten,
    from_bytes,
    read_args,
    to_bytes,
)

SHOWN = 500  # columns of what an artifact takes and gives, at a prompt


@dataclass(frozen=True, slots=True)
class Artifact:
    """Program with its manifest, independent of its source.

    Attributes:
        manifest: its signature, cluster and requirements.
        program: the graph, verified.
    """

    manifest: Manifest
    program: Program

    def __repr__(self) -> str:
        return f"<Artifact {cut_end(f'{quoted(self.name)}: {self.signature}', SHOWN)}>"

    @property
    def name(self) -> str:
        """The program's name."""
        return self.manifest.name

    @property
    def digest(self) -> str:
        """The program's digest."""
        return self.manifest.digest

    @property
    def signature(self) -> Signature:
        """What it takes and gives."""
        return self.manifest.signature

    @property
    def cluster(self) -> ClusterSummary:
        """What it was compiled for."""
        return self.manifest.cluster

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The packages that it needs."""
        return self.manifest.requirements

    def to_bytes(self, *, locations: bool = True) -> bytes:
        """Return it as bytes; the same program gives the same bytes.

        Args:
            locations: whether to keep the user's source lines: file name, line, function and text
                of each, no path.
        """
        sources = Sources.of(self.program) if locations else Sources()
        return pack_payload(self.manifest, to_bytes(self.program, locations=locations), sources)

    def run(
        self,
        host: SimpHost,
        *args: Any,
        mode: Mode | None = None,
        listener: Listener | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run it, as ``mp.evaluate`` does.

        Args:
            host: where; its parties have the names of those that it was compiled for.
            *args: values of that host, or arrays and numbers, which become public.
            mode: see ``mp.evaluate``.
            listener: see ``mp.evaluate``.
            **kwargs: arguments by keyword.

        Returns:
            What the function returned, nested likewise and on the same devices.

        Raises:
            TraceError: the arguments or the cluster are others than it was compiled for.
            PartyError: a party failed.
        """
        if not isinstance(host, SimpHost):
            raise ConfigError(
                f"{at()}run takes a host, as mp.Simulator(cluster), got {host!r}", code="C002"
            )
        leaves, struct = read_args(*self.signature.bind(args, kwargs))
        if Tree.of(struct) != self.signature.arguments:
            raise TraceError(
                f"{at()}{self.name} takes {self.signature}, nested as {self.signature.arguments}, "
                f"got {Tree.of(struct)}",
                code="T005",
            )
        given, named = self.signature.arguments.build(leaves)
        traced = self.traced(host.cluster_spec)
        return evaluate(host, traced, *given, mode=mode, listener=listener, **named)

    def traced(self, cluster: Any) -> TracedFunction:
        """Return it as a traced function, its results being on devices of a cluster.

        Raises:
            TraceError: it was compiled for other parties or devices.
        """
        inputs = iter(self.program.graph.inputs)
        leaves = [
            next(inputs).type if leaf.type else leaf.literal for leaf in self.signature.inputs
        ]
        outputs = self.signature.outputs
        devices = self.cluster.devices_of(cluster, [output.device for output in outputs])
        return TracedFunction(
            program=self.program,
            in_struct=flatten(self.signature.arguments.build(leaves))[1],
            in_leaves=tuple(leaves),
            out_struct=flatten(self.signature.result.build(outputs))[1],
            out_devices=tuple(devices),
            out_uniform=tuple(output.uniform for output in outputs),
        )


def load(source: Source) -> Artifact:
    """Read an artifact from a file or bytes, and check all of it.

    Raises:
        WireError: it is not an artifact, of another version, or damaged.
        PluginLoadError: a package that it needs is missing; says which, and the version.
        VerifyError: its program breaks a rule.
    """
    found, program, sources = unpack_payload(read(source))
    ask_for(found.requirements, found.name)
    try:
        graph = from_bytes(program)
        verify(graph)
        found.suits(graph)
        sources.attach(graph)
    except (WireError, VerifyError) as error:
        raise type(error)(f"{error}{_skew(found)}") from error
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise WireError(f"the artifact contradicts itself: {reason}; compile it again") from error
    return Artifact(found, graph)


def manifest(source: Source) -> Manifest:
    """Return the manifest of an artifact; needs no plugin.

    Raises:
        WireError: it is not an artifact, of another version, or damaged.
    """
    return unpack_payload(read(source))[0]


def _skew(found: Manifest) -> str:
    other = [r for r in found.requirements if r.status == "other version"]
    if not other:
        return ""
    named = (f"{quoted(r.distribution)} {quoted(r.version)} (here {r.here})" for r in other)
    return f"\nIt was made with {', '.join(named)}; those versions may read it"
