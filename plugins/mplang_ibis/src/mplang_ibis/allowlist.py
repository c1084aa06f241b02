"""Allowlist of SQL syntax and functions; all else is refused."""

from __future__ import annotations

_QUERIES = """
SELECT_NODE SET_OPERATION_NODE CTE_NODE ORDER_MODIFIER LIMIT_MODIFIER LIMIT_PERCENT_MODIFIER
DISTINCT_MODIFIER ASCENDING DESCENDING ORDER_DEFAULT
"""
_TABLES = "BASE_TABLE SUBQUERY JOIN EMPTY EXPRESSION_LIST"
_EXPRESSIONS = """
BETWEEN CASE CAST COLLATE COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION OPERATOR STAR
SUBQUERY WINDOW
"""

KINDS = frozenset([*_QUERIES.split(), *_TABLES.split(), *_EXPRESSIONS.split()])
"""Allowed node kinds of DuckDB's syntax tree.

``LAMBDA`` is not among them: binding nested ones takes exponential time, and cannot be stopped.
"""

_NUMBERS = """
abs acos acosh asin asinh atan atan2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees even
exp fdiv floor fmod gcd greatest isfinite isinf isnan lcm least ln log log10 log2 mod nullif pi pow
power radians round round_even sign sin sinh sqrt tan tanh trunc xor
"""
_STRINGS = """
ascii base64 bit_length char_length chr concat concat_ws contains decode encode ends_with
from_base64 hamming hex ilike_escape instr jaro_similarity jaro_winkler_similarity lcase left length
levenshtein like_escape lower lpad ltrim md5 not_ilike_escape not_like_escape octet_length ord
prefix regexp_escape regexp_extract regexp_full_match regexp_matches regexp_replace repeat replace
reverse right rpad rtrim sha1 sha256 split_part starts_with strip_accents strlen strpos substr
substring suffix to_base64 translate trim ucase unhex unicode upper
"""
_LISTS = """
array_contains array_extract array_length array_slice array_to_string len list_contains list_extract
list_slice list_value regexp_split_to_array split str_split string_split unnest
"""
_TIMES = """
century date_add date_diff date_part date_sub date_trunc datediff datepart datetrunc day dayname
dayofmonth dayofweek dayofyear decade epoch epoch_ms epoch_ns epoch_us hour isodow isoyear last_day
make_date make_time make_timestamp microsecond millisecond minute month monthname nanosecond quarter
second strftime strptime time_bucket timezone to_days to_hours to_microseconds to_milliseconds
to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years try_strptime week weekday
weekofyear year yearweek
"""
_AGGREGATES = """
any_value approx_count_distinct approx_quantile arbitrary arg_max arg_max_null arg_min arg_min_null
argmax argmin array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count count_if count_star
covar_pop covar_samp entropy favg first fsum geomean group_concat kurtosis kurtosis_pop last list
listagg mad max max_by mean median min min_by mode product quantile quantile_cont quantile_disc
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem
skewness stddev stddev_pop stddev_samp string_agg sum var_pop var_samp variance
"""
_WINDOWS = """
cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
"""
_ALL = (_NUMBERS, _STRINGS, _LISTS, _TIMES, _AGGREGATES, _WINDOWS)

FUNCTIONS = frozenset(name for names in _ALL for name in names.split())
"""Allowed functions: deterministic ones of their operands alone."""

ROW_WISE = frozenset(
    name
    for names in (_NUMBERS, _STRINGS, _LISTS, _TIMES)
    for name in names.split()
    if name not in {*_AGGREGATES.split(), *_WINDOWS.split(), "unnest"}
)
"""Allowed functions that give one value for each row."""

_PROCESS = """
current_catalog current_date current_role current_schema current_time current_timestamp current_user
localtime localtimestamp session_user user
"""

PROCESS = frozenset(_PROCESS.split())
"""Refused names: DuckDB reads them as functions of the process, if no column has the name."""
