"""Global memory as regions: allocated, registered at real addresses, freed; and messages for accesses outside them."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.base.formats import Array
from pyptx.sim.launch.prepared import Options, prepare_launch
from pyptx.sim.program.variables import GLOBAL_BASE, Allocation
from pyptx.sim.state.address_space import AddressSpace
from tests.messages import raises
from tests.sim.kernels import kernel

LOAD = parse(kernel("ld.global.u32 %r1, [%o];"))


def _bytes(size: int) -> Array:
    return np.zeros(size, np.uint8)


def test_allocations_are_aligned_and_apart() -> None:
    space = AddressSpace()
    first, second = space.allocate("one", _bytes(5)), space.allocate("other", _bytes(0))
    third = space.allocate("third", _bytes(8), alignment=4096)
    assert (first.low, second.low % 256, third.low % 4096) == (GLOBAL_BASE, 0, 0)
    assert first.low + first.size + 256 <= second.low
    assert second.low + 256 <= third.low
    assert [space.find_region(address) for address in (first.low, first.low + 4, third.low + 7)] == [
        first,
        first,
        third,
    ]
    assert space.find_region(GLOBAL_BASE - 1) is None


def test_regions_without_bytes_have_places_of_their_own() -> None:
    space = AddressSpace()
    assert len({space.allocate("x", np.zeros(0, np.uint8)).low for _ in range(3)}) == 3


def test_memory_that_exists_elsewhere_keeps_its_address() -> None:
    space = AddressSpace()
    data = np.arange(64, dtype=np.uint8)
    region = space.register("device array", 0x7F3A_1234_5600, data)
    assert region.low == 0x7F3A_1234_5600
    assert region.view(np.dtype(np.uint8), 0).base is data
    with pytest.raises(
        ValueError, match=r"`twin` at 0x7f3a1234563f overlaps `device array`, which is at 0x7f3a12345600"
    ):
        space.register("twin", 0x7F3A_1234_563F, _bytes(1))
    with pytest.raises(ValueError, match="`over` at 0x7f3a123455ff overlaps `device array`"):
        space.register("over", 0x7F3A_1234_55FF, _bytes(2))
    assert space.register("ahead", 0x7F3A_1234_55FF, _bytes(1)).size == 1
    assert space.register("behind", 0x7F3A_1234_5640, _bytes(1)).size == 1
    assert space.register("empty", 0x7F3A_1234_5700, _bytes(0)).size == 0
    with pytest.raises(ValueError, match="`another` at 0x7f3a12345700 overlaps `empty`"):
        space.register("another", 0x7F3A_1234_5700, _bytes(0))


def test_an_allocation_avoids_what_is_registered() -> None:
    space = AddressSpace()
    registered = space.register("taken", GLOBAL_BASE + 512, _bytes(100))
    before = space.allocate("before", _bytes(200))
    behind = space.allocate("behind", _bytes(4))
    assert before.low == GLOBAL_BASE
    assert behind.low >= registered.low + registered.size + 256


def test_variables_keep_their_first_contents_for_the_next_launch() -> None:
    first = np.array([1, 2, 3, 4], np.uint8)
    space = AddressSpace(GLOBAL_BASE + 4096)
    space.load([Allocation(GLOBAL_BASE, 4, "table", first, lent=True)])
    region = space.find_region(GLOBAL_BASE)
    assert region is not None
    region.copy_data()
    region.data[0] = 9
    assert first[0] == 1
    assert space.allocate("array", _bytes(1)).low == GLOBAL_BASE + 4096


def test_freed_memory_is_remembered_until_its_addresses_are_used_again() -> None:
    space = AddressSpace()
    region = space.allocate("scratch", _bytes(64))
    low = region.low
    space.free(low)
    assert region.size == 0
    assert space.find_region(low) is None
    allocation = space.find_freed(low + 63)
    assert allocation is not None
    assert (allocation.name, allocation.low, allocation.size) == ("scratch", low, 64)
    assert space.find_freed(low + 64) is None
    with pytest.raises(ValueError, match=f"no allocation starts at {low:#x}"):
        space.free(low)
    before, after = (space.register(name, low + offset, _bytes(16)).low for name, offset in (("a", -16), ("z", 112)))
    space.free(before)
    space.free(after)
    space.register("next", low + 32, _bytes(80))
    assert space.find_freed(low) is None
    for address in (before, after):
        freed = space.find_freed(address)
        assert freed is not None
        assert freed.low == address
    assert space.find_nearest(low) is space.find_region(low + 32)


def test_an_access_to_freed_memory_says_so() -> None:
    launch = prepare_launch(LOAD, None, Options(args=[np.zeros(4, np.uint32)]))
    launch.space.free(launch.space.regions[0].low)
    batch = next(launch.batches())
    with raises(PtxError) as excinfo:
        batch.run()
    (error,) = excinfo.value.diagnostics
    assert error.code == "PTX1110"
    assert "`out`, 16 bytes at 0x7f00000000, was freed" in error.message
    assert error.help == "free memory after the last launch that uses it has completed"


def test_a_region_that_an_instruction_hit_before_is_not_hit_after_it_was_freed() -> None:
    launch = prepare_launch(LOAD, None, Options(args=[np.zeros(4, np.uint32)], grid=2, batch_lanes=1))
    batches = launch.batches()
    next(batches).run()
    launch.space.free(launch.space.regions[0].low)
    second = next(batches)
    with raises(PtxError, match="was freed"):
        second.run()


def test_the_heap_of_a_kernel_has_8_mebibytes() -> None:
    space = AddressSpace()
    first = space.allocate_on_heap((8 << 20) - 1, b"\1\2\3\4")
    assert [first != 0, *(space.allocate_on_heap(size, b"\0") for size in (0, 2))] == [True, 0, 0]
    regions = [space.find_region(address) for address in (first, space.allocate_on_heap(1, b"\5"))]
    assert [(region.name, region.data[-3:].tolist()) for region in regions if region is not None] == [
        ("allocation 1 of malloc", [1, 2, 3]), ("allocation 2 of malloc", [5]),
    ]  # fmt: skip
    assert (space.free_on_heap(first), space.free_on_heap(first)) == (True, False)
    assert space.allocate_on_heap((8 << 20) - 1, b"\0") != 0
