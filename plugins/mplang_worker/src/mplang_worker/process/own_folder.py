"""File access of a process forked from the warm one: its own folder, or none."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable

from mplang_confinement import PROGRAMS, give_up_files, give_up_writing, landlock_version

from mplang_core.ext import NativeSpec, RunError


def keep_for(specs: Iterable[NativeSpec], memory: str, readable: Iterable[str]) -> None:
    """Give up all files but those of Python, and what processes of native services need.

    Args:
        specs: the native services that are installed.
        memory: the folder with the folders of processes; empty if there is none.
        readable: further files that may be read.
    """
    programs = {name for each in specs for name in each.programs}
    folders = [memory] if memory and any(each.folder for each in specs) else []
    give_up_files(readable, folders=folders, programs=programs)


def keep_none() -> None:
    """Give up what only processes of native services need."""
    give_up_writing()


def keep_own(spec: NativeSpec, folder: str, size: int, *, insecure: bool) -> None:
    """Keep a folder of its own, and the programs that a native service needs, and no others.

    Args:
        spec: the service.
        folder: the folder, which is made now; empty where there is none in memory.
        size: bytes that each file may have.
        insecure: whether programs may run where the kernel cannot say which.

    Raises:
        RunError: the system has no folder in memory, or no Landlock.
    """
    if not (spec.folder or spec.programs):
        give_up_writing()
        return
    if not folder:
        raise RunError("it needs a folder in memory, and /dev/shm is not writable", code="C015")
    if not landlock_version() and not insecure:
        raise RunError(
            "it runs programs, and this kernel has no Landlock, by which it could run no others; "
            "take Linux 5.13 or later",
            code="C015",
        )
    os.mkdir(folder, 0o700)
    os.chdir(folder)
    os.environ.update(TMPDIR=folder, PATH=PROGRAMS)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    give_up_files(folders=[folder], programs=spec.programs)
