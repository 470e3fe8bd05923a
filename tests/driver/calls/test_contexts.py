"""Contexts that a program creates, chooses and destroys, and what it asks of them."""

from __future__ import annotations

import pytest

from pyptx.driver.settings import Settings
from pyptx.driver.streams import finish
from tests.driver.direct import Direct, make_room

TEXT = b".version 8.0 .target sm_80 .address_size 64 .visible .entry nothing() { ret; }\0"
DEFAULTS = {0: 1024, 1: 1 << 20, 2: 8 << 20, 3: 2, 4: 2048, 5: 128, 6: 0}


def get_stack(direct: Direct, thread: int = 1) -> list[int]:
    """Return the contexts of a thread, the current one first, and leave it without any."""
    stack = list[int]()
    while (context := direct.ask("cuCtxGetCurrent", thread=thread)) != 0:
        assert direct.ask("cuCtxPopCurrent_v2", thread=thread) == context
        stack.append(context)
    assert direct.try_call("cuCtxPopCurrent_v2", make_room(1), thread=thread) == 201
    return stack


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_function_that_creates_a_context_makes_it_current(version: int) -> None:
    direct = Direct(Settings(count=2))
    unused = {2: (), 3: (0, 0), 4: (0,)}[version]
    created = direct.ask(f"cuCtxCreate_v{version}", *unused, 8, 1)
    assert direct.ask("cuCtxGetCurrent") == created
    assert (direct.ask("cuCtxGetFlags"), direct.ask("cuCtxGetDevice")) == (8, 1)
    assert direct.try_call(f"cuCtxCreate_v{version}", make_room(1), *unused, 0, 2) == 101
    assert get_stack(direct) == [created, direct.contexts[0]]


def test_each_thread_has_a_stack_of_contexts() -> None:
    direct = Direct(Settings(count=2))
    one, two = direct.contexts
    for context in (two, one, two):
        direct.call("cuCtxPushCurrent_v2", context, thread=2)
    direct.call("cuCtxSetCurrent", one, thread=2)
    assert [direct.ask("cuCtxGetDevice", thread=thread) for thread in (1, 2)] == [0, 0]
    direct.call("cuCtxSetCurrent", 0, thread=2)
    assert direct.ask("cuCtxGetDevice", thread=2) == 0
    assert get_stack(direct, 2) == [one, two]
    direct.call("cuCtxSetCurrent", 0, thread=2)
    assert direct.try_call("cuCtxGetDevice", make_room(1), thread=2) == 201
    direct.call("cuCtxSetCurrent", two, thread=2)
    for wrong in (7, direct.ask("cuStreamCreate", 0)):
        assert direct.try_call("cuCtxSetCurrent", wrong, thread=2) == 201
    assert get_stack(direct, 2) == [two]
    assert get_stack(direct) == [one]


def test_a_context_that_is_destroyed_leaves_the_stack_if_it_is_current() -> None:
    direct = Direct()
    first, second = (direct.ask("cuCtxCreate_v2", 0, 0) for _ in range(2))
    stream = direct.ask("cuStreamCreate", 0)
    # The one below is not popped: the thread finds out when it uses it.
    direct.call("cuCtxDestroy_v2", first)
    assert direct.ask("cuCtxGetCurrent") == second
    direct.call("cuCtxDestroy_v2", second)
    assert direct.ask("cuCtxGetCurrent") == first
    assert direct.try_call("cuStreamSynchronize", stream) == 709
    assert [direct.try_call(name, first) for name in ("cuCtxDestroy_v2", "cuCtxPushCurrent_v2")] == [709, 709]
    assert direct.try_call("cuCtxGetId", first, make_room(1)) == 709
    assert get_stack(direct) == [first, direct.contexts[0]]
    direct.call("cuCtxDestroy_v2", direct.ask("cuCtxCreate_v2", 0, 0))
    assert direct.try_call("cuCtxDestroy_v2", direct.contexts[0]) == 201


def test_contexts_of_a_device_share_its_memory_until_the_last_one_ends() -> None:
    direct = Direct(Settings(count=2))
    own = direct.ask("cuCtxCreate_v2", 0, 0)
    memory = direct.ask("cuMemAlloc_v2", 64)
    direct.call("cuCtxSetCurrent", direct.contexts[1])
    others = direct.ask("cuMemAlloc_v2", 64)

    def exist() -> list[bool]:
        return [direct.try_call("cuMemGetAddressRange_v2", 0, 0, address) == 0 for address in (memory, others)]

    direct.call("cuDevicePrimaryCtxReset_v2", 0)
    assert exist() == [True, True]
    direct.call("cuDevicePrimaryCtxRelease_v2", 0)
    direct.call("cuCtxDestroy_v2", own)
    assert exist() == [False, True]
    # A primary context that nobody retains keeps nothing.
    own = direct.ask("cuCtxCreate_v2", 0, 0)
    memory = direct.ask("cuMemAlloc_v2", 64)
    direct.call("cuCtxDestroy_v2", own)
    assert exist() == [False, True]
    own, _ = direct.ask("cuCtxCreate_v2", 0, 0), direct.ask("cuDevicePrimaryCtxRetain", 0)
    memory = direct.ask("cuMemAlloc_v2", 64)
    direct.call("cuCtxDestroy_v2", own)
    direct.call("cuCtxSetCurrent", direct.contexts[1])
    assert exist() == [True, True]
    direct.call("cuDevicePrimaryCtxRelease_v2", 0)
    assert exist() == [False, True]
    assert direct.try_call("cuDevicePrimaryCtxRelease_v2", 0) == 201


def test_a_reset_forgets_what_was_set() -> None:
    direct = Direct(Settings(count=2))
    context = direct.contexts[0]
    identity = direct.tell("cuCtxGetId", context)
    assert direct.tell("cuCtxGetId", 0) == identity != direct.tell("cuCtxGetId", direct.contexts[1])
    direct.call("cuCtxSetLimit", 1, 4096)
    direct.call("cuCtxEnablePeerAccess", direct.contexts[1], 0)
    assert direct.try_call("cuCtxEnablePeerAccess", direct.contexts[1], 0) == 704
    direct.call("cuDevicePrimaryCtxReset_v2", 0)
    assert {limit: direct.ask("cuCtxGetLimit", limit) for limit in DEFAULTS} == DEFAULTS
    assert direct.tell("cuCtxGetId", context) not in (identity, direct.tell("cuCtxGetId", direct.contexts[1]))
    assert direct.try_call("cuCtxDisablePeerAccess", direct.contexts[1]) == 705


def test_modules_end_with_their_context_once() -> None:
    direct = Direct()
    own = direct.ask("cuCtxCreate_v2", 0, 0)
    module = direct.ask("cuModuleLoadData", TEXT)
    kernel = direct.ask("cuModuleGetFunction", module, b"nothing\0")
    direct.call("cuCtxSetCurrent", direct.contexts[0])
    other = direct.ask("cuModuleLoadData", TEXT)
    direct.call("cuCtxDestroy_v2", own)
    assert [direct.try_call("cuModuleGetFunctionCount", make_room(1), image) for image in (module, other)] == [400, 0]
    assert direct.try_call("cuFuncIsLoaded", make_room(1), kernel) == 400
    for _ in range(2):
        direct.call("cuDevicePrimaryCtxReset_v2", 0)
        assert direct.try_call("cuModuleUnload", other) == 400
    direct.call("cuModuleUnload", direct.ask("cuModuleLoadData", TEXT))
    direct.call("cuDevicePrimaryCtxReset_v2", 0)


def test_memory_that_no_context_allocated_outlives_it() -> None:
    direct = Direct()
    heap = direct.driver.heap
    kept, freed = ("mapped", "bound", "imported"), ("device", "managed", "host", "registered")
    blocks = {kind: heap.reserve(64) for kind in kept + freed}
    for kind, data in blocks.items():
        heap.register(data.ctypes.data, data, kind, 0)
    direct.call("cuDevicePrimaryCtxReset_v2", 0)
    assert [item.kind for item in heap.allocations.values()] == list(kept)


def test_memory_that_a_context_leaves_is_reported_when_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    direct = Direct(Settings(leaks=True))
    direct.ask("cuMemAlloc_v2", 64)
    direct.call("cuDevicePrimaryCtxReset_v2", 0)
    assert "memory never freed: 64 bytes in 1 allocation of device memory" in capsys.readouterr().err
    finish(direct.driver)
    assert capsys.readouterr().err == ""


def test_limits_and_flags_are_kept_by_each_context() -> None:
    direct = Direct(Settings(count=2))
    assert {limit: direct.ask("cuCtxGetLimit", limit) for limit in DEFAULTS} == DEFAULTS
    for limit in (-1, 7):
        assert direct.try_call("cuCtxSetLimit", limit, 1) == direct.try_call("cuCtxGetLimit", make_room(1), limit) == 1
    for limit in DEFAULTS:
        direct.call("cuCtxSetLimit", limit, 100 + limit)
    direct.call("cuCtxSetFlags", 5)
    for ordinal, flags in ((0, 5), (1, 0)):
        direct.call("cuCtxSetCurrent", direct.contexts[ordinal])
        expected = DEFAULTS if ordinal else {limit: 100 + limit for limit in DEFAULTS}
        assert {limit: direct.ask("cuCtxGetLimit", limit) for limit in DEFAULTS} == expected
        state = make_room(2)
        direct.call("cuDevicePrimaryCtxGetState", ordinal, state, 0)
        assert (direct.ask("cuCtxGetFlags"), state[0]) == (flags, flags)
        for name in ("CacheConfig", "SharedMemConfig"):
            direct.call(f"cuCtxSet{name}", 1)
            preference = make_room(1, 7)
            direct.call(f"cuCtxGet{name}", preference)
            assert preference[0] == 0
    least, greatest = make_room(1, 7), make_room(1, 7)
    direct.call("cuCtxGetStreamPriorityRange", least, greatest)
    assert (least[0], greatest[0]) == (0, -5 & 0xFFFFFFFF)
    direct.call("cuCtxSetCurrent", 0)
    without = ("cuCtxSetLimit", 1, 1), ("cuCtxSetCacheConfig", 1), ("cuCtxGetStreamPriorityRange", 0, 0)
    assert [direct.try_call(name, *words) for name, *words in without] == [201, 201, 201]
    for name in ("cuCtxGetCacheConfig", "cuCtxGetSharedMemConfig", "cuCtxGetFlags"):
        assert direct.try_call(name, make_room(1)) == 201


def test_primary_contexts_are_active_while_they_are_retained() -> None:
    direct = Direct(Settings(count=2))
    direct.call("cuDevicePrimaryCtxSetFlags_v2", 1, 4)

    def get(ordinal: int) -> list[int]:
        flags, active = make_room(1, 7), make_room(1, 7)
        direct.call("cuDevicePrimaryCtxGetState", ordinal, flags, active)
        return [flags[0], active[0]]

    assert [get(0), get(1)] == [[0, 1], [4, 1]]
    for ordinal in (0, 1):
        assert direct.ask("cuDevicePrimaryCtxRetain", ordinal) == direct.contexts[ordinal]
        direct.call("cuDevicePrimaryCtxRelease_v2", ordinal)
        assert get(ordinal)[1] == 1
        direct.call("cuDevicePrimaryCtxRelease_v2", ordinal)
        assert get(ordinal)[1] == 0
        assert direct.try_call("cuDevicePrimaryCtxRelease_v2", ordinal) == 201
    for ordinal in (-1, 2):
        for name in ("cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxReset_v2"):
            assert direct.try_call(name, ordinal) == 101
        assert direct.try_call("cuDevicePrimaryCtxGetState", ordinal, 0, 0) == 101
        assert direct.try_call("cuDevicePrimaryCtxSetFlags_v2", ordinal, 0) == 101


def test_peers_are_other_devices_each_enabled_once() -> None:
    direct = Direct(Settings(count=3))
    first, second, third = direct.contexts
    own = direct.ask("cuCtxCreate_v2", 0, 1)
    name = "cuCtxEnablePeerAccess"
    assert [direct.try_call(name, peer, 0) for peer in (second, own, first, third, first)] == [101, 101, 0, 0, 704]
    assert [direct.try_call(name, peer, flags) for peer, flags in ((first, 1), (7, 0))] == [1, 201]
    assert [direct.try_call("cuCtxDisablePeerAccess", peer) for peer in (first, first, second)] == [0, 705, 705]
    direct.call("cuCtxSetCurrent", first)
    assert direct.try_call("cuCtxDisablePeerAccess", own) == 705
    direct.call(name, own, 0)
    assert direct.try_call(name, second, 0) == 704
    assert direct.tell("cuCtxGetApiVersion", first) == 4
