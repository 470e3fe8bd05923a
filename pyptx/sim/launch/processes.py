"""Calls a function for many items: here, in copies of this process once that saves time, or in an executor. Chooses
where; knows nothing about what the function does."""

from __future__ import annotations

import os
import pickle
import resource
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, TypeVar

from pyptx.diagnostics import PtxError
from pyptx.sim.launch.forking import UNSENDABLE, call_in_copies
from pyptx.sim.launch.room import find_free_memory

Item = TypeVar("Item")
Output = TypeVar("Output")
_WORTHWHILE = 0.3
"""Seconds that copies must save, several times what it takes to start and to end them."""


def call_in_order(
    function: Callable[[Item], Output], items: Sequence[Item], executor: Executor | None, processes: int | None
) -> Generator[Output]:
    """Yield `function(item)` for each item, in their order. What a call raises is raised in its turn and ends the
    others.

    Without an executor, calls begin here. Copies of this process take over when the time of the latest call shows that
    they save time, or, if `processes` is a number, after the first."""
    if executor is not None and processes is not None:
        raise ValueError("pass `executor` or `processes`, not both")
    if executor is not None:
        try:
            yield from _collect(function, [executor.submit(function, item) for item in items])
        except BrokenExecutor as why:
            _blame_script(function, why)
            raise
        return
    most = _choose_most(processes)
    for index, item in enumerate(items):
        start = time.monotonic()
        output = function(item)
        seconds = time.monotonic() - start
        yield output
        rest = items[index + 1 :]
        count = min(most, len(rest))
        if count < 2 or (processes is None and (not index or seconds * len(rest) * (1 - 1 / count) < _WORTHWHILE)):
            continue
        count = min(count, _count_that_fit())
        if count > 1 and (processes is not None or _is_sendable(output)):
            yield from call_in_copies(function, rest, count)
            return


def _collect(function: Callable[..., Any], futures: Sequence[Future[Output]]) -> Generator[Output]:
    try:
        for future in futures:
            if (why := future.exception()) is not None:
                _blame_function(function, why)
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def _blame_function(function: Callable[..., Any], why: BaseException) -> None:
    """Raise TypeError if an executor failed because it could not send the function. The error of a kernel is
    clear by itself."""
    try:
        pickle.dumps(function)
    except UNSENDABLE as problem:
        if type(problem) is type(why) and str(problem) == str(why) and not isinstance(why, PtxError):
            text = f"the executor cannot send the function to another process: {why}"
            remedy = "define it, and what it uses, at the top level of a module"
            raise TypeError(f"{text}; {remedy}") from None


def _blame_script(function: Callable[..., Any], why: BrokenExecutor) -> None:
    """Explain processes that ended because they could not load the program again, as a notebook."""
    message = b""
    with suppress(*UNSENDABLE):
        message = pickle.dumps(function)
    if b"__main__" in message:
        text = f"{why} Its processes load the program again to find `__main__`, which must be a file"
        remedy = 'start them below `if __name__ == "__main__":`, or define what they call in a module'
        raise type(why)(f"{text}; {remedy}") from None


def _choose_most(processes: int | None) -> int:
    """Return how many processes may run; 1 is this one alone."""
    if processes == 1:
        return 1
    if processes is not None and processes < 1:
        raise ValueError(f"processes={processes}: expected a positive number")
    threads = _list_other_threads()
    if processes is None:
        # A process that somebody has started is one of several.
        return len(os.sched_getaffinity(0)) if not threads and parent_process() is None else 1
    if threads:
        raise ValueError(
            f"processes={processes}: this process has other threads ({', '.join(threads)}), so it cannot be copied; "
            "pass executor=ProcessPoolExecutor(…, get_context('spawn')), or processes=1"
        )
    return processes


def _list_other_threads() -> list[str]:
    """Return the names of other threads: Python's, and those that libraries gave a name. Unnamed ones are of OpenBLAS,
    which can be copied, or of OpenMP, which copies do not use."""
    names = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    own, others = Path("/proc/self/comm").read_text("utf-8", "replace"), set[str]()
    for path in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):
            others.add(path.read_text("utf-8", "replace"))
    return [*names, *sorted(name.strip() for name in others - {own})]


def _count_that_fit() -> int:
    """Return how many processes fit into memory if each takes what this one has taken."""
    return find_free_memory() // (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def _is_sendable(output: object) -> bool:
    try:
        pickle.dumps(output)
    except UNSENDABLE:
        return False
    return True
