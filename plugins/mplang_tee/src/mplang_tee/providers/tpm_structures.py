"""Structures of a TPM, as its tools write them: keys, quotes, signatures.

References:
    TCG, TPM 2.0 Library Specification, part 2: 8.3 (TPMA_OBJECT), 10.9.7 (TPML_PCR_SELECTION),
    10.12.8 (TPMS_ATTEST), 11.3.4 (TPMT_SIGNATURE), 12.2.4 (TPMT_PUBLIC).
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

GENERATED, ATTEST_QUOTE = 0xFF544347, 0x8018
ALG_RSA, ALG_SHA256, ALG_NULL = 0x0001, 0x000B, 0x0010
ALG_RSASSA, ALG_ECDSA, ALG_ECC = 0x0014, 0x0018, 0x0023
FIXED_TPM, FIXED_PARENT, SENSITIVE_ORIGIN = 1 << 1, 1 << 4, 1 << 5
RESTRICTED, DECRYPT, SIGN = 1 << 16, 1 << 17, 1 << 18
ATTESTING = FIXED_TPM | FIXED_PARENT | SENSITIVE_ORIGIN | RESTRICTED | SIGN
CURVES = {0x0003: "secp256r1", 0x0004: "secp384r1"}
EXPONENT = 65_537  # of RSA, where a TPM writes 0
MAX_SELECTED = 4  # bytes of registers


class AttestationKey(NamedTuple):
    """Public attestation key.

    Attributes:
        public: the key of the library.
        scheme: the algorithm that it signs by.
    """

    public: Any
    scheme: int


class Quoted(NamedTuple):
    """Statement of a TPM's quote.

    Attributes:
        data: what the quote is over.
        pcrs: the registers of the bank of SHA-256.
        digest: SHA-256 of their values.
    """

    data: bytes
    pcrs: tuple[int, ...]
    digest: bytes


class StructureReader:
    """Reads a structure; numbers are big-endian.

    Args:
        data: the structure.
    """

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def take(self, size: int) -> bytes:
        """Return the next bytes.

        Raises:
            ValueError: there are not so many.
        """
        if size > len(self._data):
            _refuse()
        taken, self._data = self._data[:size], self._data[size:]
        return bytes(taken)

    def number(self, size: int) -> int:
        """Return the next number of some bytes."""
        return int.from_bytes(self.take(size), "big")

    def sized(self) -> bytes:
        """Return the next bytes, after their number."""
        return self.take(self.number(2))

    def end(self) -> None:
        """Check that there is no more.

        Raises:
            ValueError: there is.
        """
        if self._data:
            _refuse()


def _refuse() -> NoReturn:
    raise ValueError("a structure of a TPM is malformed")


def read_key(data: bytes) -> AttestationKey:
    """Read a public key (TPM2B_PUBLIC) that can sign nothing but what its TPM has made.

    Args:
        data: what ``tpm2_createak -u`` writes.

    Raises:
        ValueError: it is none, or could sign anything, or leave its TPM.
    """
    outer = StructureReader(data)
    reader = StructureReader(outer.sized())
    outer.end()
    kind, _, attributes = reader.number(2), reader.number(2), reader.number(4)
    if attributes & ATTESTING != ATTESTING or attributes & DECRYPT:
        raise ValueError("a key that is fixed to its TPM, restricted and signs: an attestation key")
    reader.sized()  # policy
    if reader.number(2) != ALG_NULL or kind not in (ALG_RSA, ALG_ECC):
        raise ValueError("an attestation key of RSA or of an elliptic curve")
    scheme = reader.number(2)
    hashed = reader.number(2)
    if scheme != (ALG_RSASSA if kind == ALG_RSA else ALG_ECDSA) or hashed != ALG_SHA256:
        raise ValueError("an attestation key that signs by RSASSA or ECDSA with SHA-256")
    key = AttestationKey(_rsa(reader) if kind == ALG_RSA else _ecc(reader), scheme)
    reader.end()
    return key


def _rsa(reader: StructureReader) -> object:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    bits, exponent = reader.number(2), reader.number(4) or EXPONENT
    modulus = int.from_bytes(reader.sized(), "big")
    if modulus.bit_length() != bits or bits < 2048:
        _refuse()
    return RSAPublicNumbers(exponent, modulus).public_key()


def _ecc(reader: StructureReader) -> object:
    from cryptography.hazmat.primitives.asymmetric import ec

    curve, derivation = CURVES.get(reader.number(2)), reader.number(2)
    if curve is None or derivation != ALG_NULL:
        raise ValueError(f"an attestation key on {' or '.join(CURVES.values())}")
    x, y = (int.from_bytes(reader.sized(), "big") for _ in range(2))
    of = {"secp256r1": ec.SECP256R1, "secp384r1": ec.SECP384R1}[curve]
    return ec.EllipticCurvePublicNumbers(x, y, of()).public_key()


def read_quote(message: bytes) -> Quoted:
    """Read what a TPM states by a quote (TPMS_ATTEST).

    Raises:
        ValueError: it is none.
    """
    reader = StructureReader(message)
    if (reader.number(4), reader.number(2)) != (GENERATED, ATTEST_QUOTE):
        raise ValueError("it is not a quote that a TPM has made")
    reader.sized()  # name of the signer
    data = reader.sized()
    reader.take(8 + 4 + 4 + 1 + 8)  # clock, resets, restarts, safe; version of the firmware
    if reader.number(4) != 1 or reader.number(2) != ALG_SHA256:
        raise ValueError("it quotes another bank of registers than that of SHA-256")
    size = reader.number(1)
    if size > MAX_SELECTED:
        _refuse()
    chosen, digest = reader.take(size), reader.sized()
    reader.end()
    pcrs = [8 * i + bit for i, byte in enumerate(chosen) for bit in range(8) if byte >> bit & 1]
    return Quoted(data, tuple(pcrs), digest)


def check_signature(key: AttestationKey, message: bytes, signature: bytes) -> None:
    """Verify a signature of a TPM (TPMT_SIGNATURE).

    Raises:
        ValueError: it is not by that key over that message.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    reader = StructureReader(signature)
    if (reader.number(2), reader.number(2)) != (key.scheme, ALG_SHA256):
        raise ValueError("it is signed by another algorithm than its key's with SHA-256")
    try:
        if key.scheme == ALG_ECDSA:
            r, s = (int.from_bytes(reader.sized(), "big") for _ in range(2))
            reader.end()
            key.public.verify(encode_dss_signature(r, s), message, ECDSA(SHA256()))
        else:
            by = reader.sized()
            reader.end()
            key.public.verify(by, message, PKCS1v15(), SHA256())
    except InvalidSignature:
        raise ValueError("it is not signed by the attestation key that is pinned") from None
