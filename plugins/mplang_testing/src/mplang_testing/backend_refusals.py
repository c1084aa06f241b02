"""What workers of a backend refuse: wrong programs, secrets, and values of another session."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from mplang_core import MPLangError, evaluate, invoke, parse, simp
from mplang_core.ext import HostVar, SimpHost
from mplang_testing import dialect
from mplang_testing.suite import Suite, complain

OF_ITS_TYPE = """
program "lies" on {0, 1} (%0: i64[]@{0, 1}) {
  %2 = simp.pcall_static(%0) {parties = {0, 1}} do (%1: i64[]) {
    %3 = kit.fail_at(%1) {party = 0} : i64[]
    %4 = kit.add(%3, %3) : f64[]
    return %4
  } : f64[]@{0, 1}
  return %2
}"""
OF_ITS_HOLDERS = """
program "lies" on {0, 1} (%0: i64[]@{0, 1}) {
  %2 = simp.pcall_static(%0) {parties = {0}} do (%1: i64[]) {
    %3 = kit.add(%1, %1) : i64[]
    return %3
  } : i64[]@{0, 1}
  return %2
}"""
LIES = {"type": OF_ITS_TYPE, "holders": OF_ITS_HOLDERS}
"""Programs that say something else of a value than what their ops do.

Of the first one an op fails if any runs; of the second one nothing does.
"""


class BackendRefusals(Suite, kit=True):
    """What workers refuse, whatever the host lets through; a part of ``BackendSuite``.

    A host is the coordinator's: what it checks protects nobody. So these tests ask the workers by
    what a backend gives to :class:`mplang_core.ext.SimpHost`.
    """

    def _host(self, parties: int) -> AbstractContextManager[SimpHost]:
        raise NotImplementedError("a BackendSuite gives _host(self, parties)")

    def test_a_worker_verifies_what_it_is_sent(self) -> None:
        """A program that lies of a type, or of who holds a value, runs at no party."""
        for what, text in LIES.items():
            with self._host(2) as host:
                program, args = parse(text), [host.lift(np.int64(3))]
                run = functools.partial(host._run_parties, program, args, host.mask)
                error = _error_of(f"a program that lies of the {what} of a value", run)
                if getattr(error, "op", None) == "kit.fail_at":
                    complain(
                        f"workers run a program that lies of the {what} of a value",
                        expected="VerifyError, before the first op",
                        got=f"{type(error).__name__}: {error}",
                        fix="have the worker verify(program) before it runs it: types decide what "
                        "is disclosed to whom, and owners' rules go by them",
                    )

    def test_secrets_stay_at_their_party(self) -> None:
        """A worker gives a host no share and no key, whoever asks for it."""
        with self._host(2) as host:
            secrets: dict[str, Any] = {
                "share": evaluate(host, lambda x: invoke(dialect.share, x), np.int64(7)),
                "key": evaluate(host, lambda: simp.pcall_static([0, 1], dialect.make_key)),
            }
            for what, made in secrets.items():
                for rank, reference in enumerate(made.value.values):
                    fetch = functools.partial(host._fetch, rank, reference)
                    _error_of(f"the fetch of a {what} from party {rank}", fetch, SECRET)

    def test_values_of_another_session_are_not_there(self) -> None:
        """A worker gives a host no value of another host, and runs nothing on it."""
        with self._host(2) as one, self._host(2) as other:
            made: Any = evaluate(one, lambda x: invoke(dialect.add, x, x), np.int64(7))
            var: HostVar = made.value
            if isinstance(var.values[0], np.ndarray):
                return  # this backend has no references: hosts have the values themselves
            for rank, reference in enumerate(var.values):
                fetch = functools.partial(other._fetch, rank, reference)
                _error_of(f"the fetch of another session's value from party {rank}", fetch, OTHER)
            program = parse(OF_ITS_HOLDERS.replace("{parties = {0}}", "{parties = {0, 1}}"))
            run = functools.partial(other._run_parties, program, [var], other.mask)
            _error_of("a program on values of another session", run, OTHER)


SECRET = "have the worker refuse what is not plain: mplang_core.ext.check_fetchable(value)"
OTHER = "have the worker look for a value among those of the session that asks"


def _error_of(
    what: str, act: Callable[[], object], fix: str = "refuse it at the worker"
) -> MPLangError:
    """Return the error that something ends in.

    Args:
        what: what is tried.
        act: tries it.
        fix: what to do if it ends in none.
    """
    try:
        act()
    except MPLangError as error:
        return error
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
    else:
        got = "it is done"
    return complain(f"{what} is not refused", expected="an error", got=got, fix=fix)
