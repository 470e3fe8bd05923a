"""Memory pools: which pool a location has, what may access it, and what cannot be shared."""

from __future__ import annotations

import struct

import pytest

from pyptx.driver.settings import Settings
from tests.driver.direct import Direct, make_room

PINNED, MANAGED = 1, 2
NOWHERE, DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT = range(5)


def locate(kind: int, ordinal: int = 0) -> bytes:
    return struct.pack("<ii", kind, ordinal)


def describe(kind: int = PINNED, place: int = DEVICE, ordinal: int = 0, limit: int = 0, security: int = 0) -> bytes:
    return struct.pack("<IIiiQQH54x", kind, 0, place, ordinal, security, limit, 0)


def test_places_have_pools_by_the_type_of_their_allocations() -> None:
    direct = Direct(Settings(count=2))
    codes = {
        (kind, place, ordinal): direct.try_call("cuMemGetDefaultMemPool", make_room(1), locate(place, ordinal), kind)
        for kind in range(4)
        for place in (NOWHERE, DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT)
        for ordinal in (-1, 0, 1, 2)
    }
    expected = dict.fromkeys(codes, 1)
    for kind in range(4):
        expected |= {(kind, DEVICE, ordinal): 101 for ordinal in (-1, 2)}
    for ordinal in (-1, 0, 1, 2):
        expected |= {(kind, place, ordinal): 0 for kind in (PINNED, MANAGED) for place in (HOST, HOST_NUMA)}
        expected[MANAGED, NOWHERE, ordinal] = 0
    expected |= {(kind, DEVICE, ordinal): 0 for kind in (PINNED, MANAGED) for ordinal in (0, 1)}
    assert codes == expected
    created = {
        (kind, place, ordinal): direct.try_call("cuMemPoolCreate", make_room(1), describe(kind, place, ordinal))
        for kind, place, ordinal in codes
    }
    assert created == expected


def test_the_default_pool_of_a_place_is_one_and_that_of_the_host_is_shared_by_its_nodes() -> None:
    direct = Direct(Settings(count=2))

    def get(place: int, ordinal: int, kind: int) -> int:
        pools = {direct.ask("cuMemGetDefaultMemPool", locate(place, ordinal), kind) for _ in range(2)}
        pools.add(direct.ask("cuMemGetMemPool", locate(place, ordinal), kind))
        (pool,) = pools
        return pool

    host = {get(place, ordinal, PINNED) for place in (HOST, HOST_NUMA) for ordinal in (0, 1)}
    assert len(host) == 1
    others = [get(DEVICE, 0, PINNED), get(DEVICE, 1, PINNED), get(DEVICE, 0, MANAGED), get(DEVICE, 1, MANAGED)]
    others += [get(HOST, 0, MANAGED), get(HOST_NUMA, 0, MANAGED), get(NOWHERE, 0, MANAGED)]
    assert len(host.union(others)) == 8
    # A pool of the program's is no default, also of the same place.
    own = direct.ask("cuMemPoolCreate", describe(PINNED, DEVICE, 1))
    assert get(DEVICE, 1, PINNED) == direct.ask("cuDeviceGetDefaultMemPool", 1) == others[1] != own
    direct.call("cuDeviceSetMemPool", 1, own)
    assert [direct.ask("cuDeviceGetMemPool", ordinal) for ordinal in (0, 1)] == [others[0], own]
    assert direct.ask("cuDeviceGetDefaultMemPool", 1) == others[1]
    assert [direct.try_call("cuDeviceSetMemPool", ordinal, own) for ordinal in (-1, 0, 2)] == [101, 1, 101]
    assert [direct.try_call("cuDeviceGetMemPool", make_room(1), ordinal) for ordinal in (-1, 2)] == [101, 101]
    chosen = direct.ask("cuMemPoolCreate", describe(MANAGED, HOST))
    direct.call("cuMemSetMemPool", locate(HOST), MANAGED, chosen)
    direct.call("cuMemPoolDestroy", own)
    assert direct.ask("cuDeviceGetMemPool", 1) == others[1]
    assert direct.ask("cuMemGetMemPool", locate(HOST), MANAGED) == chosen


def test_properties_that_no_pool_has_are_refused() -> None:
    direct = Direct()
    for properties in (describe(security=1), describe(MANAGED, limit=1), describe(MANAGED, security=1)):
        assert direct.try_call("cuMemPoolCreate", make_room(1), properties) == 1
    pool = direct.ask("cuMemPoolCreate", describe(limit=1 << 20))
    assert direct.tell("cuMemPoolGetAttribute", pool, 13) == 1 << 20
    stream = direct.ask("cuStreamCreate", 0)
    assert direct.try_call("cuMemPoolDestroy", stream) == direct.try_call("cuMemPoolTrimTo", stream, 0) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [("ExportToShareableHandle", 3), ("ImportFromShareableHandle", 3), ("ExportPointer", 1), ("ImportPointer", 2)],
)
def test_no_pool_is_shared_with_other_processes(name: str, words: int, capsys: pytest.CaptureFixture[str]) -> None:
    direct = Direct()
    pool = direct.ask("cuDeviceGetDefaultMemPool", 0)
    assert direct.try_call(f"cuMemPool{name}", make_room(1), *[pool, 1, 0][:words]) == 801
    text = "memory pools of the simulated driver cannot be shared with other processes"
    assert capsys.readouterr().err == f"pyptx: cuMemPool{name}: {text}\n"


def test_access_to_a_pool_is_set_for_other_places_all_at_once() -> None:
    direct = Direct(Settings(count=2))
    pool = direct.ask("cuMemPoolCreate", describe(PINNED, DEVICE, 1))

    def pack(*items: tuple[int, int, int]) -> bytes:
        return b"".join(struct.pack("<iiI", *item) for item in items)

    def get() -> list[int]:
        return [
            direct.ask("cuMemPoolGetAccess", pool, locate(*place)) for place in ((DEVICE, 0), (DEVICE, 1), (HOST, 0))
        ]

    assert get() == [0, 3, 0]
    wrong = [(DEVICE, 0, 2), (DEVICE, 0, 4), (DEVICE, 1, 0), (NOWHERE, 0, 3)]
    for item in wrong:
        assert direct.try_call("cuMemPoolSetAccess", pool, pack((DEVICE, 0, 1), item), 2) == 1
    assert direct.try_call("cuMemPoolSetAccess", pool, pack((DEVICE, 2, 3)), 1) == 101
    assert get() == [0, 3, 0]
    direct.call("cuMemPoolSetAccess", pool, pack((DEVICE, 0, 1), (DEVICE, 1, 1), (HOST, 0, 3)), 3)
    assert get() == [1, 1, 3]
    direct.call("cuMemPoolSetAccess", pool, pack((DEVICE, 0, 0), (DEVICE, 1, 3)), 1)
    assert get() == [0, 1, 3]
    assert direct.try_call("cuMemPoolGetAccess", make_room(1), pool, locate(NOWHERE)) == 1


def test_a_refused_allocation_takes_nothing_from_its_pool() -> None:
    direct = Direct(Settings(device="a100"))
    pool, stream = direct.ask("cuMemPoolCreate", describe()), direct.ask("cuStreamCreate", 1)
    assert direct.try_call("cuMemAllocFromPoolAsync", make_room(1), 1 << 40, pool, stream) == 2
    assert direct.try_call("cuMemAllocFromPoolAsync", make_room(1), 0, pool, stream) == 1
    assert [direct.tell("cuMemPoolGetAttribute", pool, attribute) for attribute in (7, 5)] == [0, 1 << 40]
    address = direct.ask("cuMemAllocFromPoolAsync", 512, pool, stream)
    assert direct.tell("cuMemPoolGetAttribute", pool, 7) == 512
    direct.call("cuMemFreeAsync", address, stream)
    assert direct.tell("cuMemPoolGetAttribute", pool, 7) == 0


def test_memory_of_a_pool_is_on_its_device_and_that_of_a_stream_on_the_streams() -> None:
    direct = Direct(Settings(count=2))
    direct.call("cuCtxSetCurrent", direct.contexts[1])
    stream, pool = direct.ask("cuStreamCreate", 1), direct.ask("cuMemPoolCreate", describe())
    host = direct.ask("cuMemPoolCreate", describe(place=HOST))
    blocks = direct.ask("cuMemAllocAsync", 64, stream), direct.ask("cuMemAllocFromPoolAsync", 64, pool, stream)
    blocks += (direct.ask("cuMemAllocFromPoolAsync", 64, host, stream),)
    assert [direct.ask("cuPointerGetAttribute", 9, block) for block in blocks] == [1, 0, 1]
    owners = [direct.ask("cuPointerGetAttribute", 17, block) for block in blocks]
    assert owners == [direct.ask("cuDeviceGetMemPool", 1), pool, host]
