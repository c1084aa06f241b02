"""Extension interface: SQL for kernels of other packages. Imports DuckDB."""

from mplang_ibis import at_source as at_source
from mplang_ibis.query import run_sql as run_sql
from mplang_ibis.sql import quoted as quoted
