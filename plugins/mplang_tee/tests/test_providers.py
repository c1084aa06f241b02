"""Providers of attestation: the kit's suite on each, by quotes of the tests' own."""

from __future__ import annotations

import hashlib
import json

import pytest
from dcap_quotes import (
    HEADER,
    NOW,
    REPORT_DATA,
    SIZES,
    Platform,
    new_key,
    sample,
    sample_collateral,
)
from machines import EXPECTED, PCR, Machine
from mplang_tee import AttestationEvidence, find_provider
from mplang_tee.providers.tdx import REGISTERS
from mplang_testing import AttestationSuite

from mplang_core.errors import ConfigError

OFFSETS = {  # of registers in a quote of TDX
    "mrseam": HEADER + 16, "attributes": HEADER + 120, "mrtd": HEADER + 136,
    **{f"rtmr{i}": HEADER + 328 + 48 * i for i in range(4)},
}  # fmt: skip
MRENCLAVE, SGX_ATTRIBUTES = HEADER + 64, HEADER + 48
OTHER = "ab" * 48
REPORT = bytes(64)


def registers(quote: bytes) -> dict[str, list[str]]:
    return {name: [quote[OFFSETS[name] :][:48].hex()] for name in REGISTERS}


def written(folder, name, data):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


@pytest.fixture(scope="session")
def platforms(tmp_path_factory):
    """Return a platform of each kind, and what its owner expects."""
    folder = tmp_path_factory.mktemp("platforms")
    made = {}
    for kind in ("tdx", "sgx"):
        platform = Platform(kind)
        measured = registers(sample("tdx"))
        if kind == "sgx":
            measured = {"mrenclave": [sample("sgx")[MRENCLAVE:][:32].hex()]}
        made[kind] = (
            platform,
            {
                **measured,
                "root": written(folder, f"{kind}.der", platform.root_der),
                "collateral": written(folder, f"{kind}.json", platform.collateral()),
                "statuses": ["UpToDate", "ConfigurationAndSWHardeningNeeded"],
                "advisories": ["INTEL-SA-00289", "INTEL-SA-00615"],
            },
        )
        revoked = platform.collateral(platform.pck.certificate.serial_number)
        written(folder, f"{kind}-revoked.json", revoked)
        another = Platform(kind)
        written(folder, f"{kind}-other.der", another.root_der)
        written(folder, f"{kind}-other.json", another.collateral())
    return made, folder


class _Dcap(AttestationSuite):
    seconds = NOW

    @pytest.fixture(autouse=True)
    def _made(self, platforms):
        made, self.folder = platforms
        self.platform, self.wanted = made[self.provider]

    def quote(self, report):
        return self.platform.quote(report)

    def expected(self):
        return self.wanted

    def signed(self, quote):
        return range(SIZES[self.provider])

    def others(self):
        kind, fields = self.provider, self.wanted
        measured = REGISTERS if kind == "tdx" else ["mrenclave"]
        size = 48 if kind == "tdx" else 32
        other = {name: {**fields, name: ["ab" * size]} for name in measured}
        return {
            **other,
            "the root": {**fields, "root": f"{self.folder}/{kind}-other.der"},
            "the collateral": {**fields, "collateral": f"{self.folder}/{kind}-other.json"},
            "what is revoked": {**fields, "collateral": f"{self.folder}/{kind}-revoked.json"},
            "what states are taken": {**fields, "statuses": ["OutOfDate"]},
        }


class TestTdx(_Dcap):
    provider = "tdx"


class TestSgx(_Dcap):
    provider = "sgx"


class TestSimulated(AttestationSuite):
    provider = "simulated"

    def quote(self, report):
        return find_provider("simulated").quote(None, report)

    def expected(self):
        return {}

    def others(self):
        return {}

    def signed(self, quote):
        return range(len(quote))


class TestTpm(AttestationSuite):
    provider = "tpm"

    @pytest.fixture(autouse=True)
    def _made(self, tpm_machine: Machine):
        self.machine = tpm_machine

    def quote(self, report):
        tpm = find_provider("tpm")
        return tpm.quote(tpm.makes(**self.machine.maker), report)

    def expected(self):
        return self.machine.expected

    def others(self):
        right = self.machine.expected
        return {
            "a register": {**right, "pcrs": {PCR: "0" * 64}},
            "which registers": {**right, "pcrs": {PCR: EXPECTED, 0: "0" * 64}},
            "the key": {**right, "ak": self.another_key()},
        }

    def signed(self, quote):
        start = 3 if quote[1] == 0xC4 else 4  # of MessagePack's array of bytes
        return range(start, start + 100)

    def another_key(self):
        return written(self.machine.folder, "another.pub", of_another_key(ak_of(self.machine)))


def ak_of(machine: Machine) -> bytes:
    return (machine.folder / "ak.pub").read_bytes()


def of_another_key(data: bytes) -> bytes:
    """Return the structure of a public key on P-256 with another point."""
    numbers = new_key().public_key().public_numbers()
    x, y = (each.to_bytes(32, "big") for each in (numbers.x, numbers.y))
    return data[:-68] + b"\0\x20" + x + b"\0\x20" + y


# -- real quotes of real machines, with the collateral of their time


def expectations(folder, kind, **changes):
    collateral = written(folder, "collateral.json", json.dumps(sample_collateral(kind)))
    fields = registers(sample("tdx")) if kind == "tdx" else {}
    if kind == "sgx":
        fields = {"mrenclave": [sample("sgx")[MRENCLAVE:][:32].hex()]}
    return find_provider(kind).expects(**{**fields, "collateral": collateral, **changes})


def real(kind, expected, seconds=NOW, quote=None) -> AttestationEvidence:
    report = sample(kind)[REPORT_DATA[kind] :][:64]
    return find_provider(kind).verify(expected, quote or sample(kind), report, seconds)


def test_a_real_quote_of_tdx(tmp_path):
    evidence = real("tdx", expectations(tmp_path, "tdx"))
    assert evidence.status == "UpToDate"
    assert not evidence.advisories
    assert evidence.registers.keys() == REGISTERS.keys()


def test_a_real_quote_of_sgx_is_taken_by_a_state_that_is_named(tmp_path):
    state = {"statuses": ["ConfigurationAndSWHardeningNeeded"]}
    with pytest.raises(ValueError, match="ConfigurationAndSWHardeningNeeded, and this party takes"):
        real("sgx", expectations(tmp_path, "sgx"))
    with pytest.raises(ValueError, match="the advisories INTEL-SA-00289, INTEL-SA-00615"):
        real("sgx", expectations(tmp_path, "sgx", **state))
    known = ["INTEL-SA-00289", "INTEL-SA-00615"]
    evidence = real("sgx", expectations(tmp_path, "sgx", **state, advisories=known))
    assert evidence.status == "ConfigurationAndSWHardeningNeeded"
    assert evidence.advisories == tuple(known)


@pytest.mark.parametrize("seconds", [1_600_000_000, 1_771_000_000, 1_790_000_000])
def test_collateral_that_is_stale_or_not_yet_issued_is_refused(tmp_path, seconds):
    with pytest.raises(ValueError, match="expired|future|Expired"):
        real("tdx", expectations(tmp_path, "tdx"), seconds)


def test_a_quote_of_the_other_kind_is_refused(tmp_path, platforms):
    made, _ = platforms
    (_, wanted), (sgx, _) = made["tdx"], made["sgx"]
    expected = find_provider("tdx").expects(**wanted)
    with pytest.raises(ValueError, match="SGX|QE Identity"):
        find_provider("tdx").verify(expected, sgx.quote(REPORT), REPORT, NOW)


@pytest.mark.parametrize("kind", ["tdx", "sgx"])
def test_a_quote_of_the_other_kind_under_the_same_root(kind, platforms):
    """Whatever collateral says: the report is of another kind."""
    other = "sgx" if kind == "tdx" else "tdx"
    platform, wanted = platforms[0][other]
    own = platforms[0][kind][1]
    provider = find_provider(kind)
    fields = {**own, "root": wanted["root"], "collateral": wanted["collateral"]}
    with pytest.raises(ValueError, match=f"a quote of {other.upper()}, not of {kind.upper()}"):
        provider.verify(provider.expects(**fields), platform.quote(REPORT), REPORT, NOW)


@pytest.mark.parametrize(
    ("bit", "match"), [(0, "(?i)debug"), (3, "(?i)debug|reserved"), (29, "migration|may move it")]
)
def test_a_machine_of_tdx_that_can_be_debugged_or_moved_is_refused(platforms, bit, match):
    made, _ = platforms
    platform, wanted = made["tdx"]
    attributes = (1 << bit | 1 << 28).to_bytes(8, "little")
    quote = platform.quote(REPORT, {OFFSETS["attributes"]: attributes})
    tdx = find_provider("tdx")
    with pytest.raises(ValueError, match=match):
        tdx.verify(tdx.expects(**wanted), quote, REPORT, NOW)


def test_an_enclave_of_sgx_that_can_be_debugged_is_refused(platforms):
    made, _ = platforms
    platform, wanted = made["sgx"]
    quote = platform.quote(REPORT, {SGX_ATTRIBUTES: b"\x07"})
    sgx = find_provider("sgx")
    with pytest.raises(ValueError, match="(?i)debug"):
        sgx.verify(sgx.expects(**wanted), quote, REPORT, NOW)


def test_a_root_of_ones_own_is_insecure(platforms, tmp_path):
    made, _ = platforms
    tdx = find_provider("tdx")
    assert tdx.is_insecure(tdx.expects(**made["tdx"][1]))
    assert not tdx.is_insecure(expectations(tmp_path, "tdx"))
    assert find_provider("simulated").is_insecure(find_provider("simulated").expects())


@pytest.mark.parametrize(
    "fields",
    [
        {"statuses": ["Revoked"]},
        {"collateral": "/nowhere/collateral.json"},
        {"rtmr0": []},
        {"rtmr0": ["AB" * 48]},
        {"mrtd": ["ab" * 32]},
    ],
)
def test_what_cannot_be_expected_is_refused(platforms, fields):
    made, _ = platforms
    with pytest.raises(ConfigError, match=next(iter(fields))):
        find_provider("tdx").expects(**{**made["tdx"][1], **fields})


# -- a TPM


def test_a_machine_that_has_started_something_else_is_refused(own_machine: Machine):
    tpm = find_provider("tpm")
    expected, maker = tpm.expects(**own_machine.expected), tpm.makes(**own_machine.maker)
    assert tpm.verify(expected, tpm.quote(maker, REPORT), REPORT, NOW).registers[f"pcr{PCR}"]
    own_machine.extend(hashlib.sha256(b"another program").hexdigest())
    with pytest.raises(ValueError, match="the machine booted other software"):
        tpm.verify(expected, tpm.quote(maker, REPORT), REPORT, NOW)


def test_a_quote_of_before_is_over_another_session(tpm_machine: Machine):
    tpm = find_provider("tpm")
    expected, maker = tpm.expects(**tpm_machine.expected), tpm.makes(**tpm_machine.maker)
    before = tpm.quote(maker, REPORT)
    with pytest.raises(ValueError, match="not over this session"):
        tpm.verify(expected, before, b"\1" + REPORT[1:], NOW)


RESTRICTED, FIXED_TPM, DECRYPT = 1 << 16, 1 << 1, 1 << 17


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda data: data[:-1], "malformed"),
        (lambda data: data + b"\0", "malformed"),
        (lambda data: b"-----BEGIN PUBLIC KEY-----", "malformed"),
        (lambda data: with_attributes(data, RESTRICTED), "restricted"),
        (lambda data: with_attributes(data, FIXED_TPM), "fixed to its TPM"),
        (lambda data: with_attributes(data, DECRYPT), "an attestation key"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "(?i)curve|point|key"),
    ],
    ids=["cut", "longer", "PEM", "signs anything", "leaves", "decrypts", "off the curve"],
)
def test_what_is_no_attestation_key_is_not_pinned(tpm_machine, tmp_path, change, match):
    """A key that signs anything would sign a quote that is made up."""
    ak = written(tmp_path, "ak.pub", change(ak_of(tpm_machine)))
    with pytest.raises(ConfigError, match=match):
        find_provider("tpm").expects(**{**tpm_machine.expected, "ak": ak})


def with_attributes(data: bytes, flipped: int) -> bytes:
    attributes = int.from_bytes(data[6:10], "big") ^ flipped
    return data[:6] + attributes.to_bytes(4, "big") + data[10:]


def test_a_tpm_of_rsa(own_machine: Machine):
    own_machine.tool("tpm2_createek", "-c", "rsa.ek", "-G", "rsa", "-u", "rsa.ek.pub")
    own_machine.flush()
    own_machine.tool(
        "tpm2_createak", "-C", "rsa.ek", "-c", "rsa.ak", "-G", "rsa", "-g", "sha256",
        "-s", "rsassa", "-u", "rsa.pub",
    )  # fmt: skip
    own_machine.flush()
    tpm = find_provider("tpm")
    expected = tpm.expects(**{**own_machine.expected, "ak": str(own_machine.folder / "rsa.pub")})
    maker = tpm.makes(**{**own_machine.maker, "ak": str(own_machine.folder / "rsa.ak")})
    quote = tpm.quote(maker, REPORT)
    assert tpm.verify(expected, quote, REPORT, NOW).registers[f"pcr{PCR}"] == EXPECTED
    with pytest.raises(ValueError, match="another algorithm"):
        tpm.verify(tpm.expects(**own_machine.expected), quote, REPORT, NOW)


def test_a_tpm_that_is_not_there_is_an_error(tmp_path):
    tpm = find_provider("tpm")
    maker = tpm.makes(tcti=f"swtpm:path={tmp_path}/none", ak="0x81010002", pcrs=[0])
    with pytest.raises(ValueError, match="tpm2_quote"):
        tpm.quote(maker, REPORT)


def test_an_attestation_key_is_that_of_a_tpm_by_its_endorsement_key(own_machine: Machine):
    """The commands of docs/enclaves.md: only the TPM with both keys can open the challenge."""
    folder = own_machine.folder
    (folder / "secret").write_bytes(b"a secret of the owner's")
    name = "000b" + hashlib.sha256(ak_of(own_machine)[2:]).hexdigest()
    assert name == (folder / "ak.name").read_bytes().hex()
    own_machine.tool(
        "tpm2_makecredential", "-u", "ek.pem", "-G", "ecc", "-s", "secret", "-n", name,
        "-o", "challenge",
    )  # fmt: skip
    own_machine.tool("tpm2_startauthsession", "--policy-session", "-S", "session")
    own_machine.tool("tpm2_policysecret", "-S", "session", "-c", "e")
    own_machine.tool(
        "tpm2_activatecredential", "-c", "ak.ctx", "-C", "ek.ctx", "-i", "challenge",
        "-o", "answer", "-P", "session:session",
    )  # fmt: skip
    assert (folder / "answer").read_bytes() == b"a secret of the owner's"


# -- quotes of TDX by the kernel's interface, on a folder that is made up


class Kernel:
    """A folder like that of configfs-tsm: an entry has files, and each write counts."""

    def __init__(self, folder, monkeypatch, provider="tdx_guest", writers=1):
        from pathlib import Path

        self.folder, self.seen = folder, []
        make, write = Path.mkdir, Path.write_bytes

        def mkdir(path, *args, **kwargs):
            make(path, *args, **kwargs)
            if path.parent == folder:
                write(path / "generation", b"0\n")
                write(path / "provider", provider.encode() + b"\n")

        def write_bytes(path, data):
            if path.name == "inblob":
                self.seen.append(data)
                count = int((path.parent / "generation").read_text())
                write(path.parent / "generation", str(count + writers).encode())
                write(path.parent / "outblob", b"quote over " + data)
            return write(path, data)

        monkeypatch.setattr(Path, "mkdir", mkdir)
        monkeypatch.setattr(Path, "write_bytes", write_bytes)


def test_a_quote_of_tdx_comes_from_the_kernels_interface(tmp_path, monkeypatch):
    kernel = Kernel(tmp_path, monkeypatch)
    tdx = find_provider("tdx")
    assert tdx.quote(tdx.makes(folder=tmp_path), REPORT) == b"quote over " + REPORT
    assert kernel.seen == [REPORT]


@pytest.mark.parametrize(
    ("fields", "match"),
    [({"provider": "sev_guest"}, "sev_guest"), ({"writers": 2}, "somebody else")],
)
def test_a_kernel_that_quotes_otherwise_is_refused(tmp_path, monkeypatch, fields, match):
    Kernel(tmp_path, monkeypatch, **fields)
    tdx = find_provider("tdx")
    with pytest.raises(ValueError, match=match):
        tdx.quote(tdx.makes(folder=tmp_path), REPORT)
