"""Extension interface: noise and its bounds, for packages that add it elsewhere.

Imports no OpenDP.
"""

from mplang_dp.noise import noisy as noisy
from mplang_dp.ops import (
    check_amounts as check_amounts,
    check_bounds as check_bounds,
    check_span as check_span,
    check_values as check_values,
    parts_of as parts_of,
)
