"""Data sets of organizations: catalogues of what programs may name, and how it is read.

Imports no Arrow.
"""

from mplang_data.description import (
    Bound,
    Description,
    NoDataSetError,
    NotOfferedError,
    SourceError,
    SourceUnreachableError,
    columns_read,
)
from mplang_data.frontend import dataset, published_values
from mplang_data.holding import DataSet, DataSets
from mplang_data.known import Catalogue, catalogue, read_catalogue
from mplang_data.sources import source_of
from mplang_data.sources.csv_options import CsvOptions
from mplang_data.sources.source import Opened, Source

__all__ = [
    "Bound",
    "Catalogue",
    "CsvOptions",
    "DataSet",
    "DataSets",
    "Description",
    "NoDataSetError",
    "NotOfferedError",
    "Opened",
    "Source",
    "SourceError",
    "SourceUnreachableError",
    "catalogue",
    "columns_read",
    "dataset",
    "published_values",
    "read_catalogue",
    "source_of",
]
