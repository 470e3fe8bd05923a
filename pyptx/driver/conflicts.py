"""Mistakes in how a program uses a device: findings about two tasks, and about its memory and events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pyptx.diagnostics import Diagnostic, Rule, format_count
from pyptx.driver import rules
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.findings import report
from pyptx.driver.heap import Allocation
from pyptx.driver.operations import Copy, Event, Launch
from pyptx.driver.ordering import HostAccess, Task
from pyptx.driver.pools import DEVICE, READ, READ_WRITE
from pyptx.driver.process import Context, Driver, find_caller
from pyptx.driver.reports import Record
from pyptx.sim.base.events import Access
from pyptx.sim.hazards.ranges import AccessedMemory, Overlap, Ranges
from pyptx.sim.reports.source_lines import read_source_lines

if TYPE_CHECKING:
    from pyptx.driver.streams import Stream


def report_conflicts(driver: Driver, task: Task, group: Sequence[Task]) -> None:
    """Report the tasks that accessed the memory of one that has just run, without an order between them. The checks of
    kernels have compared the tasks of its group, which ran together."""
    for other in driver.order.find_unordered(task):
        if task.accessed is not None and other.accessed is not None and other not in group:
            remaining = [memory for number, memory in other.unobserved.items() if task.before >> number & 1]
            overlaps = [task.accessed.find_conflict(memory) for memory in (other.accessed, *remaining)]
            if overlaps[-1] is not None and None not in overlaps:
                _report_overlap(driver, task, other, overlaps[-1])


def _report_overlap(driver: Driver, task: Task, other: Task, overlap: Overlap) -> None:
    changes = next((item for item in (task, other) if item.operation.changes_lifetime), None)
    verb, other_verb = _VERBS[overlap.writes], _VERBS[overlap.other_writes]
    bytes = f"{format_count('byte', overlap.end - overlap.start)} of {_describe_place(driver, overlap.start)}"
    if changes is None:
        message = f"the {_describe(task)} {verb} {bytes}, which the {_describe(other)} {other_verb}"
    else:
        user, verb = (other, other_verb) if changes is task else (task, verb)
        message = f"the {_describe(user)} {verb} {bytes}; nothing orders it and the {_describe(changes)}"
    notes = [
        *(_describe_access(access, item) for access, item in ((overlap.access, task), (overlap.other_access, other))),
        _compare_streams(task.stream, other.stream),
        *_explain_streams(task.stream, other.stream),
        *(_explain_event(driver, item, earlier) for item, earlier in ((task, other), (other, task))),
    ]
    help = (
        "record an event after the first and let the other's stream wait for it with cuStreamWaitEvent, or put both in "
        "one stream"
    )
    rule, source = rules.UNORDERED if changes is None else rules.LIFETIME, _find_source(overlap.access, task)
    _report(driver, task, rule, message, notes, help, source, other)


_VERBS = {True: "writes", False: "reads"}


def _report(
    driver: Driver, task: Task, rule: Rule, message: str, notes: list[str], help: str, source: str = "",
    other: Task | None = None,
) -> None:  # fmt: skip
    """Report a finding about a task. `source` is the line of its kernel, the place of the finding in programs without
    lines of their own."""
    diagnostic = rule.report(None, f"{rule.title}: {message}", notes=[*filter(None, notes), rule.why], help=help)
    _publish(driver, diagnostic, _name(task), _find_place(task), source, "" if other is None else _find_place(other))


def _name(task: Task) -> str:
    """Return the name of the kernel, or of the kind of work."""
    operation = task.operation
    return operation.request.kernel.name if isinstance(operation, Launch) else type(operation).__name__.lower()


def _publish(
    driver: Driver, diagnostic: Diagnostic, name: str, place: str, source: str = "", other_place: str = ""
) -> None:
    is_line = place.rpartition(":")[2].isdecimal()
    item = {**diagnostic.as_json(), "source": place if is_line else source or place, "other_source": other_place}
    record: Record = {
        "kernel": name, "grid": None, "block": None, "cluster": None, "shared": 0, "place": place, "instructions": 0,
        "seconds": 0.0, "diagnostics": [item],
    }  # fmt: skip
    title = "the program's use of the device"
    report(driver, f"{title}, at {place}" if place else title, record, [diagnostic], None)


def _find_place(task: Task) -> str:
    """Return where the program submitted a task; of a captured launch, where it was captured."""
    return task.operation.request.place if isinstance(task.operation, Launch) else task.place


def _describe(task: Task) -> str:
    operation = task.operation
    is_launch = isinstance(operation, Launch)
    text = f"launch of `{operation.request.kernel.name}`" if is_launch else operation.describe()
    place = _find_place(task)
    return f"{text} at {place}" if place else text


def _describe_place(driver: Driver, address: int) -> str:
    region = driver.heap.space.find_region(address)
    if region is not None and address < region.low + region.size:
        return f"{region.name}, from byte {address - region.low}"
    freed = driver.heap.space.find_freed(address)
    return (
        f"{freed.name}, from byte {address - freed.low}" if freed is not None else f"the host's memory at {address:#x}"
    )


def _describe_access(access: Access | None, task: Task) -> str:
    if access is None:
        return ""
    source = _find_source(access, task)
    return f"{access.place}{f' ({source})' if source else ''}, in the {_describe(task)}"


def _find_source(access: Access | None, task: Task) -> str:
    """Return the line of the kernel's source that made an access, empty if it is unknown."""
    if access is None or not isinstance(task.operation, Launch):
        return ""
    return read_source_lines(task.operation.request.kernel.module.loaded.module).find(access.place.origin)


def _compare_streams(stream: Stream, other: Stream) -> str:
    if stream is other:
        return f"they are nodes of a graph that {_name_stream(stream)} runs"
    names = [_name_stream(item) for item in (stream, other)]
    if names[0] == names[1]:
        names = [f"{name} of device {item.device}" for name, item in zip(names, (stream, other), strict=True)]
    return f"they are in {' and '.join(names)}"


def _name_stream(stream: Stream) -> str:
    return "the legacy default stream" if stream.is_legacy else f"stream {stream.handle:#x}"


def _explain_streams(*streams: Stream) -> list[str]:
    if any(stream.is_legacy for stream in streams):
        return [
            f"stream {stream.handle:#x} was created with CU_STREAM_NON_BLOCKING, so it does not wait for the legacy "
            "default stream, nor the other way around"
            for stream in streams
            if not stream.is_blocking
        ]
    return []


def _explain_event(driver: Driver, task: Task, earlier: Task) -> str:
    """Return a note if the stream of a task has waited for an event that was recorded before the other's work."""
    event = task.event
    if event is None or event.place == "" or earlier.number > task.number:
        return ""
    return (
        f"{_name_stream(task.stream)} waited for the event recorded at {event.place}, which does not cover the "
        f"{_describe(earlier)}"
    )


def report_host_access(driver: Driver, task: Task, access: HostAccess) -> None:
    """Report an access of the program itself to memory of a task, before the host had waited for it. Strong accesses of
    kernels do not race with the host's."""
    if task.accessed is None:
        return
    byte = Ranges.merge(np.array([access.address]), 1)
    own = AccessedMemory(strong_writes=byte) if access.writes else AccessedMemory(strong_reads=byte)
    overlap = own.find_conflict(task.accessed)
    if overlap is None:
        return
    verb, other_verb, rule = _VERBS[overlap.writes], _VERBS[overlap.other_writes], rules.BY_HOST
    message = f"the host {verb} {_describe_place(driver, access.address)}, which the {_describe(task)} {other_verb}"
    notes = [*filter(None, [_describe_access(overlap.other_access, task)]), rule.why]
    help = "wait for the work first: cuStreamSynchronize, cuEventSynchronize, cuCtxSynchronize or cudaDeviceSynchronize"
    diagnostic = rule.report(None, f"{rule.title}: {message}", notes=notes, help=help)
    _publish(driver, diagnostic, _name(task), access.place, _find_source(overlap.other_access, task), _find_place(task))


def require_access(driver: Driver, task: Task) -> None:
    """Report a kernel that accessed memory which its device may not, and fail as the GPU would."""
    if not isinstance(task.operation, Launch) or task.accessed is None:
        return
    if len(driver.devices) == 1 and not driver.heap.mappings:
        return
    context, direct = task.operation.context, task.accessed
    if driver.multicasts:
        # Through a multicast object, a device reaches what all devices of the team have bound.
        direct = direct.select(lambda access: not access.place.text.startswith("multimem."))
    for allocation in list(driver.heap.allocations.values()):
        access = _find_access(context, allocation)
        if access == READ_WRITE:
            continue
        whole = Ranges.merge(np.array([allocation.address]), allocation.size)
        forbidden = AccessedMemory(reads=whole) if access == READ else AccessedMemory(writes=whole)
        overlap = direct.find_conflict(forbidden)
        if overlap is not None:
            device, owner = context.device, allocation.device
            verb, place = _VERBS[overlap.writes], f"{allocation.name} on device {owner}"
            message = f"the {_describe(task)} on device {device} {verb} {place}"
            help = f"call cuCtxEnablePeerAccess for device {owner} in the context of device {device}"
            if allocation.kind == "mapped" or allocation.pool is not None:
                help = f"let device {device} access the memory: cuMemSetAccess, or cuMemPoolSetAccess for a pool"
            notes, source = [_describe_access(overlap.access, task)], _find_source(overlap.access, task)
            _report(driver, task, rules.NO_ACCESS, message, notes, help, source)
            context.error = Code.ERROR_ILLEGAL_ADDRESS
            raise DriverError(context.error)


def _find_access(context: Context, allocation: Allocation) -> int:
    """Return how the kernels of a context may access memory, by its number in the enum `CUmemAccess_flags`."""
    if allocation.kind not in ("device", "mapped", "imported"):
        return READ_WRITE
    access = allocation.pool.access if allocation.pool is not None else allocation.access
    if access is not None:
        return access.get((DEVICE, context.device), 0)
    return READ_WRITE if allocation.device == context.device or allocation.device in context.peers else 0


def check_recorded(driver: Driver, event: Event) -> None:
    """Report a wait for an event that was never recorded."""
    if not event.is_recorded:
        rule, place = rules.UNRECORDED, find_caller()
        message = f"{rule.title}: event {event.handle:#x}"
        help = "record the event in the stream with the work to wait for, before the wait is submitted"
        _publish(driver, rule.report(None, message, notes=[rule.why], help=help), "event", place)


def report_leaks(driver: Driver, device: int) -> None:
    """Report the memory of a device that is left when its context or the program ends, by the lines that allocated."""
    if not driver.settings.leaks:
        return
    allocations: dict[tuple[str, str], list[int]] = {}
    for allocation in driver.heap.allocations.values():
        if allocation.device == device and allocation.kind not in ("registered", "bound", "imported"):
            allocations.setdefault((allocation.place, allocation.kind), []).append(allocation.size)
    for (place, kind), sizes in allocations.items():
        rule = rules.LEAK
        count = format_count("allocation", len(sizes))
        message = f"{rule.title}: {format_count('byte', sum(sizes))} in {count} of {kind} memory"
        help = "free it after its last use, or use an allocator that owns it"
        _publish(driver, rule.report(None, message, notes=[rule.why], help=help), kind, place)


def check_source(driver: Driver, task: Task) -> None:
    """Report that the host changed the source of a copy after it was submitted. Changes by work that ran since then are
    its own."""
    if not isinstance(task.operation, Copy):
        return
    change = task.operation.find_change(driver)
    by_work = [other.accessed for other in driver.order.find(driver.order.done & ~task.bit) if other.accessed]
    hit = change.subtract([accessed.writes for accessed in by_work])
    if len(hit.starts):
        size = int((hit.ends - hit.starts).sum())
        place = _describe_place(driver, int(hit.starts[0]))
        message = f"{format_count('byte', size)} of {place}, the source of the {_describe(task)}"
        help = "wait for the copy before the host changes its source: cuStreamSynchronize, or an event after the copy"
        _report(driver, task, rules.CHANGED, message, [], help)
