"""Plugin hooks of the HTTP backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.ext import BackendSpec, Check, SimpHost, hookimpl, make_host


def _connect(cluster: Any, **options: Any) -> SimpHost:
    from mplang_http.driver import SimpHttpDriver

    return make_host("http", SimpHttpDriver, cluster, options)


@hookimpl
def mplang_backends() -> Sequence[BackendSpec]:
    """Return the HTTP backend."""
    return [BackendSpec("http", _connect, "Workers in processes of their own, one port each.")]


@hookimpl
def mplang_doctor() -> Sequence[Check]:
    """Return whether the engines of a worker can be confined on this machine."""
    from mplang_http.confinement import has_seccomp, landlock_version

    version = landlock_version()
    files = (
        f"Landlock {version}"
        if version
        else "no Landlock here, so code in an engine could read what the worker's user can, "
        "the key included; Linux 5.13 or later has it, unless lsm= leaves it out"
    )
    calls = (
        "seccomp"
        if has_seccomp()
        else "not known for this machine, so code in an engine could connect, and reach other "
        "processes of its user; run workers on x86-64 or ARM64"
    )
    return [
        Check("engines reach no files of the worker", version > 0, files),
        Check("engines reach no network and no process", has_seccomp(), calls),
    ]
