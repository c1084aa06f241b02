"""The one tree of errors.

::

    MPLangError
    ├── ConfigError               (ValueError)       a cluster, node or device description is wrong
    ├── FeError                                      frontend operations
    │   ├── FeConfigError         (ValueError)       metadata or configuration of a feop
    │   ├── FeCapabilityError     (TypeError)        the op cannot run on that device
    │   ├── FeDeterminismError    (AssertionError)   two compilations gave two results
    │   └── FeStateError          (RuntimeError)     state kept where it must not be
    ├── PluginError
    │   ├── PluginLoadError       (ImportError)      a plugin is missing or did not load
    │   ├── MissingPackageError   (AttributeError)   a part of ``mp`` that is not installed
    │   ├── PluginConflictError   (ValueError)       two providers of one name
    │   └── PluginVersionError    (ImportError)      a plugin wants another core
    ├── TraceError                (TypeError)        the program, while it is traced
    │   └── DisclosureError       (PermissionError)  plain data would move without being told to
    ├── IRError
    │   ├── VerifyError           (TypeError)        a graph that breaks the rules
    │   ├── ParseError            (ValueError)       text that is no program
    │   └── WireError             (ValueError)       bytes that are no program
    └── RunError                  (RuntimeError)
        ├── KernelError                              a kernel raised, or gave what was not promised
        ├── AdmissionError        (PermissionError)  a party does not let the program run
        ├── PartyError                               one party failed: says which, where and why
        ├── PrecisionError                           a number is not what float64 gives
        └── CommError             (ConnectionError)
            ├── RecvTimeoutError  (TimeoutError)     a message did not come in time
            └── AbortedError                         another party failed first

A leaf is also the natural builtin, so ``except TypeError`` works as a reader expects.

:class:`PrecisionWarning` is a ``UserWarning``: the program goes on.
"""

from __future__ import annotations


class MPLangError(Exception):
    """The root: everything that mplang raises on purpose."""


class ConfigError(MPLangError, ValueError):
    """A cluster, node or device description is wrong; the message names the field."""


class FeError(MPLangError):
    """Something about a frontend operation (feop)."""


class FeConfigError(FeError, ValueError):
    """The metadata or the configuration of a feop is invalid."""


class FeCapabilityError(FeError, TypeError):
    """A feop cannot run where it was asked to; says which requirement failed."""


class FeDeterminismError(FeError, AssertionError):
    """The same function and signature gave two different programs."""


class FeStateError(FeError, RuntimeError):
    """A feop kept state where its scope forbids it."""


class PluginError(MPLangError):
    """Something about a plugin."""


class PluginLoadError(PluginError, ImportError):
    """A plugin is missing or did not load; says how to get it."""


class MissingPackageError(PluginError, AttributeError):
    """A part of ``mp`` comes with a package that is not installed; says which."""


class PluginConflictError(PluginError, ValueError):
    """Two providers claim one name; names both."""


class PluginVersionError(PluginError, ImportError):
    """A plugin was built for another version of the core."""


class TraceError(MPLangError, TypeError):
    """A program cannot be traced; shows the user's source line."""


class DisclosureError(TraceError, PermissionError):
    """Private data would reach another party without ``put`` or ``reveal``."""


class IRError(MPLangError):
    """Something about a program in its traced form."""


class VerifyError(IRError, TypeError):
    """A graph breaks a rule; shows the op among its neighbours."""


class ParseError(IRError, ValueError):
    """Text that is not a program; says line and column."""


class WireError(IRError, ValueError):
    """Bytes that are not a program, damaged, or of another version."""


class RunError(MPLangError, RuntimeError):
    """A program failed while it ran."""


class KernelError(RunError):
    """A kernel raised, or its result is not what its op promises.

    The text is public: it names the op and the class of the cause, never a value. The
    cause itself is ``__cause__``, and stays with its party.
    """


class AdmissionError(RunError, PermissionError):
    """A party does not let a program, or a part of it, run; says by which rule."""


class PartyError(RunError):
    """One party failed.

    Attributes:
        rank: the party that failed first.
        op: its op's name, or ``None`` where it failed outside of an op.
        location: the user's source line, ``"file:line"``, or ``None``.
    """

    def __init__(
        self, message: str, *, rank: int, op: str | None = None, location: str | None = None
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.op = op
        self.location = location


class PrecisionError(RunError):
    """A number that was computed is not what float64 gives; says the op, and both numbers.

    A simulator raises it with ``check_numbers="raise"``.
    """


class PrecisionWarning(UserWarning):
    """A number that was computed is not what float64 gives; says the op, and both numbers.

    A simulator shows it at the user's line, once for a line and an op.
    """


class CommError(RunError, ConnectionError):
    """Two parties could not exchange a message."""


class RecvTimeoutError(CommError, TimeoutError):
    """A message did not arrive before its deadline."""


class AbortedError(CommError):
    """This party stopped because another one failed."""
