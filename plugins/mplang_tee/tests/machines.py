"""A machine with a TPM, by swtpm, and the devices of tests."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mplang_testing.waiting import wait_until

import mplang_core as mp

PCR = 16  # which a test may extend, and reset
MEASURED = hashlib.sha256(b"a program").hexdigest()
EXPECTED = hashlib.sha256(bytes(32) + bytes.fromhex(MEASURED)).hexdigest()


NOBODY = 65_534
UNPRIVILEGED: dict[str, Any] = (
    {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
)
"""Who runs a TPM and its tools: never root."""


class Machine:
    """A TPM with an endorsement key, an attestation key, and a program in a register."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tcti = f"swtpm:path={folder}/tpm"
        self.tool("tpm2_createek", "-c", "ek.ctx", "-G", "ecc", "-u", "ek.pem", "-f", "pem")
        self.tool(
            "tpm2_createak", "-C", "ek.ctx", "-c", "ak.ctx", "-G", "ecc", "-g", "sha256",
            "-s", "ecdsa", "-u", "ak.pub", "-n", "ak.name",
        )  # fmt: skip
        self.flush()
        self.extend(MEASURED)

    def tool(self, name: str, *arguments: str) -> bytes:
        command = [name, "-T", self.tcti, *arguments]
        return subprocess.run(
            command,
            cwd=self.folder,
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            **UNPRIVILEGED,
        ).stdout

    def flush(self) -> None:
        self.tool("tpm2_flushcontext", "-t")

    def extend(self, digest: str) -> None:
        self.tool("tpm2_pcrextend", f"{PCR}:sha256={digest}")

    @property
    def maker(self) -> dict[str, object]:
        return {"tcti": self.tcti, "ak": str(self.folder / "ak.ctx"), "pcrs": [PCR]}

    @property
    def expected(self) -> dict[str, object]:
        return {"ak": str(self.folder / "ak.pub"), "pcrs": {PCR: EXPECTED}}


@contextlib.contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    """Start a TPM in a folder whose path is short, as sockets need, for a user without rights."""
    if UNPRIVILEGED:
        os.chown(folder, NOBODY, NOBODY)
    at = [
        "--ctrl",
        f"type=unixio,path={folder}/tpm.ctrl",
        "--server",
        f"type=unixio,path={folder}/tpm",
    ]
    process = subprocess.Popen(
        ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={folder}", *at,
         "--flags", "not-need-init,startup-clear"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        **UNPRIVILEGED,
    )  # fmt: skip
    try:
        wait_until(lambda: os.path.exists(folder / "tpm") and os.path.exists(folder / "tpm.ctrl"))
        yield Machine(folder)
    finally:
        process.kill()
        process.wait()


def cluster(provider: str = "tdx") -> mp.ClusterSpec:
    """Return a bank, a shop, and a cloud with an enclave."""
    names = ("bank", "shop", "cloud")
    devices = {name[0].upper(): {"kind": "PPU", "members": [name]} for name in names} | {
        "T": {"kind": "TEE", "members": ["cloud"], "config": {"provider": provider}}
    }
    return mp.ClusterSpec.from_dict(
        {"nodes": [{"name": name} for name in names], "devices": devices}
    )
