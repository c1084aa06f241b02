"""Provider ``tpm``: measured boot. It proves what a machine has started, and no isolation.

References:
    TCG, TPM 2.0 Library Specification, part 2: 10.12.8 (TPMS_ATTEST), 10.9.7 (TPML_PCR_SELECTION),
    11.3.4 (TPMT_SIGNATURE).
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import msgspec
from pydantic import AfterValidator, Field, field_validator

from mplang_core.ext import StrictModel
from mplang_tee.fields import FileContent, Sha256Text
from mplang_tee.provider import AttestationEvidence, AttestationProvider, Expectations

GENERATED, ATTEST_QUOTE = 0xFF544347, 0x8018
ALG_SHA256, ALG_RSASSA, ALG_ECDSA = 0x000B, 0x0014, 0x0018
MAX_PCR = 23
SECONDS = 30.0
"""Time that the TPM may take for a quote."""


def _is_pcr(index: int) -> int:
    if not 0 <= index <= MAX_PCR:
        raise ValueError(f"a register from 0 to {MAX_PCR}")
    return index


Pcr = Annotated[int, AfterValidator(_is_pcr)]


class TpmExpectations(Expectations):
    """What an owner takes for a machine with a TPM.

    Attributes:
        ak: file of the public attestation key in PEM, which the owner has pinned; docs/enclaves.md
            shows how it makes sure that it is of a real TPM.
        pcrs: the registers of the bank of SHA-256, in hexadecimal digits.
    """

    ak: FileContent
    pcrs: dict[Pcr, Sha256Text] = Field(min_length=1)

    @field_validator("ak")
    @classmethod
    def _is_key(cls, data: bytes) -> bytes:
        _key_of(data)
        return data


class TpmMaker(StrictModel):
    """What making quotes needs.

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


class _Attested(NamedTuple):
    """What a TPM states."""

    data: bytes
    pcrs: tuple[int, ...]
    digest: bytes


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
            raise ValueError(f"it is no quote of a TPM: {error}") from None
        _check_signature(expected.ak, bundle)
        stated = _attested(bundle.message)
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
                f"the registers {_listed(wanted)} have SHA-256 {stated.digest.hex()} together, and "
                "not that of what is expected: the machine has started something else"
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


# -- verification


class _Reader:
    """Reads a structure of a TPM; numbers are big-endian.

    Args:
        data: the structure.
    """

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def take(self, size: int) -> bytes:
        if size > len(self._data):
            _malformed()
        taken, self._data = self._data[:size], self._data[size:]
        return bytes(taken)

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def sized(self) -> bytes:
        return self.take(self.number(2))

    def end(self) -> None:
        if self._data:
            _malformed()


def _malformed() -> NoReturn:
    raise ValueError("it is no quote of a TPM: a structure is malformed")


def _attested(message: bytes) -> _Attested:
    """Read TPMS_ATTEST of a quote."""
    reader = _Reader(message)
    if (reader.number(4), reader.number(2)) != (GENERATED, ATTEST_QUOTE):
        raise ValueError("it is no quote that a TPM has made")
    reader.sized()  # name of the signer
    data = reader.sized()
    reader.take(8 + 4 + 4 + 1 + 8)  # clock, resets, restarts, safe; version of the firmware
    if reader.number(4) != 1 or reader.number(2) != ALG_SHA256:
        raise ValueError("it quotes another bank of registers than that of SHA-256")
    chosen = reader.take(reader.number(1))
    digest = reader.sized()
    reader.end()
    pcrs = [8 * i + bit for i, byte in enumerate(chosen) for bit in range(8) if byte >> bit & 1]
    return _Attested(data, tuple(pcrs), digest)


def _check_signature(pem: bytes, bundle: _Bundle) -> None:
    """Verify TPMT_SIGNATURE over TPMS_ATTEST by the attestation key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    reader, key = _Reader(bundle.signature), _key_of(pem)
    scheme, algorithm = reader.number(2), reader.number(2)
    if (scheme, algorithm) != (key.scheme, ALG_SHA256):
        raise ValueError("it is signed by another algorithm than its key's with SHA-256")
    try:
        if scheme == ALG_ECDSA:
            r, s = (int.from_bytes(reader.sized(), "big") for _ in range(2))
            reader.end()
            key.public.verify(encode_dss_signature(r, s), bundle.message, ECDSA(SHA256()))
        else:
            signature = reader.sized()
            reader.end()
            key.public.verify(signature, bundle.message, PKCS1v15(), SHA256())
    except InvalidSignature:
        raise ValueError("it is not signed by the attestation key that is pinned") from None


class _Key(NamedTuple):
    """Attestation key.

    Attributes:
        public: the key of the library.
        scheme: the algorithm that it signs by.
    """

    public: Any
    scheme: int


def _key_of(pem: bytes) -> _Key:
    """Return a key by its PEM.

    Raises:
        ValueError: it is none of RSA or of an elliptic curve.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        public = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"a public key in PEM: {error}") from None
    if isinstance(public, EllipticCurvePublicKey):
        return _Key(public, ALG_ECDSA)
    if isinstance(public, RSAPublicKey):
        return _Key(public, ALG_RSASSA)
    raise ValueError("a public key of RSA or of an elliptic curve")


# built at import: msgspec crashes if two threads are the first to use a type
_decoder = msgspec.msgpack.Decoder(_Bundle)

TPM = Tpm()
