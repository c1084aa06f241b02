"""What others may know of an error that ended a party's run."""

from __future__ import annotations

import pytest

from mplang_core.errors import AdmissionError, KernelError, PartyError, RunError, VerifyError
from mplang_core.ext import Failure


def test_only_texts_of_our_own_leave_the_party():
    assert "secret" not in str(Failure.of(ValueError("a secret")))
    assert Failure.of(KernelError("a public text")).text == "a public text"


def test_the_host_raises_what_the_party_told():
    error = KernelError("it broke")
    error.op, error.location = "toy.add", "prog.py:3"
    made = Failure.of(error).error()
    assert (type(made), str(made), made.op, made.location) == (
        KernelError, "it broke", "toy.add", "prog.py:3",
    )  # fmt: skip
    assert type(Failure.of(VerifyError("wrong")).error()) is VerifyError


@pytest.mark.parametrize("kind", ["PartyError", "SystemExit", "MPLangError", "__file__", "nothing"])
def test_what_no_program_ends_with_is_a_plain_error(kind):
    assert type(Failure(kind, "text").error()) is RunError
    assert not isinstance(Failure(kind, "text").error(), PartyError)


def test_the_code_of_a_kind_goes_with_the_error():
    made = Failure.of(AdmissionError("no such data", code="A002")).error()
    assert made.code == "A002"
    assert made.__notes__ == ["mplang explain A002"]
    assert Failure("AdmissionError", "text").error().code == "A001"


def test_the_reason_that_stays_at_a_party_has_one_code():
    """Which one it is may depend on the data."""
    for code in ("R008", "R009"):
        error = KernelError("a column has nulls", code=code)
        error.op = "toy.add"
        assert Failure.public(error).error().code == "R001"


@pytest.mark.parametrize("code", ["D001\nrun this", "rm -rf", "", "D1", "d001", 7, None])
def test_a_peer_names_codes_and_nothing_else(code):
    assert Failure("RunError", "text", code=code).error().__notes__ == ["mplang explain R001"]
