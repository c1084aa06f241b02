"""Extension interface: names for authors of sources, and for backends that hold data sets.

Sources of files inherit :class:`Files` and read within :func:`reading`; databases that run SQL
inherit :class:`Database`. ``mplang data`` and the conformance kit check them by
:func:`check_data_set`. Backends keep results in a :class:`Sink`. Storage and what imports Arrow
are imported when they are used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mplang_data.apart.child import Reach as Reach
from mplang_data.apart.database import reach_of_network as reach_of_network
from mplang_data.check import check_data_set as check_data_set, check_data_sets as check_data_sets
from mplang_data.description import read_descriptions as read_descriptions
from mplang_data.holding import offered as offered, read_data_sets as read_data_sets
from mplang_data.sources.database import Database as Database
from mplang_data.sources.files import Files as Files, mapped as mapped, open_files as open_files
from mplang_data.sources.source import (
    Placed as Placed,
    Queried as Queried,
    SourceQuery as SourceQuery,
    close_all as close_all,
)

if TYPE_CHECKING:  # found by __getattr__
    from mplang_data.columns import (
        check_schema as check_schema,
        check_there as check_there,
        reading as reading,
        table_type as table_type,
    )
    from mplang_data.relations import Published as Published
    from mplang_data.simulated import simulated as simulated
    from mplang_data.stored.entry import (
        NO_SINK as NO_SINK,
        Entry as Entry,
        Held as Held,
        StoreError as StoreError,
    )
    from mplang_data.stored.listing import entries_in as entries_in
    from mplang_data.stored.local import LocalStorage as LocalStorage
    from mplang_data.stored.run import (
        Storage as Storage,
        StoreRun as StoreRun,
        decode_versions as decode_versions,
        encode_versions as encode_versions,
        resolve_loads as resolve_loads,
        translate_label as translate_label,
    )
    from mplang_data.stored.sink import OpenedFile as OpenedFile, Sink as Sink
    from mplang_data.stored.sink_config import SinkConfig as SinkConfig, read_sink as read_sink
    from mplang_data.synthetic import (
        synthetic_data as synthetic_data,
        synthetic_table as synthetic_table,
    )

_LATER = {
    "columns": "check_schema check_there reading table_type",
    "relations": "Published",
    "simulated": "simulated",
    "stored.entry": "NO_SINK Entry Held StoreError",
    "stored.listing": "entries_in",
    "stored.local": "LocalStorage",
    "stored.run": (
        "Storage StoreRun decode_versions encode_versions resolve_loads translate_label"
    ),
    "stored.sink": "OpenedFile Sink",
    "stored.sink_config": "SinkConfig read_sink",
    "synthetic": "synthetic_data synthetic_table",
}
_HOMES = {name: module for module, names in _LATER.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a name when it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"mplang_data.{_HOMES[name]}"), name)
