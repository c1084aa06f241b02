"""Conformance of ``mplang_tee`` with the kit for frontends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from machines import cluster
from mplang_crypto.ext import open_sealed, read_content, seal, write_content
from mplang_tables import arrow
from mplang_tee import find_provider
from mplang_tee.types import (
    FILES_BYTES,
    KEY_BYTES,
    NONCE_BYTES,
    EnclaveValue,
    SealedValue,
    SessionKey,
    TeeEnclaveKeyType,
    TeeQuote,
    TeeQuoteType,
    TeeSealedType,
    TeeSessionKeyType,
    TeeValueType,
)
from mplang_testing import (
    DeviceSuite,
    FeopSuite,
    KernelSuite,
    LineageSuite,
    NativeCall,
    NativeSuite,
    Of,
    PartyOpSuite,
    PartySample,
    PluginSuite,
    Sample,
    TypeSuite,
    strategies,
)

import mplang_core as mp
from mplang_core import TensorType
from mplang_core.ext import decode, encode

X = np.array([1.5, -2.0])
KIND = TensorType("f64", (2,))
INSIDE = TeeValueType(KIND, "tdx")
SESSION, ENCLAVE = TeeSessionKeyType("tdx"), TeeEnclaveKeyType("tdx")
SECRET = bytes(range(32))
VALUE = Of(INSIDE, EnclaveValue(INSIDE, X))
KEY, KEY_INSIDE = Of(SESSION, SessionKey(SESSION, SECRET)), Of(ENCLAVE, SessionKey(ENCLAVE, SECRET))


def sealed(way, inner=KIND, value=X):
    """Return a value that is sealed by the same key in the slot 1, within a pcall."""
    kind = TeeSealedType(inner, "tdx", way)
    plain = write_content(inner, *encode(inner, value))
    nonce = bytes(NONCE_BYTES)
    return Of(kind, SealedValue(kind, nonce, seal(SECRET, nonce, plain, f"1  {kind}".encode())))


def is_inside(x):
    return isinstance(x, EnclaveValue) and (x.plain == X).all()


SLOT = {"slot": 1}
SAMPLES = (
    Sample("tee.seal", X, KEY, attrs=SLOT, random=True),
    Sample("tee.open", sealed("in"), KEY_INSIDE, attrs=SLOT, expect=is_inside),
    Sample("tee.hold", X, attrs={"provider": "tdx"}, expect=is_inside),
    Sample("tee.release", VALUE, expect=lambda x: (x == X).all()),
    Sample("tee.reseal", VALUE, KEY_INSIDE, attrs=SLOT, random=True),
    Sample("tee.unseal", sealed("out"), KEY, attrs=SLOT, expect=lambda x: (x == X).all()),
)


class TestFeops(FeopSuite):
    family = "tee"
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "tee"
    samples = SAMPLES


def attested(x):
    """Attest the enclave of party 1 for party 0."""
    ctx = mp.cur_ctx()
    ctx.emit("tee.attest", [], {"owner": 0, "enclave": 1, "provider": "tdx"})
    return x


TABLE = mp.TableType((("id", "int64"), ("pay", "double")))
ROWS = pa.table({"id": [1, 2, 3], "pay": [1.5, None, -2.0]}, schema=arrow.schema(TABLE))


def wrapped(kind, table):
    """Return a value of a type around a table."""
    if isinstance(kind, TeeValueType):
        return EnclaveValue(kind, table)
    return sealed(kind.way, kind.inner, table).at(0) if isinstance(kind, TeeSealedType) else table


def of_table(kind):
    return Of(kind, wrapped(kind, ROWS))


class TestLineages(LineageSuite):
    family = "tee"
    samples = (
        Sample("tee.seal", of_table(TABLE), KEY, attrs=SLOT),
        Sample("tee.open", of_table(TeeSealedType(TABLE, "tdx", "in")), KEY_INSIDE, attrs=SLOT),
        Sample("tee.hold", of_table(TABLE), attrs={"provider": "tdx"}),
        Sample("tee.release", of_table(TeeValueType(TABLE, "tdx"))),
        Sample("tee.reseal", of_table(TeeValueType(TABLE, "tdx")), KEY_INSIDE, attrs=SLOT),
        Sample("tee.unseal", of_table(TeeSealedType(TABLE, "tdx", "out")), KEY, attrs=SLOT),
    )

    def wrapped(self, kind, table):
        return wrapped(kind, table)

    def unwrapped(self, kind, value):
        if isinstance(kind, TeeValueType):
            return value.plain
        if not isinstance(kind, TeeSealedType):
            return value
        plain = open_sealed(SECRET, value.nonce, value.data, f"1  {kind}".encode())
        return decode(kind.inner, *read_content(plain))


class TestPartyOps(PartyOpSuite):
    family = "tee"
    samples = (PartySample("tee.attest", attested, 7),)


words = st.sampled_from(["tdx", "tpm", "sgx", "simulated"])
inner = strategies.tensor_types()
secrets = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)


class TestValue(TypeSuite):
    kinds = st.builds(TeeValueType, inner, words)

    def values(self, kind):
        return st.integers().map(lambda x: EnclaveValue(kind, x))


class TestSealed(TypeSuite):
    kinds = st.builds(TeeSealedType, inner, words, st.sampled_from(["in", "out"]))

    def values(self, kind):
        nonce = st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES)
        data = st.binary(min_size=16, max_size=60)
        return st.builds(SealedValue, st.just(kind), nonce, data)


class TestSessionKey(TypeSuite):
    kinds = st.builds(TeeSessionKeyType, words)

    def values(self, kind):
        return st.builds(SessionKey, st.just(kind), secrets)


class TestEnclaveKey(TypeSuite):
    kinds = st.builds(TeeEnclaveKeyType, words)

    def values(self, kind):
        return st.builds(SessionKey, st.just(kind), secrets)


class TestQuote(TypeSuite):
    kinds = st.builds(TeeQuoteType, words)

    def values(self, kind):
        files = st.binary(min_size=FILES_BYTES, max_size=FILES_BYTES)
        return st.builds(TeeQuote, st.just(kind), secrets, files, st.binary(max_size=80))


class TestDevice(DeviceSuite):
    kind = "TEE"
    runs = ("arrays", "tables")

    def cluster(self):
        return cluster()


class TestNative(NativeSuite):
    family = "tee"

    def calls(self, rank, run):
        report = bytes(range(64))
        about = {"enclave": "cloud", "provider": "simulated"}
        quote = find_provider("simulated").quote(None, report)
        return [NativeCall("verify", about, [bytes(FILES_BYTES), report, quote])]


class TestPlugin(PluginSuite):
    distribution = "mplang-tee"
    heavy = ("dcap_qvl", "cryptography")


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, 3])
def test_a_provider_is_a_word(name):
    with pytest.raises(ValueError, match="a word"):
        TeeValueType(KIND, name)
