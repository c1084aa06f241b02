"""Packing a program into one file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from mplang_analysis import parameter_names
from mplang_analysis.ext import quoted

from mplang_cli.artifact.cluster import ClusterSummary
from mplang_cli.artifact.core import Artifact
from mplang_cli.artifact.manifest import Manifest
from mplang_cli.artifact.requirements import requirements_of
from mplang_cli.artifact.signature import Signature
from mplang_core import ClusterSpec, CompiledFunction, Program, TracedFunction, verify
from mplang_core.ext import Cluster, ConfigError, TraceError, at, flatten

Packable: TypeAlias = CompiledFunction[Any] | TracedFunction | Program
"""A function that was compiled for one kind of arguments, or traced; or a bare program."""


def make(subject: Packable | Artifact, cluster: ClusterSpec | None = None) -> Artifact:
    """Make an artifact.

    Args:
        subject: the program.
        cluster: what it was compiled for; a compiled function knows it.

    Raises:
        TraceError: it was traced for no or several kinds of arguments, has captured values of
            a host, or arguments or results that an artifact does not hold.
        PluginLoadError: it has an op that no package provides.
    """
    if isinstance(subject, Artifact):
        return subject
    names: list[str] = []
    target: Cluster | None = cluster
    if isinstance(subject, CompiledFunction):
        traced = subject.traced
        target = cluster or subject.cluster_spec
        names = parameter_names(subject.fn, len(traced.in_leaves))
    else:
        traced = subject if isinstance(subject, TracedFunction) else _bare(subject)
    if not isinstance(target, ClusterSpec):
        raise TraceError(
            f"{at()}an artifact is for a cluster, as mp.ClusterSpec.simple(2)", code="T016"
        )
    if traced.program.mask != target.mask:
        raise TraceError(
            f"{at()}{traced.name} runs on {traced.program.mask}, the cluster has {target.mask}",
            code="T016",
        )
    if traced.captures:
        raise TraceError(
            f"{at()}{traced.name} uses values of a host that it was not given, "
            f"{', '.join(map(repr, traced.captures))}; they belong to a run, not to a program: "
            "make them arguments",
            code="T016",
        )
    verify(traced.program)
    summary = ClusterSummary.of(target)
    signature = Signature.of(traced, names)
    kinds = sorted({d.kind.name for d in _devices(traced, target)})
    needs = requirements_of(traced.program, kinds)
    found = Manifest(traced.name, traced.program.digest, signature, summary, needs)
    try:
        found.check()
    except ValueError as error:
        raise TraceError(
            f"{at()}no artifact can be made of {quoted(found.name)}: {error}", code="T016"
        ) from None
    return Artifact(found, traced.program)


def pack(
    subject: Packable | Artifact, cluster: ClusterSpec | None = None, *, locations: bool = True
) -> bytes:
    """Return a program as an artifact's bytes; see :func:`make` and :meth:`Artifact.to_bytes`.

    Example:
        >>> import mplang_core as mp
        >>> cluster = mp.ClusterSpec.simple(2)
        >>> def swap(x):
        ...     return mp.pshfl_s(x, [0, 1], [1, 0])
        >>> from mplang_cli.artifact import load
        >>> data = pack(mp.compile(swap, 1.5, cluster_spec=cluster))
        >>> print(load(data).signature)
        (x: f64[]@{0, 1}) -> f64[]@{0, 1}
        >>> with mp.Simulator(cluster) as sim:
        ...     mp.fetch(sim, load(data).run(sim, 7.0))
        [array(7.), array(7.)]
    """
    return make(subject, cluster).to_bytes(locations=locations)


def save(
    path: str | Path,
    subject: Packable | Artifact,
    cluster: ClusterSpec | None = None,
    *,
    locations: bool = True,
) -> None:
    """Write a program to a file, ``.mpl`` by custom; see :func:`pack`."""
    data = pack(subject, cluster, locations=locations)
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}", code="C005") from error


def _bare(program: Program) -> TracedFunction:
    if not isinstance(program, Program):
        raise TraceError(
            f"{at()}an artifact is made of what mp.compile or mp.trace gives, or of a program, got "
            f"a {type(program).__name__}",
            code="T016",
        )
    inputs = tuple(value.type for value in program.graph.inputs)
    outputs = tuple(value.type for value in program.graph.outputs)
    nothing = (None,) * len(outputs), (False,) * len(outputs)
    return TracedFunction(program, flatten((inputs, {}))[1], inputs, flatten(outputs)[1], *nothing)


def _devices(traced: TracedFunction, cluster: ClusterSpec) -> Iterator[Any]:
    return (cluster.device(device.name) for device in traced.out_devices if device is not None)
