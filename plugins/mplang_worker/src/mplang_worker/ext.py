"""Extension interface: what packages that bring sections of a worker's configuration build on.

The names are stable within a minor version. Packages below this one have what the protocols ask
for without importing them.
"""

from mplang_worker.base.section_protocols import (
    Answer as Answer,
    Ask as Ask,
    Asker as Asker,
    DataProvider as DataProvider,
    DataSection as DataSection,
    Decision as Decision,
    Gate as Gate,
    GateSection as GateSection,
    Probed as Probed,
    Provider as Provider,
    Reloadable as Reloadable,
    Section as Section,
    Store as Store,
    StoreClient as StoreClient,
    StoreSection as StoreSection,
)
