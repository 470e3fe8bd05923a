"""Calls a function in copies of this process, whose results come in the order of the items.

Copies are made by `fork`: they need no guard in the user's script, and the function may be local. A pool of
`concurrent.futures` is not used because it hangs if one of its processes is killed while it sends a result.
"""

from __future__ import annotations

import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from traceback import format_exception
from types import TracebackType
from typing import Any, TypeVar, cast

from pyptx.diagnostics import PtxError

Item = TypeVar("Item")
Output = TypeVar("Output")
UNSENDABLE = (PtxError, pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError)
"""What `pickle` raises for objects that cannot be sent."""


def call_in_copies(function: Callable[[Item], Output], items: Sequence[Item], count: int) -> Generator[Output]:
    """Call the function in copies of this process, which end with the generator."""
    workers, outcomes, indices = list[_Worker](), dict[int, _Outcome](), iter(range(len(items)))
    try:
        for _ in range(count):
            workers.append(_start_worker(function, items))
            workers[-1].assign(next(indices))
        for index in range(len(items)):
            while index not in outcomes:
                busy = {worker.connection: worker for worker in workers if worker.index is not None}
                for connection in wait([*busy]):
                    worker = busy[cast("Connection", connection)]
                    item = cast("int", worker.index)
                    outcomes[item] = worker.receive(items[item], indices)
            yield outcomes.pop(index).unpack()
    finally:
        for worker in workers:
            if worker.index is not None:
                worker.process.kill()
            worker.process.join()


class InOtherProcess(Exception):
    """The traceback of an exception in another process."""

    def __str__(self) -> str:
        return f"in another process:\n{self.args[0]}"


@dataclass(slots=True)
class _Outcome:
    """What a call returned or raised, and the warnings that it gave."""

    output: Any = None
    error: BaseException | None = None
    trace: str = ""
    warnings: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        if error is not None:
            self.error, self.trace = error, "".join(format_exception(error))
        return True

    def pack(self) -> bytes:
        """Return bytes that another process can read, whatever happened."""
        try:
            data = pickle.dumps(self)
            if self.error is not None:
                pickle.loads(data)
            return data
        except UNSENDABLE as why:
            text = f"cannot send a result from another process: {why}; processes=1 calls the function here"
            if self.error is not None:
                text = f"{type(self.error).__name__}: {self.error}"
            return pickle.dumps(_Outcome(None, RuntimeError(text), self.trace))

    def unpack(self) -> Any:
        """Give the warnings, and return the output or raise the error."""
        for message, category, file, line in self.warnings:
            warnings.warn_explicit(message, category, file, line)
        if self.error is not None:
            raise self.error from InOtherProcess(self.trace)
        return self.output


@dataclass(slots=True)
class _Worker:
    """A copy of this process."""

    process: Any
    connection: Any
    index: int | None = None
    """The item that it works on; None once it has been told to end."""

    def assign(self, index: int | None) -> None:
        """Give it an item, or tell it to end."""
        self.index = index
        self.connection.send(index)

    def receive(self, item: object, following: Iterator[int]) -> _Outcome:
        """Return the outcome of its call, and give it the following item."""
        try:
            data = self.connection.recv_bytes()
        except EOFError:
            self.index = None
            return _Outcome(None, RuntimeError(self._explain_end(item)))
        self.assign(next(following, None))
        return pickle.loads(data)

    def _explain_end(self, item: object) -> str:
        self.process.join()
        status = self.process.exitcode
        ending = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"
        reason = ", probably because memory ran out" if status == -signal.SIGKILL else ""
        return f"the process that worked on {item} {ending}{reason}; processes=1 calls the function here"


def _start_worker(function: Callable[[Item], Any], items: Sequence[Item]) -> _Worker:
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(function, items, theirs))
    with warnings.catch_warnings():
        # JAX warns of every copy once it is imported; a process with JAX's threads is not copied.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        process.start()
    theirs.close()
    return _Worker(process, ours)


def _work(function: Callable[[Item], Any], items: Sequence[Item], connection: Any) -> None:
    """Call the function for the items whose indices arrive."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Control-C reaches all processes; the first one ends the others
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)  # a copy has no threads of OpenMP, but would wait for them
    with suppress(EOFError, BrokenPipeError):  # the first process is gone
        while (index := connection.recv()) is not None:
            outcome = _Outcome()
            with outcome, warnings.catch_warnings(record=True) as caught:
                outcome.output = function(items[cast("int", index)])
            outcome.warnings = [(each.message, each.category, each.filename, each.lineno) for each in caught]
            connection.send_bytes(outcome.pack())
