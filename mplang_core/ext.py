"""Extension interface: the names that plugins import besides those of ``mplang_core``.

They are stable within a minor version. ``docs/authoring.md`` uses most of them; each is
documented in the module that defines it.
"""

from mplang_core.config_model import StrictModel as StrictModel
from mplang_core.days import DAY as DAY, Days as Days, count_days as count_days
from mplang_core.deprecation import deprecated_names as deprecated_names
from mplang_core.device import (
    PARTY as PARTY,
    Device as Device,
    DeviceKind as DeviceKind,
    JointRun as JointRun,
    Lowering as Lowering,
    Transfer as Transfer,
    device_kinds as device_kinds,
    device_of_party as device_of_party,
    devices_of_parties as devices_of_parties,
    route as route,
    the_holder as the_holder,
    transfers as transfers,
)
from mplang_core.edsl.bounds import read_range as read_range
from mplang_core.edsl.context import Cluster as Cluster, given_catalogue as given_catalogue
from mplang_core.edsl.literals import read_args as read_args
from mplang_core.edsl.peval import run_program as run_program
from mplang_core.errors import *  # noqa: F403 (the whole tree)
from mplang_core.feop import Operand as Operand, flatten as flatten, unflatten as unflatten
from mplang_core.feop.decorator import meta_of as meta_of
from mplang_core.feop.free_variables import (
    captured as captured,
    free_variables as free_variables,
    globals_read as globals_read,
    names_of as names_of,
)
from mplang_core.feop.materialize import checks_determinism as checks_determinism
from mplang_core.feop.meta import (
    Caching as Caching,
    Capabilities as Capabilities,
    DeviceRequirement as DeviceRequirement,
    FeMeta as FeMeta,
    Feop as Feop,
)
from mplang_core.feop.program import PyTreeDef as PyTreeDef, nest_rules as nest_rules
from mplang_core.feop.state import fe_process_state as fe_process_state
from mplang_core.ir import (
    AnyType as AnyType,
    Attr as Attr,
    AttrValue as AttrValue,
    AttrVisitor as AttrVisitor,
    Effects as Effects,
    Graph as Graph,
    Level as Level,
    Location as Location,
    OpDef as OpDef,
    Operation as Operation,
    Value as Value,
    interface_of as interface_of,
    normalize as normalize,
    op_defs as op_defs,
    print_program as print_program,
)
from mplang_core.ir.compressed_text import MAX_CODE as MAX_CODE, pack as pack, unpack as unpack
from mplang_core.ir.opdef import OPTIONAL as OPTIONAL, REQUIRED as REQUIRED
from mplang_core.ir.parser import (
    TypeParser as TypeParser,
    parse_attribute as parse_attribute,
    parse_base_type as parse_base_type,
    parse_type as parse_type,
    parsed as parsed,
)
from mplang_core.ir.source_line import (
    at as at,
    caller as caller,
    is_skipped as is_skipped,
    raised as raised,
    skip_package as skip_package,
    warn as warn,
)
from mplang_core.ir.wire import (
    WIRE_VERSION as WIRE_VERSION,
    from_bytes as from_bytes,
    to_bytes as to_bytes,
)
from mplang_core.plugins import (
    Check as Check,
    Dialect as Dialect,
    KernelSpec as KernelSpec,
    PluginRecord as PluginRecord,
    hookimpl as hookimpl,
    plugin_manager as plugin_manager,
)
from mplang_core.plugins.manager import (
    ADMISSION as ADMISSION,
    ANALYSES as ANALYSES,
    BACKENDS as BACKENDS,
    COMMANDS as COMMANDS,
    COMPATIBLE as COMPATIBLE,
    FURTHER as FURTHER,
    HOOKED as HOOKED,
    KERNELS as KERNELS,
    NAMESPACES as NAMESPACES,
    NATIVE as NATIVE,
    PASS_VERSION as PASS_VERSION,
    PASSES as PASSES,
    SECTIONS as SECTIONS,
    WORKERS as WORKERS,
    groups_of as groups_of,
)
from mplang_core.printable import printable as printable
from mplang_core.runtime import (
    Codec as Codec,
    KernelContext as KernelContext,
    Listener as Listener,
    codec as codec,
    codecs as codecs,
    decode as decode,
    encode as encode,
    host_kernels as host_kernels,
    native_of as native_of,
    native_ops as native_ops,
    worker_kernels as worker_kernels,
)
from mplang_core.runtime.codec import (
    Encoded as Encoded,
    check_fetchable as check_fetchable,
    type_of as type_of,
    value_of as value_of,
)
from mplang_core.runtime.communicator import MAX_DIRECT as MAX_DIRECT
from mplang_core.runtime.failure import (
    MAX_PLACE as MAX_PLACE,
    WITHHELD as WITHHELD,
    DamagedProcessError as DamagedProcessError,
    Failure as Failure,
    told_of as told_of,
)
from mplang_core.runtime.mailbox import (
    CommunicatorBase as CommunicatorBase,
    late as late,
    overdue as overdue,
)
from mplang_core.runtime.native import (
    Answer as Answer,
    Buffer as Buffer,
    NativeCalls as NativeCalls,
    NativeParty as NativeParty,
    NativeService as NativeService,
    NativeSpec as NativeSpec,
    native_calls as native_calls,
)
from mplang_core.runtime.progress import PartyState as PartyState, Traffic as Traffic
from mplang_core.runtime.recorder import Recorder as Recorder
from mplang_core.runtime.results import (
    outcome_of as outcome_of,
    wait_for_outcome as wait_for_outcome,
)
from mplang_core.runtime.waiter import Waiter as Waiter
from mplang_core.simp import (
    BackendSpec as BackendSpec,
    Communicator as Communicator,
    HostVar as HostVar,
    SimpHost as SimpHost,
    WorkerInterpreter as WorkerInterpreter,
    backends as backends,
    size_of as size_of,
)
from mplang_core.simp.backend import make_host as make_host
from mplang_core.simp.diagnostics import Diagnosis as Diagnosis, Diagnostic as Diagnostic
from mplang_core.simp.host import Mode as Mode
from mplang_core.simp.interfaces import (
    Branch as Branch,
    Call as Call,
    Communicates as Communicates,
    ControlFlow as ControlFlow,
    DeclaredRange as DeclaredRange,
    Forwards as Forwards,
    Labels as Labels,
    Loop as Loop,
    Message as Message,
    PartyCall as PartyCall,
    PublicLiteral as PublicLiteral,
    QueriesSources as QueriesSources,
    control_of as control_of,
    holders_of as holders_of,
    messages_of as messages_of,
    participants_of as participants_of,
)
from mplang_core.simp.observed import (
    ObservedHost as ObservedHost,
    ObservedWorker as ObservedWorker,
    op_of as op_of,
)
from mplang_core.simp.ops.common import (
    check_parties as check_parties,
    check_sendable as check_sendable,
    context_of as context_of,
    operand_types as operand_types,
    received as received,
)
from mplang_core.simp.ops.keep import kept_outputs as kept_outputs
from mplang_core.simp.passes import Pass as Pass, passes as passes, prepared as prepared
from mplang_core.simp.public_inputs import (
    ProgramOfRun as ProgramOfRun,
    compares as compares,
    with_public_inputs as with_public_inputs,
)
from mplang_core.suggest import CORE as CORE, KNOWN as KNOWN, similar as similar
from mplang_core.types import (
    array_from as array_from,
    array_of as array_of,
    frozen as frozen,
    type_classes as type_classes,
)
