"""Exception hierarchy of mplang.

::

    MPLangError
    ├── ConfigError               (ValueError)       a cluster, node or device description is wrong
    ├── FeError                                      frontend operations
    │   ├── FeConfigError         (ValueError)       metadata or configuration of a feop
    │   ├── FeCapabilityError     (TypeError)        the op cannot run on that device
    │   ├── FeDeterminismError    (AssertionError)   two compilations gave two results
    │   └── FeStateError          (RuntimeError)     state outside of its scope
    ├── PluginError
    │   ├── PluginLoadError       (ImportError)      a plugin is missing or did not load
    │   ├── MissingPackageError   (AttributeError)   a name of ``mp`` that is not installed
    │   ├── PluginConflictError   (ValueError)       two providers of one name
    │   └── PluginVersionError    (ImportError)      a plugin needs another core
    ├── TraceError                (TypeError)        a program cannot be traced
    │   ├── MissingAttributeError (AttributeError)   a value of a program has no such attribute
    │   └── DisclosureError       (PermissionError)  disclosure without consent
    ├── NoDataError           (ValueError)       a function of JAX on a value of a program
    ├── IRError
    │   ├── VerifyError           (TypeError)        a graph breaks a rule
    │   ├── ParseError            (ValueError)       text is not a program
    │   └── WireError             (ValueError)       bytes are not a program
    └── RunError                  (RuntimeError)
        ├── KernelError                              a kernel raised, or returned another type
        ├── AdmissionError        (PermissionError)  a party rejects the program
        ├── PartyError                               one party failed: which, where and why
        ├── ShutdownError                            a worker was shut down by its owner
        ├── PrecisionError                           a number differs from float64
        └── CommError             (ConnectionError)
            ├── RecvTimeoutError  (TimeoutError)     a message did not arrive in time
            └── AbortedError                         another party failed first

Each leaf is also a builtin exception, so that ``except TypeError`` catches it.

:class:`LiteralWarning`, :class:`InsecureWarning`, :class:`PrecisionWarning` and
:class:`StabilityWarning` are ``UserWarning``: the program continues.
"""

from __future__ import annotations

import re
import typing

from mplang_core.refusal import Advice as Advice, Refusal as Refusal, Refusals as Refusals

CODE = re.compile(r"[A-Z]{1,4}\d{3}")


class MPLangError(Exception):
    """Base class of all errors that mplang raises.

    Each class of errors is a kind with a stable code and a page, which ``mplang explain`` shows;
    who raises one may name a narrower kind. The code stands in a note, below the message.

    Attributes:
        code: the code of the kind, as ``"D001"``; empty for an error of a package without one.

    Example:
        >>> ConfigError("port 70000").code, ConfigError("port 70000", code="C003").__notes__
        ('C001', ['mplang explain C003'])
    """

    code = ""

    def __init_subclass__(cls, code: str = "") -> None:
        cls.code = code or cls.code

    def __init__(self, *args: object, code: str = "", **kwargs: typing.Any) -> None:
        super().__init__(*args, **kwargs)
        self.code = code if CODE.fullmatch(str(code)) else self.code  # a peer may say anything
        if self.code:
            self.add_note(f"mplang explain {self.code}")


class ConfigError(MPLangError, ValueError, code="C001"):
    """Invalid cluster, node or device description; the message names the field."""


class FeError(MPLangError, code="F002"):
    """Error of a frontend operation (feop)."""


class FeConfigError(FeError, ValueError, code="F002"):
    """Invalid metadata or configuration of a feop."""


class FeCapabilityError(FeError, TypeError, code="F001"):
    """Feop that a device cannot run; the message names the unmet requirement."""


class FeDeterminismError(FeError, AssertionError, code="F003"):
    """Two different programs for the same function and signature."""


class FeStateError(FeError, RuntimeError, code="F004"):
    """State of a feop outside of its state scope."""


class PluginError(MPLangError, code="P001"):
    """Error of a plugin."""


class PluginLoadError(PluginError, ImportError, code="P002"):
    """Plugin that is missing or did not load; the message says what to install."""


class MissingPackageError(PluginError, AttributeError, code="P003"):
    """Name of ``mp`` whose package is not installed; the message names the package."""


class PluginConflictError(PluginError, ValueError, code="P004"):
    """Two providers of one name; the message names both."""


class PluginVersionError(PluginError, ImportError, code="P005"):
    """Plugin that requires another version of the core."""


class TraceError(MPLangError, TypeError, code="T001"):
    """Program that cannot be traced; the message has the user's source line."""


class MissingAttributeError(TraceError, AttributeError, code="T003"):
    """Attribute that a value of a program does not have; the message says what to write."""


class NoDataError(MPLangError, ValueError, code="T002"):
    """Function of JAX on a value of a program, whose data is at the parties.

    It is not a ``TypeError``, as a :class:`TraceError` is: JAX would replace that by one of its
    own.
    """


class DisclosureError(TraceError, PermissionError, code="D001"):
    """Disclosure of private data to another party without ``put`` or ``reveal``."""


class IRError(MPLangError, code="I001"):
    """Error of a traced program."""


class VerifyError(IRError, TypeError, code="I001"):
    """Graph that breaks a rule; the message shows the op and its neighbours."""


class ParseError(IRError, ValueError, code="I002"):
    """Text that is not a program; the message has line and column."""


class WireError(IRError, ValueError, code="I003"):
    """Bytes that are not a program, are damaged, or have another version."""


class RunError(MPLangError, RuntimeError, code="R001"):
    """Failure of a program while it ran."""


class KernelError(RunError, code="R002"):
    """Kernel that raised, or whose result does not have the type of its op.

    The message names the op and the class of the cause, never a value; the cause itself is
    ``__cause__``. Neither leaves a worker: host and peers learn of the op and its line only, the
    rest is in that party's log. A simulator shows all of it.
    """


class AdmissionError(RunError, PermissionError, code="A001"):
    """Program that a party does not admit; the message names the rule.

    The message goes to the host. A kernel that raises it decides by the op's attributes, its code
    and the party's settings, never by operands.

    Attributes:
        refusals: what the party refuses, as data; none if its rules were not asked.
    """

    def __init__(self, *args: object, refusals: tuple[Refusal, ...] = (), code: str = "") -> None:
        super().__init__(*args, code=code)
        self.refusals = Refusals(refusals)


class PartyError(RunError):
    """Failure of one party.

    Attributes:
        rank: the party that failed first.
        op: the name of the failed op; ``None`` if the failure was outside of an op.
        location: the user's source line, ``"file:line"``, or ``None``.
        others: what other parties refuse, beside the one that failed first.

    Example:
        >>> def show(error: PartyError) -> None:
        ...     for each in error.refusals:
        ...         print(each.party, "refuses", each.columns, "by", each.rules)
    """

    def __init__(
        self,
        message: str,
        *,
        rank: int,
        op: str | None = None,
        location: str | None = None,
        code: str = "",
    ) -> None:
        super().__init__(message, code=code)
        self.rank = rank
        self.op = op
        self.location = location
        self.others: tuple[AdmissionError, ...] = ()

    @property
    def refusals(self) -> Refusals:
        """Refusals of the parties, as data, if the run failed by them."""
        first: tuple[Refusal, ...] = getattr(self.__cause__, "refusals", ())
        return Refusals((*first, *(refusal for each in self.others for refusal in each.refusals)))


class ShutdownError(RunError, code="R004"):
    """Worker that its owner shuts down, or has shut down.

    It takes no new sessions and runs; runs that did not end in time were ended.
    """


class PrecisionError(RunError, code="N001"):
    """Number that differs from float64; the message has the op and both numbers.

    A simulator raises it with ``check_numbers="raise"``.
    """


class LiteralWarning(UserWarning):
    """Literal in a program that may be data; all parties of the program can read it.

    It is shown at the user's line, once per line, for a literal of more than 64 elements that
    ``put`` or ``seal`` moves, or that is an argument of ``evaluate``. :func:`mplang_core.public`
    says that it is meant.
    """

    code = "N002"


class InsecureWarning(UserWarning):
    """Device that protects nothing from one of its parties, which nobody asked for.

    It is shown once per device, where a value is first sealed to it.
    """

    code = "N003"


class StabilityWarning(UserWarning):
    """Feop that its plugin calls experimental; shown once, where it is first used."""

    code = "N004"


class PrecisionWarning(UserWarning):
    """Number that differs from float64; the message has the op and both numbers.

    A simulator shows it at the user's line, once per line and op.
    """

    code = "N001"


class CommError(RunError, ConnectionError, code="L001"):
    """Failed exchange of a message between two parties."""


class RecvTimeoutError(CommError, TimeoutError, code="L002"):
    """Message that did not arrive before its deadline."""


class AbortedError(CommError, code="L003"):
    """Party that stopped because another one failed."""
