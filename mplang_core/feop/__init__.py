"""Frontend operations (feops): what they are, and where they are found."""

from mplang_core.feop.decorator import feop, is_feop, meta_of, simple_op
from mplang_core.feop.meta import (
    Caching,
    Capabilities,
    DeviceRequirement,
    FeMeta,
    Feop,
    IOSpec,
    Stability,
)
from mplang_core.feop.program import (
    FeBuilder,
    FeProgram,
    FeSignature,
    Operand,
    PFunction,
    flatten,
    unflatten,
)
from mplang_core.feop.registry import Registry, registry
from mplang_core.feop.routing import check_same, compiler_for, fe_materialize, misfit, unmet
from mplang_core.feop.state import ContextBound, FeState

__all__ = [
    "Caching",
    "Capabilities",
    "ContextBound",
    "DeviceRequirement",
    "FeBuilder",
    "FeMeta",
    "FeProgram",
    "FeSignature",
    "FeState",
    "Feop",
    "IOSpec",
    "Operand",
    "PFunction",
    "Registry",
    "Stability",
    "check_same",
    "compiler_for",
    "fe_materialize",
    "feop",
    "flatten",
    "is_feop",
    "meta_of",
    "misfit",
    "registry",
    "simple_op",
    "unflatten",
    "unmet",
]
