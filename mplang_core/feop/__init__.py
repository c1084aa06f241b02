"""Frontend operations (feops): declaration, registry and materialization."""

from mplang_core.feop.decorator import (
    feop as feop,
    is_feop as is_feop,
    meta_of as meta_of,
    simple_op as simple_op,
)
from mplang_core.feop.frontends import (
    frontend as frontend,
    has_compiler as has_compiler,
    preferred_here as preferred_here,
)
from mplang_core.feop.materialize import check_same as check_same, fe_materialize as fe_materialize
from mplang_core.feop.program import (
    FeBuilder as FeBuilder,
    FeProgram as FeProgram,
    FeSignature as FeSignature,
    Operand as Operand,
    PFunction as PFunction,
    flatten as flatten,
    unflatten as unflatten,
)
from mplang_core.feop.registry import registry as registry
from mplang_core.feop.requirements import (
    misfit as misfit,
    other_form as other_form,
    runs_at_parties as runs_at_parties,
    targets_of as targets_of,
    unmet as unmet,
)
from mplang_core.feop.state import ContextBound as ContextBound
