"""Programs that reserve addresses, create physical memory and map it."""

from __future__ import annotations

import random
import re
import struct

import pytest

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import require
from pyptx.driver.process import Driver
from pyptx.driver.virtual_memory import GRANULARITY, Backing, Mapping, Range
from tests.driver.conftest import Run
from tests.driver.direct import Direct

START = """\
import ctypes, struct
from calls import *
start()
add = load(VECTOR_ADD, "add")
UNIT = 2 << 20
READ, WRITE = 1, 3

def describe(device=0, kind=1, place=1, handles=0):
    return struct.pack("<IIiiQQ", kind, handles, place, device, 0, 0)

def allow(address, size, flags=WRITE, device=0):
    return try_call("cuMemSetAccess", address, size, struct.pack("<iiI", 1, device, flags), 1)

def get_access(address, device=0):
    return ask("cuMemGetAccess", struct.pack("<ii", 1, device), address)

def count_free():
    free, total = ctypes.c_uint64(), ctypes.c_uint64()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return (total.value - free.value) // UNIT

def fetch(address):
    result = (ctypes.c_float * 2)()
    call("cuMemcpyDtoH_v2", result, address, 8)
    return list(result)

base = ask("cuMemAddressReserve", 4 * UNIT, 0, 0, 0)
first, second = (ask("cuMemCreate", size * UNIT, describe(), 0) for size in (1, 2))
"""


def test_physical_memory_is_mapped_and_shared_by_addresses(run_program: Run) -> None:
    program = """\
print(ask("cuMemGetAllocationGranularity", describe(), 0), base % UNIT, count_free())
call("cuMemMap", base, UNIT, 0, first, 0)
call("cuMemMap", base + UNIT, 2 * UNIT, 0, second, 0)
call("cuMemMap", base + 3 * UNIT, UNIT, 0, first, 0)
print(allow(base, 4 * UNIT), get_access(base), get_access(base + 2 * UNIT))
call("cuMemsetD32_v2", base + UNIT - 4, 0x40000000, 2)
print(fetch(base + UNIT - 4), fetch(base + 4 * UNIT - 8))
print(launch(add, 1, 32, base + UNIT - 4, base + UNIT, base + 3 * UNIT, 1), fetch(base))
print(ask("cuMemRetainAllocationHandle", base + 4) == first, struct.unpack("<IIi", first_properties())[2])
for handle in (first, first, second):
    call("cuMemRelease", handle)
print(count_free(), fetch(base), try_call("cuMemRelease", second))
kind, size = ctypes.c_uint(), ctypes.c_uint64()
call("cuPointerGetAttribute", ctypes.byref(kind), 2, base)
call("cuMemGetAddressRange_v2", None, ctypes.byref(size), base + UNIT + 5)
print(kind.value, size.value // UNIT)
print(try_call("cuMemAddressFree", base, 4 * UNIT))
call("cuMemUnmap", base, 3 * UNIT)
print(count_free(), fetch(base + 3 * UNIT))
call("cuMemUnmap", base + 3 * UNIT, UNIT)
print(count_free(), try_call("cuMemAddressFree", base, 4 * UNIT), try_call("cuMemAddressFree", base, 4 * UNIT))
"""
    properties = """\
def first_properties():
    data = ctypes.create_string_buffer(32)
    call("cuMemGetAllocationPropertiesFromHandle", data, first)
    return data.raw[:12]

"""
    process = run_program(START + properties + program)
    assert process.stderr == ""
    assert process.stdout.splitlines() == [
        "2097152 0 3", "0 3 3", "[2.0, 2.0] [0.0, 2.0]", "0 [5.0, 0.0]", "True 1", "3 [5.0, 0.0] 1", "2 2", "1",
        "1 [5.0, 0.0]", "0 0 1",
    ]  # fmt: skip


def test_memory_needs_a_mapping_and_access(run_program: Run) -> None:
    program = """\
print(launch(add, 1, 32, base, base, base, 1))
call("cuDevicePrimaryCtxReset_v2", 0)
add = load(VECTOR_ADD, "add")
call("cuMemMap", base, UNIT, 0, first, 0)
print(get_access(base), launch(add, 1, 32, base, base, base, 1))
call("cuDevicePrimaryCtxReset_v2", 0)
add = load(VECTOR_ADD, "add")
print(allow(base, UNIT, device=1), get_access(base), get_access(base, 1), launch(add, 1, 32, base, base, base, 1))
call("cuDevicePrimaryCtxReset_v2", 0)
add = load(VECTOR_ADD, "add")
print(allow(base, UNIT, READ), launch(add, 1, 32, base, base, base, 0), launch(add, 1, 32, base, base, base, 1))
"""
    process = run_program(START + program, count=2)
    assert process.stdout == "700\n0 700\n0 0 3 700\n0 0 700\n"
    assert re.findall(r"\[(PTX\d+)\]", process.stderr) == ["PTX1110", "PTX1306", "PTX1306"]


def test_work_that_waits_runs_before_access_changes(run_program: Run) -> None:
    program = """\
call("cuMemMap", base, UNIT, 0, first, 0)
print(allow(base, UNIT), try_call("cuMemsetD32_v2", base, 0x3F800000, 1))
print(launch(add, 1, 32, base, base, base, 1), allow(base, UNIT, READ), fetch(base))
"""
    process = run_program(START + program, order="deferred")
    assert process.stderr == ""
    assert process.stdout == "0 0\n0 0 [3.0, 0.0]\n"


def test_impossible_mappings_are_refused(run_program: Run) -> None:
    program = """\
out = ctypes.byref(ctypes.c_uint64())
print([try_call("cuMemAddressReserve", out, *words) for words in (
    (0, 0, 0, 0), (5, 0, 0, 0), (UNIT, 3, 0, 0), (UNIT, 0, 0, 1))])
print([try_call("cuMemCreate", out, size, words, flags) for size, words, flags in (
    (0, describe(), 0), (5, describe(), 0), (UNIT, describe(1), 0), (UNIT, describe(kind=2), 0),
    (UNIT, describe(place=2), 0), (UNIT, describe(), 1), (1 << 40, describe(), 0), (UNIT, describe(handles=1), 0))])
print([try_call("cuMemMap", *words) for words in (
    (base, UNIT, 0, 7, 0), (base, 5, 0, first, 0), (base, 2 * UNIT, 0, first, 0), (base, UNIT, UNIT, second, 0),
    (base + 4, UNIT, 0, first, 0), (base + 4 * UNIT, UNIT, 0, first, 0), (base + 3 * UNIT, 2 * UNIT, 0, second, 0),
    (base - UNIT, UNIT, 0, first, 0), (base, UNIT, 0, first, 1), (base, UNIT, 0, first, 0), (base, UNIT, 0, first, 0))])
print(allow(base, 2 * UNIT), allow(base, 4), allow(base, UNIT, 2), allow(base, UNIT, device=1), allow(base, UNIT, 0))
print([try_call("cuMemUnmap", *words) for words in ((base, 2 * UNIT), (base + UNIT, UNIT), (5, UNIT))])
print(try_call("cuMemGetAccess", out, struct.pack("<ii", 1, 0), base + UNIT))
print(try_call("cuMemAddressFree", base + UNIT, UNIT), try_call("cuMemRetainAllocationHandle", out, base + UNIT))
print(try_call("cuMemGetAllocationGranularity", out, describe(), 2))
"""
    process = run_program(START + program)
    assert process.stdout.splitlines() == [
        "[1, 1, 1, 1]", "[1, 1, 1, 1, 1, 1, 2, 801]", "[1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1]", "1 1 1 1 0",
        "[1, 1, 1]", "1", "1 1", "1",
    ]  # fmt: skip
    assert process.stderr == "pyptx: cuMemCreate: memory cannot be shared with other processes\n"


@pytest.mark.parametrize("alignment", [0, 4096, GRANULARITY, 4 * GRANULARITY, 512 * GRANULARITY])
def test_reserved_addresses_are_aligned_in_the_room_for_them(alignment: int) -> None:
    multiple = max(alignment, GRANULARITY)
    for _ in range(3):
        area = Range.reserve(6 * GRANULARITY, alignment)
        assert (area.address % multiple, area.room) == (0, 6 * GRANULARITY + multiple)
        assert area.start <= area.address <= area.start + area.room - area.size
        area.free()


def test_addresses_without_a_mapping_hold_nothing() -> None:
    direct = Direct()
    base = direct.ask("cuMemAddressReserve", GRANULARITY, 0, 0, 0)
    memory = direct.ask("cuMemCreate", GRANULARITY, struct.pack("<IIiiQQ", 1, 0, 1, 0, 0, 0), 0)
    direct.call("cuMemMap", base, GRANULARITY, 0, memory, 0)
    direct.call("cuMemSetAccess", base, GRANULARITY, struct.pack("<iiI", 1, 0, 3), 1)
    require(base, GRANULARITY, writes=True)
    direct.call("cuMemUnmap", base, GRANULARITY)
    with pytest.raises(DriverError, match="the program has no 1 bytes of memory"):
        require(base, 1)


@pytest.mark.parametrize("order", ["unmap, then release", "release, then unmap"])
def test_memory_without_handles_and_mappings_is_forgotten(order: str) -> None:
    direct = Direct()
    base, before = direct.ask("cuMemAddressReserve", GRANULARITY, 0, 0, 0), len(direct.driver.handles)
    memory = direct.ask("cuMemCreate", GRANULARITY, struct.pack("<IIiiQQ", 1, 0, 1, 0, 0, 0), 0)
    direct.call("cuMemMap", base, GRANULARITY, 0, memory, 0)
    steps = {"unmap": ("cuMemUnmap", [base, GRANULARITY]), "release": ("cuMemRelease", [memory])}
    (first, words), (second, other_words) = (steps[word] for word in order.split(", then "))
    direct.call(first, *words)
    assert len(direct.driver.handles) == before + 1
    direct.call(second, *other_words)
    assert len(direct.driver.handles) == before
    assert direct.try_call("cuMemMap", base, GRANULARITY, 0, memory, 0) == Code.ERROR_INVALID_VALUE


class Pages(Backing):
    """A backing that only knows where it was mapped."""

    places: list[tuple[int, int]]

    def map_at(self, address: int, size: int) -> None:
        self.places = [*getattr(self, "places", []), (address, size)]

    def close(self, driver: Driver) -> None:
        raise NotImplementedError


def test_a_range_knows_what_is_mapped_where(seed: int) -> None:
    draw, units = random.Random(seed), 6
    area = Range.reserve(units * GRANULARITY, 0)
    model: dict[int, tuple[int, Mapping]] = {}
    for _ in range(300):
        start, size = draw.randrange(-1, units + 1), draw.randrange(4)
        address, length = area.address + start * GRANULARITY, size * GRANULARITY
        taken = {first + unit for first, (count, _) in model.items() for unit in range(count)}
        if draw.random() < 0.5:
            backing = Pages(1, draw.randrange(1, 4) * GRANULARITY)
            fits = size > 0 and 0 <= start <= units - size and length <= backing.size
            if fits and taken.isdisjoint(range(start, start + size)):
                area.map(address, length, backing)
                mapping = area.mappings[address]
                assert (mapping.address, mapping.size, mapping.backing) == (address, length, backing)
                assert (mapping.access, backing.mappings, backing.places) == ({}, 1, [(address, length)])
                model[start] = size, mapping
            else:
                with pytest.raises(DriverError) as caught:
                    area.map(address, length, backing)
                assert (caught.value.code, backing.mappings) == (Code.ERROR_INVALID_VALUE, 0)
        else:
            expected, unit = list[Mapping](), start
            while unit < start + size and unit in model:
                expected.append(model[unit][1])
                unit += model[unit][0]
            if size and unit == start + size:
                assert area.select(address, length) == expected
                for mapping in expected:
                    area.unmap(mapping)
                    del model[(mapping.address - area.address) // GRANULARITY]
            else:
                with pytest.raises(DriverError):
                    area.select(address, length)
        for unit in range(-1, units + 1):
            owner = [item for first, (count, item) in model.items() if first <= unit < first + count]
            for place in (unit * GRANULARITY, (unit + 1) * GRANULARITY - 1):
                if owner:
                    assert [area.find(area.address + place)] == owner
                else:
                    with pytest.raises(DriverError):
                        area.find(area.address + place)
    if not model:
        area.map(area.address, GRANULARITY, Pages(1, GRANULARITY))
    with pytest.raises(DriverError):
        area.free()
    for mapping in list(area.mappings.values()):
        area.unmap(mapping)
    area.free()
