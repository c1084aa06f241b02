"""Names that installed packages add to ``mplang_core``; written by ``mplang stubs``."""

# ruff: noqa: I001, N812

from mplang_http.plugin import _connect as Http
from mplang_trace import Recording as Recording
from mplang_simulator import Simulator as Simulation
from mplang_simulator import Simulator as Simulator
from mplang_trace import Span as Span
import mplang_analysis as analysis
import mplang_cli.artifact as artifact
from mplang_data import catalogue as catalogue
from mplang_data import dataset as dataset
import mplang_dp as dp
from mplang_joins import explain as explain
import mplang_guard as guard
import mplang_he as he
import mplang_cli.introspect as introspect
from mplang_joins import join as join
from mplang_data.stored.frontend import load as load
from mplang_match import match as match
from mplang_joins import overlap as overlap
from mplang_cli import parse as parse
import mplang_phe as phe
from mplang_trace import record as record
from mplang_data.stored.frontend import remove as remove
from mplang_ibis.statement import sql as sql
from mplang_data.stored.frontend import store as store
import mplang_tee as tee
from mplang_trace import watch as watch

__all__ = [
    "Http",
    "Recording",
    "Simulation",
    "Simulator",
    "Span",
    "analysis",
    "artifact",
    "catalogue",
    "dataset",
    "dp",
    "explain",
    "guard",
    "he",
    "introspect",
    "join",
    "load",
    "match",
    "overlap",
    "parse",
    "phe",
    "record",
    "remove",
    "sql",
    "store",
    "tee",
    "watch",
]
