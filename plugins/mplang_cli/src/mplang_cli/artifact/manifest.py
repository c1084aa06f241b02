"""Manifest of an artifact, readable without plugins."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mplang_cli.artifact.cluster import ClusterSummary
from mplang_cli.artifact.container import close, open_
from mplang_cli.artifact.data import Data
from mplang_cli.artifact.requirements import Requirement
from mplang_cli.artifact.signature import Signature
from mplang_cli.artifact.sources import Sources
from mplang_core import Mask, MPLangError, Program
from mplang_core.ext import Value, WireError, parse_type


class Manifest(Data, frozen=True):
    """Metadata of an artifact: everything except the graph. Types are text and need no plugin.

    Attributes:
        name: the program's.
        digest: the program's.
        signature: what it takes and gives.
        cluster: what it was compiled for.
        requirements: the packages that it needs, each in the version that it was made with.
    """

    name: str
    digest: str
    signature: Signature
    cluster: ClusterSummary
    requirements: tuple[Requirement, ...]

    def check(self) -> None:
        """Check its consistency.

        Raises:
            ValueError: they do not fit.
        """
        self.signature.check()
        self.cluster.check()
        known = {None, *(device.name for device in self.cluster.devices)}
        for output in self.signature.outputs:
            if output.device not in known:
                raise ValueError(f"a result is on {output.device!r}, which is not a device")

    def suits(self, program: Program) -> None:
        """Check that it belongs to a program.

        Raises:
            ValueError: it belongs to another one.
        """
        if (self.name, self.digest) != (program.name, program.digest):
            raise ValueError(
                f"the manifest is of {self.name!r}, digest {self.digest[:12]}, but the program is "
                f"{program.name!r}, digest {program.digest[:12]}"
            )
        if program.mask != Mask.all(len(self.cluster.parties)):
            raise ValueError(f"it runs on {program.mask}, with parties {self.cluster.parties}")
        takes = [leaf.type for leaf in self.signature.inputs if leaf.type]
        _same(takes, program.graph.inputs)
        _same([leaf.type for leaf in self.signature.outputs], program.graph.outputs)


class _Payload(Data, frozen=True):
    manifest: Manifest
    program: bytes
    sources: Sources = Sources()  # none in version 1


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder(_Payload)


def pack_payload(manifest: Manifest, program: bytes, sources: Sources) -> bytes:
    """Return the bytes of an artifact."""
    return close(_encoder.encode(_Payload(manifest, program, sources)))


def unpack_payload(data: bytes) -> tuple[Manifest, bytes, Sources]:
    """Return the manifest, the program's bytes, which are not looked at, and its source lines.

    Raises:
        WireError: it is not an artifact, of another version, or damaged.
    """
    payload = open_(data)
    try:
        found = _decoder.decode(payload)
        found.manifest.check()
    except WireError:
        raise
    except (MPLangError, msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        raise WireError(f"the artifact contradicts itself: {error}; compile it again") from error
    return found.manifest, found.program, found.sources


def _same(written: Sequence[str], values: Sequence[Value]) -> None:
    if [parse_type(text) for text in written] != [value.type for value in values]:
        raise ValueError(
            f"the manifest says {written}, the program {[str(v.type) for v in values]}"
        )
