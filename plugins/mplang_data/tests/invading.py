"""Work of a confined process that its source has taken over: it runs any Python."""

from __future__ import annotations

import errno

from mplang_data import Description, Opened, source_of
from mplang_data.apart.child import Reach, Task
from mplang_data.apart.database import reach
from mplang_data.sources.source import Queried

PRELUDE = "import os, socket, sys; from pathlib import Path"


def invade(asked, files):
    """Run each code, and return the name of its error, such as EACCES, or None."""
    found = []
    for code in asked["codes"]:
        try:
            exec(f"{PRELUDE}\n{code}", {"asked": asked, "files": files})
        except OSError as error:
            found.append(errno.errorcode[error.errno])
        else:
            found.append(None)
    return found


def reached(asked, files):
    """What the process of a database reaches, if it is one."""
    if "url" not in asked:
        return Reach()
    if asked["writes"]:
        return reach(asked)
    kind, _, place = asked["url"].partition(":")
    source, description = source_of(kind), Description(columns={"age": "int64"})
    opened = Opened(source, description, [])
    table = Queried("people", f"{place}#people", opened, description.type)
    return source.access([table], asked["size"])


TASK = Task(invade, "it was not invaded", reached)
