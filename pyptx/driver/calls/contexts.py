"""Contexts: the primary one of each device, those that programs create, and each thread's stack of them."""

from __future__ import annotations

from contextlib import suppress

from pyptx.driver.captures import drop as drop_captures
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.conflicts import report_leaks
from pyptx.driver.host_memory import write_int, write_pointer
from pyptx.driver.process import Context, Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import synchronize

_LIMITS = {0: 1024, 1: 1 << 20, 2: 8 << 20, 3: 2, 4: 2048, 5: 128, 6: 0}
"""The default values of limits by their number in the enum `CUlimit`."""


@entry("cuDevicePrimaryCtxRetain", "result int")
def retain_primary(driver: Driver, thread: Thread, result: int, ordinal: int) -> None:
    driver.get_device(ordinal)
    context = driver.primary[ordinal]
    context.references += 1
    write_pointer(result, context.handle)


@entry("cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxRelease", "int")
def release_primary(driver: Driver, thread: Thread, ordinal: int) -> None:
    driver.get_device(ordinal)
    context = driver.primary[ordinal]
    if not context.references:
        raise DriverError(Code.ERROR_INVALID_CONTEXT)
    context.references -= 1
    if not context.references:
        _reset(driver, context)


@entry("cuDevicePrimaryCtxReset_v2 cuDevicePrimaryCtxReset", "int")
def reset_primary(driver: Driver, thread: Thread, ordinal: int) -> None:
    driver.get_device(ordinal)
    _reset(driver, driver.primary[ordinal])


def _reset(driver: Driver, context: Context) -> None:
    """Free everything that belongs to a context, and forget its error."""
    if context.error is None:
        with suppress(DriverError):
            synchronize(driver)
    driver.order.drop()
    for item in reversed(context.objects):
        item.close(driver)
    context.objects.clear()
    context.identity = Context(context.handle, context.device, context.is_primary).identity
    others = [other for other in driver.handles.list(Context) if other is not context and not other.is_destroyed]
    if not any(other.device == context.device and (other.references or not other.is_primary) for other in others):
        drop_captures(driver, context.device)
        report_leaks(driver, context.device)
        for address, allocation in list(driver.heap.allocations.items()):
            if allocation.device == context.device and allocation.kind not in ("mapped", "bound", "imported"):
                driver.heap.free(address, (allocation.kind,))
    context.error = None
    context.limits.clear()
    context.peers.clear()


@entry("cuDevicePrimaryCtxGetState", "int pointer pointer")
def get_primary_state(driver: Driver, thread: Thread, ordinal: int, flags: int, active: int) -> None:
    driver.get_device(ordinal)
    context = driver.primary[ordinal]
    write_int(flags, context.flags)
    write_int(active, int(context.references > 0))


@entry("cuDevicePrimaryCtxSetFlags_v2 cuDevicePrimaryCtxSetFlags", "int uint")
def set_primary_flags(driver: Driver, thread: Thread, ordinal: int, flags: int) -> None:
    driver.get_device(ordinal)
    driver.primary[ordinal].flags = flags


@entry("cuCtxCreate_v2", "result uint int")
def create_context(driver: Driver, thread: Thread, result: int, flags: int, ordinal: int) -> None:
    driver.get_device(ordinal)
    context = driver.handles.add(lambda handle: Context(handle, ordinal, is_primary=False, flags=flags))
    thread.contexts.append(context)
    write_pointer(result, context.handle)


@entry("cuCtxCreate_v3", "result pointer int uint int")
def create_with_affinity(
    driver: Driver, thread: Thread, result: int, affinity: int, count: int, flags: int, ordinal: int
) -> None:
    create_context(driver, thread, result, flags, ordinal)


@entry("cuCtxCreate_v4", "result pointer uint int")
def create_with_parameters(
    driver: Driver, thread: Thread, result: int, parameters: int, flags: int, ordinal: int
) -> None:
    create_context(driver, thread, result, flags, ordinal)


@entry("cuCtxDestroy_v2 cuCtxDestroy", "pointer")
def destroy_context(driver: Driver, thread: Thread, handle: int) -> None:
    context = _get(driver, handle)
    if context.is_primary:
        raise DriverError(Code.ERROR_INVALID_CONTEXT)
    context.is_destroyed = True
    _reset(driver, context)
    if thread.contexts and thread.contexts[-1] is context:
        thread.contexts.pop()


def _get(driver: Driver, handle: int) -> Context:
    try:
        context = driver.handles.get(handle, Context)
    except DriverError:
        raise DriverError(Code.ERROR_INVALID_CONTEXT) from None
    if context.is_destroyed:
        raise DriverError(Code.ERROR_CONTEXT_IS_DESTROYED)
    return context


@entry("cuCtxPushCurrent_v2 cuCtxPushCurrent", "pointer")
def push_context(driver: Driver, thread: Thread, handle: int) -> None:
    thread.contexts.append(_get(driver, handle))


@entry("cuCtxPopCurrent_v2 cuCtxPopCurrent", "result")
def pop_context(driver: Driver, thread: Thread, result: int) -> None:
    if not thread.contexts:
        raise DriverError(Code.ERROR_INVALID_CONTEXT)
    write_pointer(result, thread.contexts.pop().handle)


@entry("cuCtxSetCurrent", "pointer")
def set_context(driver: Driver, thread: Thread, handle: int) -> None:
    context = _get(driver, handle) if handle else None
    if thread.contexts:
        thread.contexts.pop()
    if context is not None:
        thread.contexts.append(context)


@entry("cuCtxGetCurrent", "result")
def get_current(driver: Driver, thread: Thread, result: int) -> None:
    write_pointer(result, thread.contexts[-1].handle if thread.contexts else 0)


@entry("cuCtxGetDevice", "result")
def get_device(driver: Driver, thread: Thread, result: int) -> None:
    if not thread.contexts:
        raise DriverError(Code.ERROR_INVALID_CONTEXT)
    write_int(result, thread.contexts[-1].device)


@entry("cuCtxGetFlags", "result")
def get_flags(driver: Driver, thread: Thread, result: int) -> None:
    write_int(result, driver.get_context(thread).flags)


@entry("cuCtxSetFlags", "uint")
def set_flags(driver: Driver, thread: Thread, flags: int) -> None:
    driver.get_context(thread).flags = flags


@entry("cuCtxGetId", "pointer result")
def get_identity(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    context = _get(driver, handle) if handle else driver.get_context(thread)
    write_pointer(result, context.identity)


@entry("cuCtxGetApiVersion", "pointer result")
def get_api_version(driver: Driver, thread: Thread, handle: int, result: int) -> None:
    write_int(result, 4)


@entry("cuCtxGetLimit", "result int")
def get_limit(driver: Driver, thread: Thread, result: int, limit: int) -> None:
    context = driver.get_context(thread)
    if limit not in _LIMITS:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    write_pointer(result, context.limits.get(limit, _LIMITS[limit]))


@entry("cuCtxSetLimit", "int size")
def set_limit(driver: Driver, thread: Thread, limit: int, value: int) -> None:
    context = driver.get_context(thread)
    if limit not in _LIMITS:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    context.limits[limit] = value


@entry("cuCtxGetStreamPriorityRange", "pointer pointer")
def get_priorities(driver: Driver, thread: Thread, least: int, greatest: int) -> None:
    driver.get_context(thread)
    write_int(least, 0)
    write_int(greatest, -5)


@entry("cuCtxGetCacheConfig cuCtxGetSharedMemConfig", "result")
def get_no_preference(driver: Driver, thread: Thread, result: int) -> None:
    driver.get_context(thread)
    write_int(result, 0)


@entry("cuCtxSetCacheConfig cuCtxSetSharedMemConfig", "int")
def ignore_preference(driver: Driver, thread: Thread, preference: int) -> None:
    driver.get_context(thread)


@entry("cuCtxEnablePeerAccess", "pointer uint")
def enable_peer(driver: Driver, thread: Thread, handle: int, flags: int) -> None:
    context, peer = driver.get_context(thread), _get(driver, handle).device
    if flags:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if peer == context.device:
        raise DriverError(Code.ERROR_INVALID_DEVICE)
    if peer in context.peers:
        raise DriverError(Code.ERROR_PEER_ACCESS_ALREADY_ENABLED)
    context.peers.add(peer)


@entry("cuCtxDisablePeerAccess", "pointer")
def disable_peer(driver: Driver, thread: Thread, handle: int) -> None:
    context, peer = driver.get_context(thread), _get(driver, handle).device
    if peer not in context.peers:
        raise DriverError(Code.ERROR_PEER_ACCESS_NOT_ENABLED)
    context.peers.remove(peer)
