"""Plugin hooks of the worker: what ``mplang doctor`` checks."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from mplang_core.ext import Check, ConfigError, hookimpl


@hookimpl
def mplang_doctor(config: str | None) -> Sequence[Check]:
    """Return whether engines are confined and limited here, and checks of a configuration."""
    from mplang_confinement import has_seccomp, landlock_version

    from mplang_worker.process.cgroups import why_not

    version = landlock_version()
    files = (
        f"Landlock {version}"
        if version
        else "no Landlock here, so code in an engine, and what a source of data contains, could "
        "read what the worker's user can, the key included; Linux 5.13 or later has it, unless "
        "lsm= leaves it out"
    )
    calls = (
        "seccomp"
        if has_seccomp()
        else "not known for this machine, so code in an engine could connect, and reach other "
        "processes of its user; run workers on x86-64 or ARM64"
    )
    reason = why_not()
    memory = (
        "cgroups"
        if not reason
        else f"no cgroups for this process: {reason}; limits.memory then leaves out memory files "
        "that an engine writes and does not map; a worker as in deploy/ has cgroups of its own"
    )
    return [
        Check("engines reach no files of the worker", version > 0, files),
        Check("engines reach no network and no process", has_seccomp(), calls),
        Check("all memory of engines is limited", not reason, memory),
        *(() if config is None else _configuration(config)),
    ]


def _configuration(path: str) -> Iterator[Check]:
    """Yield checks of a worker's configuration."""
    from mplang_worker.base.config import WorkerConfig
    from mplang_worker.process.imports import check_installed
    from mplang_worker.tls.certificates import ALARM, Certificates

    try:
        config = WorkerConfig.from_yaml(path)
        check_installed(config)
        certificates = Certificates.of(config)
    except ConfigError as error:
        yield Check(path, False, "; ".join(str(error).splitlines()))  # one per field
        return
    yield Check(path, True, f"of {config.name}")
    if config.insecure:
        detail = (
            "insecure: true is for debugging. It permits protocols whose first member reads all "
            "data, and lets MPC processes whose native services declare it use the network, over "
            "unencrypted links (engines never may). Leave it out where data is private"
        )
        yield Check(f"{config.name} runs secure protocols only", False, detail)
    if certificates is not None:
        left = certificates.expires - datetime.datetime.now(datetime.UTC)
        detail = f"expires in {left.days} days, on {certificates.expires:%Y-%m-%d}"
        yield Check(f"certificate of {config.name}", left > ALARM, detail)
