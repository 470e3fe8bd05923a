"""The program's own accesses to managed and page-locked memory while the device may be using it: until the host has
waited, the pages are protected, and the library reports each page's first access. Knows no driver function."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from pyptx.driver.heap import Allocation, Heap
from pyptx.driver.ordering import HostAccess, Order, Task
from pyptx.driver.pages import PAGE, protect_pages

WATCHED = "managed", "host"
"""The kinds of allocations that the host may access."""


class HostWatch:
    """Which pages are protected. `compare` looks for a conflict of an access with a task."""

    def __init__(
        self, heap: Heap, order: Order, lock: threading.RLock, find_place: Callable[[], str],
        compare: Callable[[Task, HostAccess], None],
    ) -> None:  # fmt: skip
        self._heap, self._order, self._lock = heap, order, lock
        self._find_place, self._compare = find_place, compare
        self._protected: list[Allocation] = []
        self._calls = 0
        os.register_at_fork(after_in_child=self._open)

    @contextmanager
    def open_memory(self) -> Generator[None]:
        """Open the memory for the driver itself, and protect it afterward if the host has not waited for all work."""
        self._calls += 1
        self._open()
        try:
            yield
        finally:
            self._calls -= 1
            if self._order.tasks_without_wait and not self._calls:
                self._protected += [item for item in self._heap.allocations.values() if item.kind in WATCHED]
                for allocation in self._protected:
                    _protect(allocation, is_open=False)

    def _open(self) -> None:
        for allocation in self._protected:
            _protect(allocation, is_open=True)
        self._protected.clear()

    def answer(self, address: int, writes: int) -> int:
        """Record an access that is about to happen, and open its page; tell whether the memory is ours."""
        with self._lock:
            allocation = self._heap.find(address)
            if allocation is None or allocation.kind not in WATCHED:
                return False
            protect_pages(address & -PAGE, PAGE, is_open=True)
            access = HostAccess(address, bool(writes), self._find_place())
            for task in self._order.find(self._order.tasks_without_wait if not self._calls else 0):
                task.by_host.append(access)
                self._compare(task, access)
            return True


def _protect(allocation: Allocation, *, is_open: bool) -> None:
    protect_pages(allocation.address, allocation.size + -allocation.size % PAGE, is_open=is_open)
