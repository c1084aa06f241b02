"""What an owner verifies: a statement of a session, by what its worker takes for an enclave."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys

import pytest
from dcap_quotes import NOW, Platform
from hypothesis import given, strategies as st
from machines import Machine
from mplang_crypto.ext import x25519_keypair
from mplang_tee import find_provider, quoting, settings
from mplang_tee.sealing import session_secret
from mplang_tee.statement import SessionStatement, length_prefixed
from mplang_tee.verification import verify
from test_providers import platforms as platforms

from mplang_core.errors import ConfigError, KernelError

FILES = b"f" * 32
STATEMENT = SessionStatement(
    "run/0", "bank", "cloud", "tdx", b"n" * 32, b"a" * 32, b"e" * 32, FILES
)  # fmt: skip


def owner(provider, expected, files=FILES):
    known = {"files": [files.hex()], "accepts": {provider: expected}}
    return settings.TeeSettings(enclaves={"cloud": known})


def check(settings, statement, quote, *, insecure=True, seconds=NOW, expected=None):
    """Verify a quote as the owner of a session does."""
    wanted = statement if expected is None else expected
    return verify(
        settings, wanted.enclave, wanted.provider, wanted.files, wanted.digest(), quote,
        seconds=seconds, insecure=insecure,
    )  # fmt: skip


@pytest.fixture
def tdx(platforms) -> tuple[Platform, dict]:
    return platforms[0]["tdx"]


def test_a_quote_over_the_statement_is_taken(tdx):
    platform, expected = tdx
    quote = platform.quote(STATEMENT.digest())
    assert check(owner("tdx", expected), STATEMENT, quote).status == "UpToDate"


OTHERS = {
    "another program or run": {"key": "run/1"},
    "another owner": {"owner": "shop"},
    "another nonce": {"nonce": b"m" * 32},
    "another session of the owner": {"asking": b"b" * 32},
    "another key of the enclave": {"answering": b"f" * 32},
}


@pytest.mark.parametrize("fields", OTHERS.values(), ids=OTHERS)
def test_one_field_of_the_statement_that_differs(tdx, fields):
    platform, expected = tdx
    quote = platform.quote(STATEMENT.digest())
    with pytest.raises(KernelError, match="not over this session"):
        check(owner("tdx", expected), STATEMENT, quote, expected=STATEMENT._replace(**fields))


def test_another_configuration_is_refused_before_the_quote(tdx):
    """It is told as it is stated; a quote over it does not help."""
    platform, expected = tdx
    other = STATEMENT._replace(files=b"g" * 32)
    quote = platform.quote(other.digest())
    with pytest.raises(KernelError, match=f"SHA-256 {other.files.hex()}, expected {FILES.hex()}"):
        check(owner("tdx", expected), other, quote)


def test_an_enclave_that_states_other_files_than_it_signed(tdx):
    platform, expected = tdx
    quote = platform.quote(STATEMENT._replace(files=b"g" * 32).digest())
    with pytest.raises(KernelError, match="not over this session"):
        check(owner("tdx", expected), STATEMENT, quote)


def test_a_root_of_ones_own_needs_an_insecure_worker(tdx):
    platform, expected = tdx
    quote = platform.quote(STATEMENT.digest())
    with pytest.raises(KernelError, match="insecure: true"):
        check(owner("tdx", expected), STATEMENT, quote, insecure=False)


def test_collateral_that_is_stale(tdx):
    platform, expected = tdx
    quote = platform.quote(STATEMENT.digest())
    with pytest.raises(KernelError, match="(?i)expired"):
        check(owner("tdx", expected), STATEMENT, quote, seconds=NOW + 60 * 86_400)


def test_a_simulated_enclave_needs_an_insecure_worker():
    statement = STATEMENT._replace(provider="simulated")
    quote = find_provider("simulated").quote(None, statement.digest())
    known = settings.TeeSettings()
    assert check(known, statement, quote).status == "simulated"
    with pytest.raises(KernelError, match="everyone has its key"):
        check(known, statement, quote, insecure=False)


def test_who_named_nothing_takes_nothing(tdx):
    platform, expected = tdx
    quote = platform.quote(STATEMENT.digest())
    with pytest.raises(KernelError, match="not said what it takes for the enclave of cloud"):
        check(settings.TeeSettings(), STATEMENT, quote)
    known = owner("tdx", expected)
    with pytest.raises(KernelError, match="takes no tpm for the enclave of cloud, but tdx"):
        check(known, STATEMENT._replace(provider="tpm"), quote)
    simulated = STATEMENT._replace(provider="simulated")
    quote = find_provider("simulated").quote(None, simulated.digest())
    with pytest.raises(KernelError, match="takes no simulated for the enclave of cloud, but tdx"):
        check(known, simulated, quote)


def test_a_key_of_low_order_gives_no_session():
    with pytest.raises(KernelError, match="low order"):
        session_secret(bytes(range(32)), bytes(32), b"statement")


def test_each_statement_gives_another_key():
    private, public = x25519_keypair()
    keys = {session_secret(private, public, statement) for statement in (b"one", b"two")}
    assert len(keys) == 2


@given(st.lists(st.binary(max_size=4)), st.lists(st.binary(max_size=4)))
def test_fields_cannot_be_cut_otherwise(one, other):
    assert (length_prefixed(one) == length_prefixed(other)) is (one == other)


# -- settings


ENCLAVE = {"provider": "simulated"}


@pytest.mark.parametrize(
    ("section", "match"),
    [
        ({"enclave": ENCLAVE}, r"enclave\.provider: there are no enclaves by simulated"),
        ({"enclave": {**ENCLAVE, "provider": "moon"}}, "no provider of attestation 'moon'"),
        ({"enclave": {**ENCLAVE, "provider": "tpm"}}, "field 'ak'"),
        ({"enclave": {**ENCLAVE, "provider": "tdx", "swap": "on"}}, r"enclave\.swap.*'none'"),
        ({"enclaves": {"cloud": {"files": ["ab"], "accepts": {"tpm": {}}}}}, "64 hexadecimal"),
        ({"enclaves": {"cloud": {"files": ["a" * 64], "accepts": {}}}}, r"cloud\.accepts"),
        ({"enclaves": {"cloud": {"files": [], "accepts": {"tpm": {}}}}}, r"cloud\.files"),
        (
            {"enclaves": {"cloud": {"files": ["a" * 64], "accepts": {"tpm": {}}}}},
            r"accepts\.tpm\.ak",
        ),
        ({"misspelt": 1}, "'misspelt'"),
    ],
)
def test_settings_that_are_wrong_keep_a_worker_from_starting(section, match):
    with pytest.raises(ConfigError, match=match):
        settings.configure(section)
    assert settings.files is None
    assert settings.current == settings.TeeSettings()


def test_a_machine_that_swaps_is_no_enclave(monkeypatch, tmp_path):
    swaps = tmp_path / "swaps"
    swaps.write_text("Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n")
    monkeypatch.setattr("mplang_tee.measurement.SWAPS", swaps)
    with pytest.raises(ConfigError, match="swap"):
        settings.configure({"enclave": {"provider": "tdx"}})


def test_an_enclave_measures_the_file_of_its_worker(tmp_path, monkeypatch):
    enclave = {"provider": "tdx", "swap": "encrypted"}
    monkeypatch.setenv(settings.WORKER_FILE, "")
    with pytest.raises(ConfigError, match="started with a file"):
        settings.configure({"enclave": enclave})
    monkeypatch.setenv(settings.WORKER_FILE, str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"enclave\.files"):
        settings.configure({"enclave": enclave})


# -- the process that makes quotes


@pytest.fixture
def quoted(tpm_machine: Machine, monkeypatch):
    """Start the process that makes quotes."""
    monkeypatch.setattr(quoting, "_asked", None)
    quoting.start("tpm", tpm_machine.maker)
    yield
    quoting._asked[1].close()


def test_quotes_come_from_a_process_of_its_own(quoted, tpm_machine):
    tpm = find_provider("tpm")
    expected = tpm.expects(**tpm_machine.expected)
    for i in range(3):
        report = bytes([i] * 64)
        assert tpm.verify(expected, quoting.ask_for_quote("tpm", report), report, NOW)


def test_what_it_is_asked_that_is_no_report(quoted):
    with pytest.raises(KernelError, match="over 64 bytes"):
        quoting.ask_for_quote("tpm", b"short")
    with pytest.raises(KernelError, match="an enclave by tpm, not by tdx"):
        quoting.ask_for_quote("tdx", bytes(64))


def test_what_asks_it_wrongly_does_not_end_it(quoted, tmp_path):
    """An engine that was taken over may send anything; others get their quotes all the same."""
    _, asked = quoting._asked
    asked.send(b"")
    asked.send(b"x" * 64)
    asked.send(b"x" * 1000)
    with open(tmp_path / "file", "wb") as file:
        for report in (b"", b"x" * 64):
            socket.send_fds(asked, [report or b"y"], [file.fileno()])
            socket.send_fds(asked, [b"x" * 64], [file.fileno()] * 5)
    full, kept = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with full, kept:
        kept.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                kept.send(bytes(1000))
        socket.send_fds(asked, [b"x" * 64], [kept.fileno()])
        assert quoting.ask_for_quote("tpm", bytes(64))


def test_a_worker_that_is_no_enclave(monkeypatch):
    monkeypatch.setattr(quoting, "_asked", None)
    with pytest.raises(KernelError, match="is not an enclave"):
        quoting.ask_for_quote("tpm", bytes(64))


def test_it_ends_with_the_last_one_who_could_ask(tpm_machine):
    import json

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mplang_tee.quoting"], stdin=theirs.fileno()
        )
    with ours:
        ours.sendall(json.dumps({"provider": "tpm", "maker": tpm_machine.maker}).encode())
    assert process.wait(30) == 0


# -- hostile bytes


def mutants(data: bytes, count: int):
    draw = random.Random(48)
    for _ in range(count):
        other = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 4, 16))):
            other[draw.randrange(len(other))] = draw.randrange(256)
        if draw.random() < 0.2:
            start = draw.randrange(len(other))
            del other[start : start + draw.randrange(1, 64)]
        if draw.random() < 0.1:
            other += draw.randbytes(draw.randrange(1, 400))
        yield bytes(other)


@pytest.mark.parametrize("kind", ["tdx", "sgx", "tpm"])
def test_ten_thousand_mutated_quotes(kind, platforms, tpm_machine):
    """Each is refused with a reason, or proves what the quote proved."""
    report, provider = bytes(64), find_provider(kind)
    if kind == "tpm":
        expected = provider.expects(**tpm_machine.expected)
        quote = provider.quote(provider.makes(**tpm_machine.maker), report)
    else:
        platform, fields = platforms[0][kind]
        expected, quote = provider.expects(**fields), platform.quote(report)
    right = provider.verify(expected, quote, report, NOW)
    reasons = []
    for other in mutants(quote, 10_000):
        try:
            assert provider.verify(expected, other, report, NOW) == right
        except ValueError as error:
            reasons.append(str(error))
    assert all(reasons)
    assert len(reasons) > 5_000
