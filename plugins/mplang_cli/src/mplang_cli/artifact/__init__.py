"""Program artifacts: programs in one file, independent of their source.

Example:
    >>> import mplang_core as mp
    >>> cluster = mp.ClusterSpec.simple(2)
    >>> compiled = mp.compile(lambda x: mp.pshfl_s(x, 1, [0]), 1, cluster_spec=cluster)
    >>> data = mp.artifact.pack(compiled)
    >>> mp.artifact.load(data).digest == compiled.program.digest
    True
"""

from mplang_cli.artifact.cluster import ClusterSummary, DeviceSummary
from mplang_cli.artifact.comparing import diff
from mplang_cli.artifact.container import ARTIFACT_VERSION
from mplang_cli.artifact.core import Artifact, load, manifest
from mplang_cli.artifact.inspecting import Inspection, inspect
from mplang_cli.artifact.manifest import Manifest
from mplang_cli.artifact.packing import make, pack, save
from mplang_cli.artifact.requirements import Requirement
from mplang_cli.artifact.signature import Input, Output, Signature
from mplang_cli.artifact.tree import Tree

__all__ = [
    "ARTIFACT_VERSION",
    "Artifact",
    "ClusterSummary",
    "DeviceSummary",
    "Input",
    "Inspection",
    "Manifest",
    "Output",
    "Requirement",
    "Signature",
    "Tree",
    "diff",
    "inspect",
    "load",
    "make",
    "manifest",
    "pack",
    "save",
]


def __dir__() -> list[str]:
    """Return the names that are for users."""
    return sorted(__all__)
