"""Calls that may take long, in threads that the end of the process does not wait for."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T")


async def in_thread(fn: Callable[..., T], *args: Any) -> T:
    """Call a function in a daemon thread, in the context of this task; wait for its result.

    Args:
        fn: the function.
        *args: its arguments.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast(T, result))

    def run() -> None:
        result: T | None = None
        failure: Exception | None = None
        try:
            result = fn(*args)
        except StopIteration as error:  # which a future does not take
            failure = RuntimeError(str(error))
        except Exception as error:
            failure = error
        except BaseException as error:  # such as SystemExit, which would end the loop
            failure = RuntimeError(f"{type(error).__name__} in a thread")
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, failure)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="mplang-data", daemon=True).start()
    return await done
