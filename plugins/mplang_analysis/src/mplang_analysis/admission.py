"""Admission checks: code of a worker's owner that may refuse programs; an extension point.

A package adds one by an entry point of the group ``mplang.admission``, which names a class; a
worker has those that ``admission`` of its configuration names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from mplang_core import MPLangError, Program
from mplang_core.ext import ADMISSION, AdmissionError, ConfigError, plugin_manager

MAX_REASONS = 5  # that are told
MAX_REASON = 500  # characters of one


class Submission(NamedTuple):
    """Run that a coordinator submits to a party.

    Attributes:
        program: the program, which is valid; it may not be changed.
        coordinator: who wants it.
        party: the rank of the party whose worker asks.
        parties: the names of the parties, by rank.
    """

    program: Program
    coordinator: str
    party: int
    parties: tuple[str, ...]


@runtime_checkable
class AdmissionCheck(Protocol):
    """A :class:`mplang_core.ext.StrictModel` whose fields are its section in a configuration."""

    def refusals(self, submission: Submission) -> Sequence[str]:
        """Return a list of the reasons why a program may not run here; an empty one if it may.

        It is asked each time that a program is sent, before anything of it runs, also for one that
        was sent before. It sees one program, of which a coordinator may make several that do the
        same. Others may be told the reasons: they have the program's lines, and nothing of this
        party's data.

        Args:
            submission: what is to run.
        """


def admission_checks(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, AdmissionCheck]:
    """Return the checks that a configuration names.

    Args:
        sections: the fields of each, by the name of its entry point.

    Raises:
        ConfigError: one is not installed, does not load, or refuses its fields.
    """
    found = {}
    for name, fields in sections.items():
        try:
            make = plugin_manager.entry(ADMISSION, name)
            if make is None:
                known = ", ".join(plugin_manager.names(ADMISSION)) or "none"
                raise ConfigError(f"no such check is installed; there are: {known}", code="C003")
            check = make(**fields)
        except (MPLangError, TypeError, ValueError) as error:
            raise ConfigError(f"field 'admission.{name}': {error}", code="C003") from error
        if not isinstance(check, AdmissionCheck):
            raise ConfigError(
                f"field 'admission.{name}': {make!r} has no method refusals", code="C003"
            )
        found[name] = check
    return found


def admit(checks: Mapping[str, AdmissionCheck], submission: Submission) -> None:
    """Ask each check; what fails refuses, too.

    Raises:
        AdmissionError: one refuses, with its reasons; or it fails, or returns no list of texts.
            Names it.
    """
    for name, check in checks.items():
        reasons = _reasons(name, check, submission)
        if reasons:
            told = [reason[:MAX_REASON] for reason in reasons[:MAX_REASONS]]
            more = f"; and {len(reasons) - len(told)} more" if len(reasons) > len(told) else ""
            raise AdmissionError(f"{name} refuses the program: {'; '.join(told)}{more}")


def _reasons(name: str, check: AdmissionCheck, submission: Submission) -> Sequence[str]:
    """Return the reasons of one check; raise AdmissionError if it gives no list of texts."""
    refusal = f"{submission.parties[submission.party]} admits nothing: its check {name!r}"
    try:
        reasons = check.refusals(submission)
    except KeyboardInterrupt:
        raise
    except (
        BaseException
    ) as error:  # SystemExit, and panics of extensions in Rust, are not an Exception
        raise AdmissionError(f"{refusal} failed") from error
    others = [reasons]
    if isinstance(reasons, list | tuple):
        others = [each for each in reasons if not isinstance(each, str)]
    if others:
        raise AdmissionError(
            f"{refusal} has to return a list of texts, got a {type(others[0]).__name__}"
        )
    return reasons
