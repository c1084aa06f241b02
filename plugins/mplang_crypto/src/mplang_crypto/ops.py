"""Ops of the dialect ``crypto``. Imports no cryptographic library."""

from __future__ import annotations

from mplang_core import BaseType, TensorType, simple_op
from mplang_core.ext import Effects
from mplang_crypto.primitives import DIGEST_BYTES
from mplang_crypto.types import CiphertextType, PrivateKeyType, PublicKeyType, SymmetricKeyType

_SYMMETRIC = {"kind": SymmetricKeyType.name, "visibility": ("PRIVATE",)}
_PRIVATE = {"kind": PrivateKeyType.name, "visibility": ("PRIVATE",)}
_PUBLIC = {"kind": PublicKeyType.name, "visibility": ("PUBLIC", "PRIVATE")}
_CIPHERTEXT = {"kind": CiphertextType.name, "visibility": ("SECRET",)}
_VALUE = {"kind": "Any"}
_TENSOR = {"kind": "Tensor", "visibility": ("PUBLIC", "PRIVATE")}


@simple_op(
    "crypto.keygen",
    version="1",
    reads=(),
    total=True,
    effects=Effects.FRESH,
    execution_model="single_rank",
    inputs=(),
    outputs=(_SYMMETRIC,),
)
def keygen() -> SymmetricKeyType:
    """Generate an AES-256 key (FIPS 197) from the operating system's entropy.

    Each party that runs it gets a different key, which cannot leave that party. Two parties get the
    same key by :func:`agree`.

    Returns:
        A ``crypto.symmetric_key<>``.

    Example:
        >>> import numpy as np
        >>> import mplang_core as mp
        >>> from mplang_crypto import decrypt, encrypt, keygen
        >>> def program():
        ...     key = mp.device("P0")(keygen)()
        ...     x = mp.put("P0", np.float32([1, 2]))
        ...     return mp.device("P0")(decrypt)(mp.device("P0")(encrypt)(x, key), key)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        array([1., 2.], dtype=float32)
    """
    return SymmetricKeyType()


@simple_op(
    "crypto.keypair",
    version="1",
    reads=(),
    total=True,
    effects=Effects.FRESH,
    execution_model="single_rank",
    inputs=(),
    outputs=(_PRIVATE, _PUBLIC),
)
def keypair() -> tuple[PrivateKeyType, PublicKeyType]:
    """Generate an X25519 key pair (RFC 7748) from the operating system's entropy.

    Each party that runs it gets a different pair. The public key may be put anywhere; it does not
    authenticate its owner.

    Returns:
        A ``crypto.private_key<>``, which cannot leave its party, and its
        ``crypto.public_key<>``.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_crypto import keypair
        >>> def program():
        ...     private, public = mp.device("P0")(keypair)()
        ...     return mp.put("P1", public)
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     len(mp.fetch(sim, mp.evaluate(sim, program)).raw)
        32
    """
    return PrivateKeyType(), PublicKeyType()


@simple_op(
    "crypto.agree",
    version="1",
    reads=(),
    effects=Effects.NONE,
    execution_model="single_rank",
    inputs=(_PRIVATE, _PUBLIC),
    outputs=(_SYMMETRIC,),
)
def agree(private: PrivateKeyType, public: PublicKeyType, *, info: str) -> SymmetricKeyType:
    """Agree on an AES-256 key with the holder of the other private key.

    X25519 (RFC 7748) gives a shared secret; HKDF-SHA256 (RFC 5869) derives the key from it, bound
    to both public keys and to ``info``. Nobody is authenticated: whoever can replace a public key
    in transit can be in the middle.

    Args:
        private: this party's ``crypto.private_key<>``.
        public: the other party's ``crypto.public_key<>``.
        info: the purpose of the key; another purpose gives another key.

    Returns:
        A ``crypto.symmetric_key<>``, the same at both parties.

    Raises:
        TraceError: an operand is not such a key, or the info is not Unicode text.
        KernelError: the public key is a point of low order, so that the secret would be zero.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_crypto import agree, decrypt, encrypt, keypair
        >>> def program():
        ...     sk0, pk0 = mp.device("P0")(keypair)()
        ...     sk1, pk1 = mp.device("P1")(keypair)()
        ...     k0 = mp.device("P0")(agree)(sk0, mp.put("P0", pk1), info="demo")
        ...     k1 = mp.device("P1")(agree)(sk1, mp.put("P1", pk0), info="demo")
        ...     sealed = mp.device("P0")(encrypt)(mp.put("P0", 7), k0)
        ...     return mp.device("P1")(decrypt)(mp.put("P1", sealed), k1)
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        array(7)
    """
    info.encode()  # a lone surrogate is not text
    return SymmetricKeyType()


@simple_op(
    "crypto.encrypt",
    version="1",
    reads=(),
    effects=Effects.FRESH,
    execution_model="single_rank",
    inputs=(_VALUE, _SYMMETRIC),
    outputs=(_CIPHERTEXT,),
)
def encrypt(x: BaseType, key: SymmetricKeyType) -> CiphertextType:
    """Encrypt and authenticate a value by AES-256-GCM (SP 800-38D).

    The nonce is 96 fresh random bits, so one key may encrypt 2**32 values (SP 800-38D, section
    8.3). The type is authenticated with the value, but not hidden; neither is the size.

    Args:
        x: a value of any type but a key, of less than 2 GiB.
        key: a ``crypto.symmetric_key<>`` at the same party.

    Returns:
        A ``crypto.ciphertext<…>`` of the value's type.

    Raises:
        TraceError: the value is a key.
        WireError: its type has no codec.
        KernelError: it has 2 GiB or more.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_crypto import encrypt, keygen
        >>> def program():
        ...     key = mp.device("P0")(keygen)()
        ...     return mp.put("P1", mp.device("P0")(encrypt)(mp.put("P0", [1, 2]), key))
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     print(mp.evaluate(sim, program).type)
        crypto.ciphertext<i64[2]>@{1}
    """
    return CiphertextType(x)


@simple_op(
    "crypto.decrypt",
    version="1",
    reads=(),
    execution_model="single_rank",
    inputs=(_CIPHERTEXT, _SYMMETRIC),
    outputs=(_VALUE,),
)
def decrypt(ct: CiphertextType, key: SymmetricKeyType) -> BaseType:
    """Decrypt and authenticate a result of :func:`encrypt` (SP 800-38D).

    Args:
        ct: a ``crypto.ciphertext<…>``.
        key: the ``crypto.symmetric_key<>`` that encrypted it, at the same party.

    Returns:
        The value, of the type within the ``<>``, in plain at this party.

    Raises:
        TraceError: an operand is not a ciphertext, or not a key.
        KernelError: the key is a different one, or the ciphertext was changed.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_crypto import decrypt, encrypt, keygen
        >>> def program():
        ...     key, another = mp.device("P0")(keygen)(), mp.device("P0")(keygen)()
        ...     sealed = mp.device("P0")(encrypt)(mp.put("P0", 1), key)
        ...     return mp.device("P0")(decrypt)(sealed, another)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.evaluate(sim, program)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        mplang_core.errors.PartyError: party 0 failed in crypto.decrypt at ... is not authentic...
    """
    return ct.inner


@simple_op(
    "crypto.hash",
    version="1",
    reads=(),
    total=True,
    effects=Effects.NONE,
    execution_model="single_rank",
    inputs=(_TENSOR,),
    outputs=(_TENSOR,),
)
def hash(x: TensorType, *, algorithm: str = "sha256") -> TensorType:
    r"""Hash a tensor: its type, a line feed, and its elements in row-major, little-endian order.

    So the same data with another shape or element type has another digest. Floats are hashed by
    their bits: 0.0 and -0.0 differ. The digest of a guessable value reveals it to everyone who has
    the digest.

    Args:
        x: any tensor.
        algorithm: ``sha256`` or ``sha512`` (FIPS 180-4), ``sha3_256`` (FIPS 202), ``blake2b``
            (RFC 7693, 64 bytes).

    Returns:
        The digest, ``u8[32]`` or ``u8[64]``.

    Raises:
        TraceError: the operand is not a tensor, or the algorithm is not one of these.

    Example:
        >>> import hashlib
        >>> import numpy as np
        >>> import mplang_core as mp
        >>> from mplang_crypto import hash
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     found = mp.evaluate(sim, lambda x: mp.invoke(hash, x), np.uint8([97, 98, 99]))
        ...     (digest,) = mp.fetch(sim, found)
        >>> bytes(digest) == hashlib.sha256(b"u8[3]\nabc").digest()
        True
    """
    if algorithm not in DIGEST_BYTES:
        raise ValueError(f"algorithm: expected one of {', '.join(DIGEST_BYTES)}, got {algorithm!r}")
    return TensorType("u8", (DIGEST_BYTES[algorithm],))
