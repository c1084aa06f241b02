"""Names for packages that encrypt values of their own between two parties."""

from mplang_crypto.padding import read_content as read_content, write_content as write_content
from mplang_crypto.primitives import (
    hkdf as hkdf,
    open_sealed as open_sealed,
    random_bytes as random_bytes,
    seal as seal,
    x25519 as x25519,
    x25519_keypair as x25519_keypair,
)
