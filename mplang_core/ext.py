"""Extension interface: what plugins import from, beside the package itself.

Everything here is stable within a minor version, and listed by subject. ``docs/authoring.md`` shows
most of it in use; each name is documented where it is defined.
"""

from mplang_core.alike import differences
from mplang_core.device import PARTY, Device, DeviceKind, Lowering, add_transfer, the_holder
from mplang_core.edsl.peval import run_program
from mplang_core.edsl.reuse import around_of
from mplang_core.errors import (
    AbortedError,
    AdmissionError,
    CommError,
    ConfigError,
    FeCapabilityError,
    FeConfigError,
    KernelError,
    PartyError,
    PrecisionWarning,
    RunError,
    TraceError,
    WireError,
)
from mplang_core.feop import (
    Caching,
    Capabilities,
    DeviceRequirement,
    FeMeta,
    Feop,
    Operand,
    flatten,
    unflatten,
)
from mplang_core.feop.decorator import meta_of
from mplang_core.interval import UNKNOWN, Interval, hull
from mplang_core.introspect import Rows
from mplang_core.ir import (
    AnyType,
    Attr,
    Effects,
    Level,
    Location,
    OpDef,
    Operation,
    OpRanges,
    StepRange,
    Value,
    op_defs,
)
from mplang_core.ir.code import MAX_CODE, check_nesting, pack, unpack
from mplang_core.ir.parser import parse_base_type
from mplang_core.ir.ranges import NumberStatus
from mplang_core.ir.source import at, caller, is_framework, raised, skip_package
from mplang_core.ir.wire import WIRE_VERSION, from_bytes, to_bytes
from mplang_core.live import terminal
from mplang_core.plugins import Check, Dialect, KernelSpec, hookimpl, plugin_manager
from mplang_core.printable import printable
from mplang_core.runtime import Codec, KernelContext, Recorder, codec, decode, encode, now, type_of
from mplang_core.runtime.codec import Encoded
from mplang_core.simp import (
    BackendSpec,
    Communicator,
    CommunicatorBase,
    Failure,
    Finding,
    HostVar,
    NumberChecks,
    PartyState,
    SimpHost,
    Traffic,
    WorkerInterpreter,
    outcome_of,
    size_of,
)
from mplang_core.simp.backend import make_host
from mplang_core.simp.failure import MAX_PLACE
from mplang_core.simp.host import Mode
from mplang_core.simp.interfaces import (
    Branch,
    Call,
    Communicates,
    ControlFlow,
    Forwards,
    Labels,
    Loop,
    Message,
    PartyCall,
    PublicLiteral,
)
from mplang_core.simp.ops.common import check_parties, check_sendable, context_of, operand_types
from mplang_core.simp.projection import PartyGraph, Projects
from mplang_core.strict import StrictModel
from mplang_core.types import array_from, array_of, frozen

__all__ = [  # noqa: RUF022 (by subject)
    # plugins
    "Check",
    "Dialect",
    "KernelSpec",
    "Rows",
    "hookimpl",
    "plugin_manager",
    # ops
    "AnyType",
    "Attr",
    "Effects",
    "Level",
    "OpDef",
    "Operation",
    "Value",
    "op_defs",
    "parse_base_type",
    # ops among parties
    "Branch",
    "Call",
    "Communicates",
    "ControlFlow",
    "Forwards",
    "Labels",
    "Loop",
    "Message",
    "PartyCall",
    "PartyGraph",
    "Projects",
    "PublicLiteral",
    "check_parties",
    "check_sendable",
    "context_of",
    "operand_types",
    # feops and frontends
    "Caching",
    "Capabilities",
    "DeviceRequirement",
    "FeMeta",
    "Feop",
    "Operand",
    "around_of",
    "flatten",
    "meta_of",
    "run_program",
    "unflatten",
    # devices
    "Device",
    "DeviceKind",
    "Lowering",
    "PARTY",
    "StrictModel",
    "add_transfer",
    "the_holder",
    # kernels and codecs
    "Codec",
    "Encoded",
    "KernelContext",
    "array_from",
    "array_of",
    "codec",
    "decode",
    "encode",
    "frozen",
    "type_of",
    # ranges of numbers
    "Interval",
    "NumberStatus",
    "OpRanges",
    "StepRange",
    "UNKNOWN",
    "hull",
    # backends
    "BackendSpec",
    "Communicator",
    "CommunicatorBase",
    "Failure",
    "Finding",
    "HostVar",
    "MAX_PLACE",
    "Mode",
    "NumberChecks",
    "PartyState",
    "Recorder",
    "SimpHost",
    "Traffic",
    "WIRE_VERSION",
    "WorkerInterpreter",
    "differences",
    "from_bytes",
    "make_host",
    "now",
    "outcome_of",
    "size_of",
    "terminal",
    "to_bytes",
    # code and source lines
    "Location",
    "MAX_CODE",
    "at",
    "caller",
    "check_nesting",
    "is_framework",
    "pack",
    "printable",
    "raised",
    "skip_package",
    "unpack",
    # errors
    "AbortedError",
    "AdmissionError",
    "CommError",
    "ConfigError",
    "FeCapabilityError",
    "FeConfigError",
    "KernelError",
    "PartyError",
    "PrecisionWarning",
    "RunError",
    "TraceError",
    "WireError",
]
