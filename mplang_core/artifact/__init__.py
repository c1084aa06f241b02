"""A program in one file: it runs without its source.

Example:
    >>> import mplang_core as mp
    >>> cluster = mp.ClusterSpec.simple(2)
    >>> compiled = mp.compile(lambda x: mp.pshfl_s(x, 1, [0]), 1, cluster_spec=cluster)
    >>> data = mp.artifact.pack(compiled)
    >>> mp.artifact.load(data).digest == compiled.program.digest
    True
"""

from mplang_core.artifact.cluster import ClusterSummary, DeviceSummary
from mplang_core.artifact.comparing import diff
from mplang_core.artifact.container import ARTIFACT_VERSION
from mplang_core.artifact.core import Artifact, load, manifest
from mplang_core.artifact.inspecting import Inspection, inspect
from mplang_core.artifact.manifest import Manifest
from mplang_core.artifact.packing import make, pack, save
from mplang_core.artifact.requirements import Requirement
from mplang_core.artifact.signature import Input, Output, Signature
from mplang_core.artifact.tree import Tree

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
