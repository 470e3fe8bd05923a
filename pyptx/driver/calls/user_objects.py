"""Objects of the program that graphs keep alive."""

from __future__ import annotations

from pyptx.driver.calls.graphs import get_graph
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.graphs import UserObject
from pyptx.driver.host_memory import write_pointer
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry

_NO_SYNCHRONIZATION, _MOVE = 1, 1


def _get(driver: Driver, handle: int, count: int) -> UserObject:
    """Return an object of which a program passes references."""
    item = driver.handles.get(handle, UserObject, Code.ERROR_INVALID_VALUE)
    if not count:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    return item


@entry("cuUserObjectCreate", "result pointer pointer uint uint")
def create_object(
    driver: Driver, thread: Thread, result: int, address: int, destroy: int, count: int, flags: int
) -> None:
    if flags != _NO_SYNCHRONIZATION or not count or not destroy:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    item = driver.handles.add(lambda handle: UserObject(handle, address, destroy, count))
    write_pointer(result, item.handle)


@entry("cuUserObjectRetain", "pointer uint")
def retain_object(driver: Driver, thread: Thread, handle: int, count: int) -> None:
    _get(driver, handle, count).references += count


@entry("cuUserObjectRelease", "pointer uint")
def release_object(driver: Driver, thread: Thread, handle: int, count: int) -> None:
    item = _get(driver, handle, count)
    if count > item.references:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    item.release(driver, count)


@entry("cuGraphRetainUserObject", "pointer pointer uint uint")
def retain_in_graph(driver: Driver, thread: Thread, graph: int, handle: int, count: int, flags: int) -> None:
    owner, item = get_graph(driver, graph), _get(driver, handle, count)
    if flags not in (0, _MOVE):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    owner.objects[item] = owner.objects.get(item, 0) + count
    if flags != _MOVE:
        item.references += count


@entry("cuGraphReleaseUserObject", "pointer pointer uint")
def release_in_graph(driver: Driver, thread: Thread, graph: int, handle: int, count: int) -> None:
    owner, item = get_graph(driver, graph), _get(driver, handle, count)
    remaining = owner.objects.get(item, 0) - count
    if remaining < 0:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    owner.objects[item] = remaining
    if not remaining:
        del owner.objects[item]
    item.release(driver, count)
