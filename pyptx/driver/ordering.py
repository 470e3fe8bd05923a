"""Which work of a device happens before which: the order that streams, events and waits of the host establish.

Sets of tasks are the bits of numbers. Knows no driver function, and not what tasks do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyptx.driver.operations import Event, Operation
    from pyptx.driver.streams import Stream
    from pyptx.sim.hazards.ranges import AccessedMemory

_MOST = 4096
"""How much work since the last wait of the host is remembered."""


class HostAccess(NamedTuple):
    """An access of the program itself to a byte, and its place."""

    address: int
    writes: bool
    place: str


@dataclass(slots=True, eq=False)
class Task:
    """Work that was submitted: what happens before it, where the program submitted it, and what it accessed when it
    ran. `event` stands for the last event that its stream waited for."""

    operation: Operation
    number: int
    before: int
    stream: Stream
    place: str
    event: Event | None
    accessed: AccessedMemory | None = None
    unobserved: dict[int, AccessedMemory] = field(default_factory=dict[int, "AccessedMemory"])
    """What remains of its accesses without those that a kernel, which ran at the same time, waited for in memory, by
    that kernel's number: work after that kernel follows the others, too."""
    by_host: list[HostAccess] = field(default_factory=list[HostAccess])
    """What the program accessed itself before the host had waited for the task."""

    @property
    def earlier(self) -> int:
        """The tasks that must run before it: to report the use of memory that it frees, all that were submitted."""
        return self.bit - 1 if self.operation.changes_lifetime else self.before

    @property
    def bit(self) -> int:
        """The set that contains only this task."""
        return 1 << self.number


@dataclass(slots=True)
class Order:
    """The tasks since the host last waited for all of them. `after` maps streams, events and executable graphs to the
    tasks that have ended when their last work has."""

    tasks: list[Task] = field(default_factory=list[Task])
    after: dict[Any, int] = field(default_factory=dict[Any, int])
    done: int = 0
    """The tasks that have run."""
    known: int = 0
    """The tasks for which the host has waited."""

    @property
    def every(self) -> int:
        """All tasks."""
        return (1 << len(self.tasks)) - 1

    @property
    def tasks_without_wait(self) -> int:
        """The tasks for which the host has not waited."""
        return self.every & ~self.known

    @property
    def is_full(self) -> bool:
        """Whether the host should wait, to forget tasks."""
        return len(self.tasks) >= _MOST

    def add(self, operation: Operation, before: int, stream: Stream, place: str, event: Event | None) -> Task:
        """Add a task after others; those for which the host has waited are before every new one."""
        task = Task(operation, len(self.tasks), before | self.known, stream, place, event)
        self.tasks.append(task)
        return task

    def find(self, tasks: int) -> Iterator[Task]:
        """Yield the tasks of a set."""
        while tasks:
            lowest = tasks & -tasks
            yield self.tasks[lowest.bit_length() - 1]
            tasks ^= lowest

    def find_unordered(self, task: Task) -> Iterator[Task]:
        """Yield the tasks that have run, although nothing says that they do before this one."""
        return self.find(self.done & ~task.before & ~task.bit)

    def choose_last(self, tasks: int) -> Task | None:
        """Return the pending task of a set that may run now and was submitted last; None if all have run."""
        pending = tasks & ~self.done
        while pending:
            task = self.tasks[pending.bit_length() - 1]
            missing = task.earlier & ~self.done
            if not missing:
                return task
            pending = missing
        return None

    def wait(self, tasks: int) -> None:
        """Record that the host has waited for tasks; forget everything when it has for all."""
        self.known |= tasks
        if self.known == self.every:
            self.tasks.clear()
            self.after.clear()
            self.done = self.known = 0

    def drop(self) -> None:
        """Forget tasks that will never run."""
        self.done = self.every
        self.wait(self.every)
