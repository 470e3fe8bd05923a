"""Multicast objects in process: what kernels find behind their addresses, part by part."""

from __future__ import annotations

import random
import struct
from dataclasses import astuple

from pyptx.driver.multicasts import list_multicasts
from pyptx.driver.settings import Settings
from pyptx.sim.state.multicasts import Window
from tests.driver.direct import Direct, make_room

UNIT = 2 << 20
PARTS = 4


def describe(device: int) -> bytes:
    return struct.pack("<IIiiQQ", 1, 0, 1, device, 0, 0)


def map_at(direct: Direct, handle: int, size: int, devices: list[int]) -> int:
    """Map memory at new addresses that some devices may access."""
    base = direct.ask("cuMemAddressReserve", size, 0, 0, 0)
    direct.call("cuMemMap", base, size, 0, handle, 0)
    access = b"".join(struct.pack("<iiI", 1, device, 3) for device in devices)
    direct.call("cuMemSetAccess", base, size, access, len(devices))
    return base


def list_windows(direct: Direct, device: int) -> list[Window]:
    multicasts = list_multicasts(direct.driver, device)
    assert multicasts is not None
    return list(multicasts.windows)


def test_windows_are_the_parts_that_are_bound(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(10):
        direct = Direct(Settings(count=2))
        assert list_multicasts(direct.driver, 0) is None
        team = direct.ask("cuMulticastCreate", struct.pack("<I4xQQQ", 2, PARTS * UNIT, 0, 0))
        for device in (0, 1):
            direct.call("cuMulticastAddDevice", team, device)
        memory = [direct.ask("cuMemCreate", PARTS * UNIT, describe(device), 0) for device in (0, 1)]
        # The memory of device 0 is mapped by the program, that of device 1 is not.
        visible = map_at(direct, memory[0], PARTS * UNIT, [0])
        bound: dict[tuple[int, int], int] = {}
        pieces: list[tuple[int, int, int]] = []
        for _ in range(6):
            device, offset, start = draw.randrange(2), draw.randrange(PARTS), draw.randrange(PARTS)
            size = draw.randrange(1, PARTS + 1)
            words = device, offset * UNIT, memory[device], start * UNIT, size * UNIT, 0
            code = direct.try_call("cuMulticastBindMem_v2", team, *words)
            parts = {(device, offset + index): start + index for index in range(size)}
            is_wrong = max(offset, start) + size > PARTS or not parts.keys().isdisjoint(bound)
            assert code == is_wrong
            if not is_wrong:
                bound |= parts
                pieces.append((device, offset, size))
        mapped = draw.randrange(1, PARTS + 1)
        base = map_at(direct, team, mapped * UNIT, [0])
        windows = list_windows(direct, 0)
        ends = {0, mapped, *(end for _, offset, size in pieces for end in (offset, offset + size) if end < mapped)}
        assert [(item.low - base) // UNIT for item in windows] == sorted(ends)[:-1]
        assert sum(item.size for item in windows) == mapped * UNIT
        # Memory without a mapping of the program got addresses of the driver's.
        (alias,) = [item.address for item in direct.driver.heap.allocations.values() if item.kind == "bound"] or [0]
        for item in windows:
            part = (item.low - base) // UNIT
            places = [
                address + bound[device, part] * UNIT
                for device, address in ((0, visible), (1, alias))
                if (device, part) in bound
            ]
            assert list(item.replicas) == places
            few = f"only {len(places)} of 2 devices have memory bound to the multicast object here"
            assert item.problem == ("" if len(places) == 2 else few)
        other = [item.problem for item in list_windows(direct, 1)]
        text = "device 1 may not access this mapping of the multicast object, see cuMemSetAccess"
        assert other == [text] * len(windows)
        for device, offset, size in pieces:
            direct.call("cuMulticastUnbind", team, device, offset * UNIT, size * UNIT)
        assert [item.replicas for item in list_windows(direct, 0)] == [()]
        for device in (0, 1):
            direct.call("cuMulticastBindMem", team, 0, memory[device], 0, PARTS * UNIT, 0)
        ((low, size, replicas, problem),) = map(astuple, list_windows(direct, 0))
        assert (low, size, problem) == (base, mapped * UNIT, "")
        assert replicas[0] == visible
        assert not alias or replicas[1] == alias


def test_a_part_of_a_mapping_that_is_too_small_is_found_elsewhere() -> None:
    direct = Direct()
    team = direct.ask("cuMulticastCreate", struct.pack("<I4xQQQ", 1, 2 * UNIT, 0, 0))
    direct.call("cuMulticastAddDevice", team, 0)
    memory = direct.ask("cuMemCreate", 2 * UNIT, describe(0), 0)
    small = map_at(direct, memory, UNIT, [0])
    base = map_at(direct, team, 2 * UNIT, [0])
    direct.call("cuMulticastBindMem", team, 0, memory, 0, UNIT, 0)
    direct.call("cuMulticastBindAddr", team, UNIT, small, UNIT, 0)
    assert [item.replicas for item in list_windows(direct, 0)] == [(small,), (small,)]
    for offset in (0, UNIT):
        direct.call("cuMulticastUnbind", team, 0, offset, UNIT)
    direct.call("cuMulticastBindMem", team, 0, memory, UNIT, UNIT, 0)
    ((place,), none) = (item.replicas for item in list_windows(direct, 0))
    (alias,) = (item.address for item in direct.driver.heap.allocations.values() if item.kind == "bound")
    assert (place, none) == (alias + UNIT, ())
    direct.call("cuMemsetD8_v2", small, 7, UNIT)
    data = direct.driver.heap.view(alias, 2 * UNIT)
    assert data is not None
    assert (data[:UNIT].min(), data[UNIT:].max(), alias % UNIT) == (7, 0, 0)
    # Both go with the memory, and the object with its last mapping.
    for handle in (memory, team):
        direct.call("cuMemRelease", handle)
    direct.call("cuMemUnmap", small, UNIT)
    assert list_multicasts(direct.driver, 0) is not None
    assert [item.kind for item in direct.driver.heap.allocations.values()] == ["bound"]
    direct.call("cuMemUnmap", base, 2 * UNIT)
    assert list_multicasts(direct.driver, 0) is None
    assert (direct.driver.heap.allocations, direct.driver.heap.used) == ({}, {0: 0})


def test_bindings_fit_the_object_the_memory_and_its_device() -> None:
    direct = Direct(Settings(count=2))
    team = direct.ask("cuMulticastCreate", struct.pack("<I4xQQQ", 1, 2 * UNIT, 0, 0))
    assert [direct.try_call("cuMulticastAddDevice", team, device) for device in (-1, 0, 0, 1)] == [101, 0, 1, 1]
    memory = [direct.ask("cuMemCreate", 2 * UNIT, describe(device), 0) for device in (0, 1)]
    places = [map_at(direct, memory[device], 2 * UNIT, [device]) for device in (0, 1)]
    multicast = map_at(direct, team, UNIT, [0])
    wrong = {
        (0, places[0], 0, 0): 1, (0, places[0], UNIT + 1, 0): 1, (0, places[0], UNIT, 1): 1, (1, places[0], UNIT, 0): 1,
        (0, places[0] + 1, UNIT, 0): 1, (UNIT, places[0], 2 * UNIT, 0): 1, (0, places[0] + UNIT, 2 * UNIT, 0): 1,
        (0, places[1], UNIT, 0): 101, (0, multicast, UNIT, 0): 1, (0, 4096, UNIT, 0): 1, (0, places[0], UNIT, 0): 0,
        (UNIT, places[0] + UNIT, UNIT, 0): 0,
    }  # fmt: skip
    codes = {words: direct.try_call("cuMulticastBindAddr", team, *words) for words in wrong}
    assert codes == wrong
    assert [item.replicas for item in list_windows(direct, 0)] == [(places[0],)]
    direct.call("cuMulticastUnbind", team, 0, 0, UNIT)
    name = "cuMulticastBindAddr_v2"
    assert [direct.try_call(name, team, device, 0, places[0], UNIT, 0) for device in (1, 0)] == [1, 0]
    unbound = (1, 0, UNIT), (0, UNIT + 1, UNIT), (0, 0, 2 * UNIT), (0, UNIT, UNIT), (0, 0, UNIT), (0, 0, UNIT)
    assert [direct.try_call("cuMulticastUnbind", team, *words) for words in unbound] == [1, 1, 1, 0, 0, 1]
    out, properties = make_room(1), struct.pack("<I4xQQQ", 1, UNIT, 0, 0)
    codes = {option: direct.try_call("cuMulticastGetGranularity", out, properties, option) for option in (-1, 0, 1, 2)}
    assert (codes, out[0]) == ({-1: 1, 0: 0, 1: 0, 2: 1}, UNIT)
    wrong_team = struct.pack("<I4xQQQ", 3, UNIT, 0, 0)
    assert direct.try_call("cuMulticastGetGranularity", out, wrong_team, 0) == 1
