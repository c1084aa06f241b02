"""Extension interface: StableHLO for packages that compile to it or run it. Imports JAX.

``mplang-jax`` and ``mplang-spu`` are such packages. Each name is documented in the module that
defines it; what needs no JAX is in :mod:`mplang_stablehlo`.
"""

from mplang_stablehlo.admission import (
    ARITHMETIC as ARITHMETIC,
    STRUCTURE as STRUCTURE,
    Admission as Admission,
    OpRefusedError as OpRefusedError,
)
from mplang_stablehlo.custom_calls import (
    CUSTOM_CALLS as CUSTOM_CALLS,
    check_attributes as check_attributes,
    check_types as check_types,
    shape_of as shape_of,
    target_of as target_of,
    tensor as tensor,
)
from mplang_stablehlo.deciding import (
    deciding_operands as deciding_operands,
    secret_loop as secret_loop,
)
from mplang_stablehlo.environment import is_fixed as is_fixed, jax_settings as jax_settings
from mplang_stablehlo.executable import compile_for_xla as compile_for_xla
from mplang_stablehlo.inline import inline as inline
from mplang_stablehlo.interpreted import interpreted as interpreted
from mplang_stablehlo.intervals import (
    AnalysisResult as AnalysisResult,
    Precision as Precision,
    Step as Step,
    fixed_point as fixed_point,
    intervals as intervals,
    op_number as op_number,
    prepare as prepare,
)
from mplang_stablehlo.intervals.element_types import (
    ElementType as ElementType,
    element_type_of as element_type_of,
)
from mplang_stablehlo.intervals.interpreter import Interpreter as Interpreter
from mplang_stablehlo.intervals.patterns import comparison as comparison
from mplang_stablehlo.intervals.reductions import combined as combined
from mplang_stablehlo.intervals.rules import INTERVAL_RULES as INTERVAL_RULES
from mplang_stablehlo.module import (
    STABLEHLO_VERSION as STABLEHLO_VERSION,
    artifact as artifact,
    attribute_names as attribute_names,
    canonical as canonical,
    canonical_of as canonical_of,
    lowering_in_shared_context as lowering_in_shared_context,
    number_columns as number_columns,
    parse as parse,
    text_of as text_of,
    walk as walk,
)
from mplang_stablehlo.source_lines import (
    Lines as Lines,
    annotate as annotate,
    line_at as line_at,
    line_of as line_of,
    lines_of as lines_of,
    record_lines as record_lines,
)
