"""Work of a confined process that its source has taken over: it runs any Python."""

from __future__ import annotations

import errno

from mplang_data.apart.child import Reach, Task
from mplang_data.apart.database import reach

PRELUDE = "import os, socket, sys; from pathlib import Path"


def invade(asked, files):
    """Run each code, and return the name of its error, such as EACCES, or None."""
    found = []
    for code in asked["codes"]:
        try:
            exec(f"{PRELUDE}\n{code}", {"files": files})
        except OSError as error:
            found.append(errno.errorcode[error.errno])
        else:
            found.append(None)
    return found


def reached(asked, files):
    """What the process of a database reaches, if it is one."""
    return reach(asked) if "url" in asked else Reach()


TASK = Task(invade, "it was not invaded", reached)
