"""Provider ``tpm``: measured boot. It proves what a machine has started, and no isolation."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import msgspec
from pydantic import AfterValidator, Field, field_validator

from mplang_core.ext import StrictModel
from mplang_tee.fields import FileContent, Sha256Text
from mplang_tee.provider import AttestationEvidence, AttestationProvider, Expectations
from mplang_tee.providers.tpm_structures import check_signature, read_key, read_quote

MAX_PCR = 23
SECONDS = 30.0
"""Time that the TPM may take for a quote."""


def _is_pcr(index: int) -> int:
    if not 0 <= index <= MAX_PCR:
        raise ValueError(f"a register from 0 to {MAX_PCR}")
    return index


Pcr = Annotated[int, AfterValidator(_is_pcr)]


class TpmExpectations(Expectations):
    """Expected machine with a TPM.

    Attributes:
        ak: file of the public attestation key as ``tpm2_createak -u`` writes it, which the owner
            has pinned; docs/enclaves.md shows how it makes sure that it is of a real TPM.
        pcrs: the registers of the bank of SHA-256, in hexadecimal digits.
    """

    ak: FileContent
    pcrs: dict[Pcr, Sha256Text] = Field(min_length=1)

    @field_validator("ak")
    @classmethod
    def _is_key(cls, data: bytes) -> bytes:
        read_key(data)
        return data


class TpmMaker(StrictModel):
    """Settings to make quotes.

    Attributes:
        tcti: how tpm2-tools reach the TPM, such as ``device:/dev/tpmrm0``.
        ak: the attestation key: a handle such as ``0x81010002``, or the file of its context.
        pcrs: the registers of the bank of SHA-256 that are quoted.
    """

    tcti: str = "device:/dev/tpmrm0"
    ak: str
    pcrs: tuple[Pcr, ...] = Field(min_length=1)


class _Bundle(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A quote as it is sent: TPMS_ATTEST and TPMT_SIGNATURE."""

    message: bytes
    signature: bytes


class Tpm(AttestationProvider):
    """Machines with a TPM."""

    name = "tpm"
    doc = "measured boot by a TPM: which programs were started, and no isolation from who runs it"
    expects = TpmExpectations
    makes = TpmMaker

    def quote(self, maker: TpmMaker, report: bytes) -> bytes:
        """Make a quote of the TPM's registers, by tpm2-tools.

        Raises:
            ValueError: the TPM refuses, or there is none.
        """
        with tempfile.TemporaryDirectory() as folder:
            message, signature = Path(folder, "message"), Path(folder, "signature")
            _run(
                "tpm2_quote", "-T", maker.tcti, "-c", maker.ak,
                "-l", f"sha256:{','.join(map(str, sorted(maker.pcrs)))}", "-g", "sha256",
                "-q", report.hex(), "-m", str(message), "-s", str(signature),
            )  # fmt: skip
            _run("tpm2_flushcontext", "-T", maker.tcti, "-t")
            return msgspec.msgpack.encode(_Bundle(message.read_bytes(), signature.read_bytes()))

    def verify(
        self, expected: TpmExpectations, quote: bytes, report: bytes, seconds: int
    ) -> AttestationEvidence:
        """Verify a quote of a TPM.

        Raises:
            ValueError: it is of another TPM or boot; see :class:`AttestationProvider`.
        """
        try:
            bundle = _decoder.decode(quote)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ValueError(f"it is not a quote of a TPM: {error}") from None
        check_signature(read_key(expected.ak), bundle.message, bundle.signature)
        stated = read_quote(bundle.message)
        if stated.data != report:
            raise ValueError("the quote is not over this session")
        wanted = tuple(sorted(expected.pcrs))
        if stated.pcrs != wanted:
            raise ValueError(
                f"it quotes the registers {_listed(stated.pcrs)}, expected {_listed(wanted)}"
            )
        registers = b"".join(bytes.fromhex(expected.pcrs[index]) for index in wanted)
        if stated.digest != hashlib.sha256(registers).digest():
            raise ValueError(
                f"the registers {_listed(wanted)} have SHA-256 {stated.digest.hex()} together, not "
                "the expected hash: the machine booted other software"
            )
        return AttestationEvidence(registers={f"pcr{i}": expected.pcrs[i] for i in wanted})


def _listed(pcrs: tuple[int, ...]) -> str:
    return ", ".join(map(str, pcrs)) or "none"


def _run(*command: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"{command[0]}: {error}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(f"{command[0]}: {said[0] if said else done.returncode}")


# built at import: msgspec crashes if two threads are the first to use a type
_decoder = msgspec.msgpack.Decoder(_Bundle)

TPM = Tpm()
