"""Extension interface: what a worker needs of this package, and of what a coordinator sends.

The names are stable within a minor version.
"""

from mplang_http.base.address import split_address as split_address
from mplang_http.base.expiry import DAY as DAY, WARN as WARN, days as days
from mplang_http.base.natives import native_names as native_names, needed_natives as needed_natives
from mplang_http.base.plugin_versions import (
    OWN as OWN,
    USED as USED,
    Versions as Versions,
    compatible as compatible,
    installed as installed,
    may_differ_here as may_differ_here,
    misfits as misfits,
    pass_versions as pass_versions,
)
from mplang_http.tls.contexts import (
    client_context as client_context,
    server_context as server_context,
)
from mplang_http.tls.files import TlsFiles as TlsFiles
from mplang_http.wire.observability import not_observable as not_observable
from mplang_http.wire.protocols import (
    LINK_PROTOCOL as LINK_PROTOCOL,
    MPC_ENDED as MPC_ENDED,
    PROTOCOLS as PROTOCOLS,
    PUBLIC_NAME as PUBLIC_NAME,
    UPGRADE as UPGRADE,
)
from mplang_http.wire.requests import (
    Input as Input,
    JobRequest as JobRequest,
    Name as Name,
    Public as Public,
    Sha256 as Sha256,
    Stored as Stored,
    Uploaded as Uploaded,
)
from mplang_http.wire.spans import read_spans as read_spans, write_spans as write_spans
from mplang_http.wire.steps import step_refusal as step_refusal
from mplang_http.wire.values import (
    MAX_HEAD as MAX_HEAD,
    Buffer as Buffer,
    Head as Head,
    Packed as Packed,
    aligned_bytes as aligned_bytes,
    frame_head as frame_head,
    pack as pack,
    pack_as as pack_as,
    read_head as read_head,
    read_plain as read_plain,
)
from mplang_http.wire.versions import own_versions as own_versions, versions as versions
