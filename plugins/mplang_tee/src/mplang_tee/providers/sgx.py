"""Provider ``sgx``: an enclave of Intel SGX. Its quotes are verified; none are made here.

References:
    Intel SDM, volume 3D, ATTRIBUTES.
"""

from __future__ import annotations

from dataclasses import replace

from mplang_tee.fields import AnyOf256
from mplang_tee.provider import AttestationEvidence
from mplang_tee.providers.dcap import (
    DcapExpectations,
    DcapProvider,
    check_registers,
    verified_report,
)

INITIALIZED, DEBUG = 0x01, 0x02


class SgxExpectations(DcapExpectations):
    """Expected enclave of SGX.

    Attributes:
        mrenclave: the enclave as it was made; any of these.
    """

    mrenclave: AnyOf256


class Sgx(DcapProvider):
    """Enclaves of Intel SGX."""

    name = "sgx"
    doc = "an enclave of Intel SGX, isolated from who runs its machine"
    expects = SgxExpectations

    def verify(
        self, expected: SgxExpectations, quote: bytes, report: bytes, seconds: int
    ) -> AttestationEvidence:
        """Verify a quote of SGX.

        Raises:
            ValueError: it is of another enclave; see :class:`AttestationProvider`.
        """
        body, evidence = verified_report(expected, quote, report, seconds, "SGX")
        if body.attributes[0] & (INITIALIZED | DEBUG) != INITIALIZED:
            raise ValueError(
                "the enclave can be debugged, or is not initialized: its host reads it"
            )
        registers = {"mrenclave": body.mr_enclave.hex()}
        check_registers(registers, {"mrenclave": expected.mrenclave})
        return replace(evidence, registers=registers)


SGX = Sgx()
