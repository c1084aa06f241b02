"""Analyses by name: those of this package, and those that plugins bring; an extension point.

A package adds one by an entry point of the group ``mplang.analyses``, which names a function.
"""

from __future__ import annotations

from typing import Protocol

from mplang_analysis.report import Report
from mplang_analysis.subject import program_of
from mplang_core import MPLangError, Program
from mplang_core.ext import ANALYSES, PluginError, plugin_manager


class Analysis(Protocol):
    """A documented function that tells something of a program, without running it."""

    __doc__: str | None

    def __call__(self, program: Program, /) -> Report:
        """Return what it finds.

        Args:
            program: a valid program; never changed. It may have ops of any plugin.
        """


def analyses() -> list[str]:
    """Return the names of the installed analyses; import nothing.

    Example:
        >>> {"costs", "disclosure", "ranges"} <= set(analyses())
        True
    """
    return plugin_manager.names(ANALYSES)


def analysis_of(name: str) -> Analysis:
    """Return an analysis by its name.

    Raises:
        PluginError: there is none of that name, its package does not load, or it is not a function.
    """
    found = plugin_manager.entry(ANALYSES, name)
    if found is None:
        known = ", ".join(analyses()) or "none"
        raise PluginError(f"no analysis {name[:80]!r} is installed; there are {known}")
    if not callable(found):
        raise PluginError(f"the analysis {name!r} is a function, got {found!r}")
    made: Analysis = found
    return made


def analyze(name: str, program: object) -> Report:
    """Return what an analysis finds in a program.

    Args:
        name: the name of the analysis; see :func:`analyses`.
        program: a program, or a function that was traced or compiled.

    Raises:
        PluginError: there is no such analysis, or it fails.
        TraceError: it is not a program.
        VerifyError: the program breaks a rule.

    Example:
        >>> import mplang_core as mp
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), lambda: mp.constant(1))
        >>> analyze("costs", traced).to_dict()["rounds"]
        0
    """
    run, found = analysis_of(name), program_of(program)
    try:
        report = run(found)
    except MPLangError:
        raise
    except Exception as error:  # of code that is not ours
        raise PluginError(
            f"the analysis {name!r} failed: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(report, Report):
        raise PluginError(
            f"the analysis {name!r} gives a {type(report).__name__}, expected a Report"
        )
    return report
