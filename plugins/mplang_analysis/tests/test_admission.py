"""Admission checks of others: whatever they do, a program is admitted or refused by name."""

from __future__ import annotations

import pytest
from mplang_analysis import Submission, admit

import mplang_core as mp
from mplang_core.errors import AdmissionError


class PanicException(BaseException):
    """What an extension written in Rust raises when it panics."""


class Check:
    def __init__(self, found):
        self._found = found

    def refusals(self, submission):
        if isinstance(self._found, BaseException):
            raise self._found
        return self._found


def ask(found):
    program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda: mp.constant(1)).program
    admit({"fussy": Check(found)}, Submission(program, "ann", 0, ("bank",)))


@pytest.mark.parametrize("found", [[], ()])
def test_nothing_against_it(found):
    ask(found)


def test_some_reasons_are_told():
    with pytest.raises(
        AdmissionError, match="(?m)^fussy refuses the program: r0; .*; r4; and 2 more$"
    ):
        ask([f"r{i}" for i in range(7)])
    with pytest.raises(AdmissionError) as error:
        ask(["x" * 9999])
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ("no; yes", "a str"),
        ("", "a str"),
        (b"no", "a bytes"),
        (None, "a NoneType"),
        (False, "a bool"),
        (["no", None], "a NoneType"),
        ((each for each in "no"), "a generator"),
    ],
)
def test_a_check_that_returns_no_list_of_texts_refuses(found, told):
    text = f"bank admits nothing: its check 'fussy' has to return a list of texts, got {told}"
    with pytest.raises(AdmissionError, match=text):
        ask(found)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), PanicException("x")])
def test_a_check_that_fails_refuses(error):
    with pytest.raises(AdmissionError, match="(?m)bank admits nothing: its check 'fussy' failed$"):
        ask(error)


def test_a_check_may_be_interrupted():
    with pytest.raises(KeyboardInterrupt):
        ask(KeyboardInterrupt())
