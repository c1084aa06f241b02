"""Extension interface: SQL for kernels of other packages, its threads. Imports DuckDB."""

from mplang_ibis import at_source as at_source
from mplang_ibis.query import run_sql as run_sql
from mplang_ibis.repeatable import may_use_threads as may_use_threads
from mplang_ibis.sql import quoted as quoted
