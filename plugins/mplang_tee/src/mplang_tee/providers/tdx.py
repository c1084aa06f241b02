"""Provider ``tdx``: a virtual machine of Intel TDX, isolated from its host.

References:
    Intel TDX Module Base Specification, TDREPORT_STRUCT and TD attributes; Linux, configfs-tsm
    (Documentation/ABI/testing/configfs-tsm-report).
"""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import replace
from pathlib import Path

from mplang_core.ext import StrictModel
from mplang_tee.fields import AnyOf384
from mplang_tee.provider import AttestationEvidence
from mplang_tee.providers.dcap import (
    DcapExpectations,
    DcapProvider,
    check_registers,
    verified_report,
)

FOLDER = "/sys/kernel/config/tsm/report"
REGISTERS = {
    "mrtd": "mr_td",
    "mrseam": "mr_seam",
    "rtmr0": "rt_mr0",
    "rtmr1": "rt_mr1",
    "rtmr2": "rt_mr2",
    "rtmr3": "rt_mr3",
}
DEBUG, MIGRATABLE = 0xFF, 1 << 29
KERNEL_NAME = "tdx_guest"
ATTEMPTS = 3


class TdxExpectations(DcapExpectations):
    """Expected machine of TDX; each register may have one of several values.

    Attributes:
        mrtd: the machine as it was made: its firmware.
        mrseam: the TDX module.
        rtmr0: the firmware's configuration.
        rtmr1: the kernel, or what starts it.
        rtmr2: its command line, the initial file system.
        rtmr3: what is measured later; zeros if nothing is.
    """

    mrtd: AnyOf384
    mrseam: AnyOf384
    rtmr0: AnyOf384
    rtmr1: AnyOf384
    rtmr2: AnyOf384
    rtmr3: AnyOf384


class TdxMaker(StrictModel):
    """Settings to make quotes.

    Attributes:
        folder: of the kernel's interface, which root writes to.
    """

    folder: Path = Path(FOLDER)


class Tdx(DcapProvider):
    """Virtual machines of Intel TDX."""

    name = "tdx"
    doc = "a virtual machine of Intel TDX, isolated from who runs its host"
    expects = TdxExpectations
    makes = TdxMaker

    def quote(self, maker: TdxMaker, report: bytes) -> bytes:
        """Make a quote by the kernel's interface. Nobody has tried it on such hardware yet.

        Raises:
            ValueError: the machine is none of TDX, this process may not write there, or others ask
                at the same time.
        """
        entry = maker.folder / f"mplang-{secrets.token_hex(8)}"
        try:
            entry.mkdir()
        except OSError as error:
            raise ValueError(
                f"{maker.folder}: {error.strerror}; is this a guest of TDX, with configfs mounted, "
                "and may this user write there?"
            ) from None
        try:
            for _ in range(ATTEMPTS):
                before = _generation(entry)
                (entry / "inblob").write_bytes(report)
                quote = (entry / "outblob").read_bytes()
                by = (entry / "provider").read_text().strip()
                if by != KERNEL_NAME:
                    raise ValueError(f"this machine quotes by {by!r}, not by {KERNEL_NAME!r}")
                if _generation(entry) == before + 1:
                    return quote
            raise ValueError("somebody else writes to the same entry of the kernel's interface")
        finally:
            with contextlib.suppress(OSError):
                os.rmdir(entry)

    def verify(
        self, expected: TdxExpectations, quote: bytes, report: bytes, seconds: int
    ) -> AttestationEvidence:
        """Verify a quote of TDX.

        Raises:
            ValueError: it is of another machine; see :class:`AttestationProvider`.
        """
        body, evidence = verified_report(expected, quote, report, seconds, "TDX")
        attributes = int.from_bytes(body.td_attributes, "little")
        if attributes & DEBUG:
            raise ValueError("the machine can be debugged, so its host reads it")
        if attributes & MIGRATABLE or any(getattr(body, "mr_service_td", b"")):
            raise ValueError("the machine is bound to another one that may move it")
        registers = {name: getattr(body, field).hex() for name, field in REGISTERS.items()}
        check_registers(registers, {name: getattr(expected, name) for name in REGISTERS})
        return replace(evidence, registers=registers)


def _generation(entry: Path) -> int:
    return int((entry / "generation").read_text())


TDX = Tdx()
