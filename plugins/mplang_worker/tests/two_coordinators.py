"""Worker of two coordinators, one of whom is hostile: his ops run any Python in an engine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mplang_http import LocalCluster
from mplang_http.tls.files import TlsFiles
from mplang_worker.tls.keygen import make_certificates


def certificates(folder: Path) -> Mapping[str, TlsFiles]:
    """Return the certificates of the worker ``alice``, and of two coordinators."""
    return make_certificates(folder, ["alice", "host", "other"])


@contextlib.contextmanager
def worker_of_two(files: Mapping[str, TlsFiles], **options: Any) -> Iterator[LocalCluster]:
    """Run the worker ``alice``, with the op of ``intruder`` and those of the kit.

    Args:
        files: certificates, as above.
        **options: further fields of its configuration.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        with LocalCluster(
            ["alice"],
            tls=files,
            coordinators=("host", "other"),
            imports=("intruder", "mplang_testing.dialect"),
            **options,
        ) as made:
            yield made
