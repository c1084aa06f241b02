"""Extension interface: SQL for kernels and readers of other packages. Imports DuckDB, Arrow."""

from mplang_ibis import at_source as at_source
from mplang_ibis.bounds import Bounds as Bounds
from mplang_ibis.engines import Offered as Offered, to_dialect as to_dialect
from mplang_ibis.engines.run_postgresql import run_on_postgresql as run_on_postgresql
from mplang_ibis.engines.spark import SPARK_SETTINGS as SPARK_SETTINGS
from mplang_ibis.query import run_sql as run_sql
from mplang_ibis.repeatable import may_use_threads as may_use_threads
from mplang_ibis.result_types import described as described
from mplang_ibis.settings import configure as configure
from mplang_ibis.sql import quoted as quoted, read_sql as read_sql
from mplang_ibis.statement import ibis_sql as ibis_sql
from mplang_ibis.unfit import UnfitTableError as UnfitTableError
