"""Main module of the process that counts: it reads requests and writes what it has counted.

A program may be a stranger's: the process gives up files, network and other processes before it
reads one. Its answer is checked as any stranger's is.
"""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection

from mplang_confinement import give_up_calls, give_up_files, give_up_privileges, set_limits

MEMORY, FILES, CPU = 8 << 30, 256, 600  # bytes, open files, seconds
MAX_REQUEST = 64 << 20


def main(descriptor: int) -> None:
    """Answer requests until the other end is closed.

    Args:
        descriptor: of the socket to the process that asks.
    """
    from mplang_spu.costs.counted import CountRequest
    from mplang_spu.costs.counting import count, forget

    give_up_privileges()
    give_up_files()
    set_limits(memory=MEMORY, files=FILES, cpu=CPU)
    give_up_calls()
    pipe = Connection(descriptor)
    while True:
        try:
            text = pipe.recv_bytes(MAX_REQUEST)
        except EOFError:
            return
        try:
            asked = CountRequest.model_validate_json(text)
            answer = count(asked).model_dump_json()
        except Exception as error:
            answer = f"!{error}"
            forget()
        pipe.send_bytes(answer.encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))
    os._exit(0)  # libspu's threads have nothing to end
